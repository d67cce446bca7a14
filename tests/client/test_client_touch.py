"""Another thread of the same process reads a client's folder: the locks on its files stay."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.client import read_status
from hubbub.collection import ManualClock
from tests.client.device import MEMO, device, live
from tests.client.local_server import LocalServer, survey

TEXT = MEMO + (
    '\n[fields.theme]\nkind = "categorical"\nnames = ["light", "dark"]\n'
    '\n[questions.popular]\nkind = "histogram"\nfield = "theme"\nepsilon = 0.5\n'
)
BUSY = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError:
    sys.exit(3)
"""


def locked(path: Path) -> bool:
    """Whether another process finds it locked."""
    return subprocess.run([sys.executable, "-c", BUSY, str(path)], check=False, timeout=60).returncode == 3


@pytest.mark.parametrize("reader", ["status", "client"])
def test_locks_survive_whoever_looks_into_the_folder(folder: Path, reader: str) -> None:
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    with device(folder, server, clock) as client:
        live(client, server, clock, 5, 3)
    looks: dict[str, Callable[[], object]] = {
        "status": lambda: read_status(folder, clock),
        "client": lambda: device(folder, server, clock).close(),
    }
    files = sorted(folder.glob("*.sqlite"))
    assert [path.name for path in files] == ["client.sqlite"]  # the ledger is in it
    for path in files:
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("BEGIN IMMEDIATE")
        looking = threading.Thread(target=looks[reader])
        looking.start()  # waits for this transaction
        time.sleep(0.2)
        still = locked(path)
        database.execute("ROLLBACK")
        looking.join()
        database.close()
        assert still, path.name
