"""A collector process whose clocks can be moved: a file says by how much wall time is off.

    python serve_clock.py STORE KEYS OFFSET HOLD

Prints the port once it answers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hubbub.dashboard.app import dashboard
from hubbub.mechanisms import MECHANISMS
from hubbub.service.base.logs import set_up
from hubbub.service.base.trusted_clock import ClockReading, TrustedClock, read_clocks
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import KeyFolder, bind, run
from hubbub.service.store import open_store
from tests.service.exact_world import Exact, exact_collection


def main() -> int:
    MECHANISMS["Exact"] = Exact
    offset = Path(sys.argv[3])

    def read() -> ClockReading:
        now = read_clocks()
        return now._replace(wall=time.time() + float(offset.read_text()))

    folder = KeyFolder(Path(sys.argv[2]))
    listening = bind("127.0.0.1", 0)
    set_up()
    store = open_store(sys.argv[1])
    clock = TrustedClock(store.clock(), hold=float(sys.argv[4]), read=read)
    collector = Collector([exact_collection(step=2, lateness=1)], store, clock=clock, keys=folder.keys())

    def ready() -> None:
        print(listening.getsockname()[1], flush=True)

    return run(collector, Tokens([folder.token()]), [listening], routes=dashboard(None), on_ready=ready)


if __name__ == "__main__":
    sys.exit(main())
