"""A collector process for tests: a mechanism that hides nothing, the store that is named, any free port.

    python serve_exact.py STORE KEYS [close]
    python serve_exact.py STORE KEYS clock OFFSET HOLD

Logs its address once it answers. "close" plants a bug, a process that closes its own database's file, and does not
notice what comes of it. "clock" has short steps, and clocks that can be moved: a file says how far wall time is off.
"""

import os
import sqlite3
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from hubbub.dashboard.pages import dashboard
from hubbub.mechanisms import MECHANISMS
from hubbub.service.base.logs import log, set_up
from hubbub.service.base.trusted_clock import ClockReading, TrustedClock, read_clocks
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
        file = path.removeprefix("file://").removesuffix("?mode=rw")
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        return connect(path, **options)

    sqlite3.connect = careless  # type: ignore[assignment]
    SqliteStore._check_place = lambda self: None  # type: ignore[method-assign]


def moved_clock(offset: Path) -> ClockReading:
    return read_clocks()._replace(wall=time.time() + float(offset.read_text()))


def main(store_url: str, keys: str, mode: str = "", offset: str = "", hold: str = "") -> int:
    MECHANISMS["Exact"] = Exact
    if mode == "close":
        plant_close()
    folder, listening = KeyFolder(Path(keys)), bind("127.0.0.1", 0)
    set_up()
    store, collection = (
        open_store(store_url),
        exact_collection(step=86400, lateness=3600),
    )  # one window for a whole test
    clock = TrustedClock(store.clock())
    if mode == "clock":
        collection = exact_collection(step=2, lateness=1)
        clock = TrustedClock(store.clock(), hold=float(hold), read=partial(moved_clock, Path(offset)))
    collector = Collector([collection], store, clock=clock, keys=folder.keys())
    ready = partial(log, "serving", at=f"http://127.0.0.1:{listening.getsockname()[1]}")
    return run(collector, Tokens([folder.token()]), [listening], routes=dashboard(None), on_ready=ready)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
