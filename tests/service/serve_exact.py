"""A collector process for tests: a mechanism that hides nothing, the store that is named, any free port.

    python serve_exact.py STORE KEYS

Prints the port once it answers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from exact_world import Exact, exact_collection

from hubbub.mechanisms import MECHANISMS
from hubbub.service.auth import Tokens
from hubbub.service.collector import Collector
from hubbub.service.logs import set_up
from hubbub.service.server import KeyFolder, bind, run
from hubbub.service.store import open_store
from hubbub.service.trusted_clock import TrustedClock


def main() -> int:
    MECHANISMS["Exact"] = Exact
    folder = KeyFolder(Path(sys.argv[2]))
    listening = bind("127.0.0.1", 0)
    set_up()
    begun = time.monotonic()
    collection = exact_collection(step=86400, lateness=3600)  # one window for the whole test
    store = open_store(sys.argv[1])
    collector = Collector([collection], store, clock=TrustedClock(store.clock()), keys=folder.keys())
    assert time.monotonic() - begun < 60

    def ready() -> None:
        print(listening.getsockname()[1], flush=True)

    return run(collector, Tokens([folder.token()]), [listening], on_ready=ready)


if __name__ == "__main__":
    sys.exit(main())
