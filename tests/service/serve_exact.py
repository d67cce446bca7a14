"""A collector process for tests: a mechanism that hides nothing, the store that is named, any free port.

    python serve_exact.py STORE KEYS [PLANT]

Prints the port once it answers. PLANT names a bug to plant: "close", a process that closes its own
database's file, and does not notice what comes of it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from hubbub.mechanisms import MECHANISMS
from hubbub.service.base.logs import set_up
from hubbub.service.base.trusted_clock import TrustedClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import KeyFolder, bind, run
from hubbub.service.store import open_store
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import Exact, exact_collection


def plant_close() -> None:
    """Open and close the file after every connection to it: POSIX drops all locks that the process has on it."""
    connect = sqlite3.connect

    def careless(path: str, **options: Any) -> sqlite3.Connection:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        return connect(path, **options)

    sqlite3.connect = careless  # type: ignore[assignment]
    SqliteStore._check_place = lambda self: None  # type: ignore[method-assign]


def main() -> int:
    MECHANISMS["Exact"] = Exact
    if sys.argv[3:] == ["close"]:
        plant_close()
    folder = KeyFolder(Path(sys.argv[2]))
    listening = bind("127.0.0.1", 0)
    set_up()
    collection = exact_collection(step=86400, lateness=3600)  # one window for the whole test
    store = open_store(sys.argv[1])
    collector = Collector([collection], store, clock=TrustedClock(store.clock()), keys=folder.keys())

    def ready() -> None:
        print(listening.getsockname()[1], flush=True)

    return run(collector, Tokens([folder.token()]), [listening], on_ready=ready)


if __name__ == "__main__":
    sys.exit(main())
