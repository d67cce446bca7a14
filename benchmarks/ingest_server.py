"""A server for the ingest benchmark: the collector with its pages, or the same server with a handler that does nothing.

    python ingest_server.py collector FOLDER [URL PROCESSES] | empty

With the URL of a store in PostgreSQL, that many processes share it; with 0, one collector is alone on it.

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


def collector(folder: Path, url: str = "", processes: str = "0") -> int:
    from hubbub.authoring import load_collection
    from hubbub.dashboard.pages import dashboard
    from hubbub.service.base.trusted_clock import TrustedClock
    from hubbub.service.collector.collector import Collector, Limits
    from hubbub.service.collector.joint import JointCollector
    from hubbub.service.http.problems import Tokens
    from hubbub.service.http.server import run
    from hubbub.service.http.workers import Worker, fork_workers
    from hubbub.service.store import open_store
    from hubbub.service.store.joint import JointStore

    secrets, listening = KeyFolder(folder / "keys"), bind("127.0.0.1", 0)
    signing, tokens = secrets.keys(), Tokens([secrets.token()])
    limits = Limits(rate=1e9, burst=1 << 40)
    collection = load_collection(collection_text())

    def ready() -> None:
        said = {"port": listening.getsockname()[1], "token": secrets.token()}
        print(json.dumps(said), flush=True)

    worker: Worker | int | None = fork_workers(int(processes), ready) if int(processes) else None
    if isinstance(worker, int):
        return worker
    store = JointStore(url) if worker else open_store(url or f"sqlite:///{folder / 'bench.db'}")
    options: dict[str, Any] = {"clock": TrustedClock(store.clock()), "keys": signing, "limits": limits}
    if isinstance(store, JointStore):
        made: Collector = JointCollector([collection], store, url=url, **options)
    else:
        made = Collector([collection], store, **options)
    return run(made, tokens, [listening], routes=dashboard(tokens), on_ready=worker.ready if worker else ready)


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
    kind, *arguments = sys.argv[1:]
    sys.exit(empty() if kind == "empty" else collector(Path(arguments[0]), *arguments[1:]))
