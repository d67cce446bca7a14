"""The collector of a live demonstration, in a process of its own: it stops when its standard input ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["main"]


def main() -> int:
    """Read one line of settings, serve, and write one line once requests are answered."""
    from hubbub.collection import Collection, SystemClock
    from hubbub.service.auth import Tokens
    from hubbub.service.collector import Collector
    from hubbub.service.logs import set_up
    from hubbub.service.server import KeyFolder, bind, run
    from hubbub.service.store import open_store

    settings = json.loads(sys.stdin.readline())
    folder = Path(settings["folder"])
    secrets = KeyFolder(folder / "keys")
    keys, tokens = secrets.keys(), Tokens([secrets.token()])
    listening = bind("127.0.0.1", settings["port"])
    collection = Collection.from_spec(settings["collection"])
    collector = Collector([collection], open_store(f"sqlite:///{folder / 'hubbub.db'}"), clock=SystemClock(), keys=keys)
    pages = _pages()
    set_up()

    def ready() -> None:
        # From here on a signal is a request to stop; whoever started this need not live to send it.
        threading.Thread(target=_stop_with_input, daemon=True).start()
        said = {"port": listening.getsockname()[1], "public_key": keys.public.hex(), "page": pages is not None}
        print(json.dumps(said), flush=True)

    more = {} if pages is None else {"routes": pages}
    return run(collector, tokens, [listening], on_ready=ready, **more)


def _pages() -> Any:
    """The dashboard's routes, for everyone who can reach this machine's own address; None where there is none."""
    try:
        return import_module("hubbub.dashboard.app").dashboard(None)
    except ImportError:
        return None


def _stop_with_input() -> None:
    while os.read(0, 1024):  # not sys.stdin: its lock, held here, would spoil the exit
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
