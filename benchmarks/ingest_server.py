"""A server for the ingest benchmark: the collector with its pages, or the same server with a handler that does nothing.

    python ingest_server.py collector FOLDER | empty

Prints its port, the public key's collection id and the token once it answers.
"""

import json
import sys
from pathlib import Path
from typing import Any

from hubbub.service.http.server import KeyFolder, bind

STEP, LATENESS = 30, 5


def collection_text() -> str:
    return f"""
name = "bench"
version = 1
title = "Light or dark?"

[schedule]
step = "{STEP}s"
lateness = "{LATENESS}s"

[privacy]
event = 1.0

[fields.theme]
kind = "ordinal"
size = 1023

[questions.popular]
kind = "histogram"
field = "theme"
epsilon = 1.0
mechanism = "OLH"
"""


def collector(folder: Path) -> int:
    from hubbub.authoring import load_collection
    from hubbub.dashboard.pages import dashboard
    from hubbub.service.base.trusted_clock import TrustedClock
    from hubbub.service.collector.collector import Collector, Limits
    from hubbub.service.http.problems import Tokens
    from hubbub.service.http.server import run
    from hubbub.service.store import open_store

    secrets, listening = KeyFolder(folder / "keys"), bind("127.0.0.1", 0)
    tokens = Tokens([secrets.token()])
    limits = Limits(rate=1e9, burst=1 << 40)
    store = open_store(f"sqlite:///{folder / 'bench.db'}")
    collection = load_collection(collection_text())
    made = Collector([collection], store, clock=TrustedClock(store.clock()), keys=secrets.keys(), limits=limits)

    def ready() -> None:
        said = {"port": listening.getsockname()[1], "token": secrets.token()}
        print(json.dumps(said), flush=True)

    return run(made, tokens, [listening], routes=dashboard(tokens), on_ready=ready)


def empty() -> int:
    import asyncio

    import uvicorn

    from hubbub.service.http.guard import Guard
    from hubbub.service.http.server import loop_factory, server_config

    listening = bind("127.0.0.1", 0)
    body = b'{"accepted":1000,"duplicates":0,"rejected":[]}'
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for _ in range(2):
                message = await receive()
                await send({"type": message["type"] + ".complete"})
            return
        while (await receive()).get("more_body", False):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    print(json.dumps({"port": listening.getsockname()[1], "token": ""}), flush=True)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(uvicorn.Server(server_config(app, Guard())).serve(sockets=[listening]))
    return 0


if __name__ == "__main__":
    sys.exit(empty() if sys.argv[1] == "empty" else collector(Path(sys.argv[2])))
