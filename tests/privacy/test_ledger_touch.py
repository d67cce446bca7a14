"""A third party touches a device's ledger: the last epsilon is spent once, and nothing that was sent is forgotten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="lives are forked, and killed")

SHELF = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
LIVES = Path(__file__).with_name("ledger_touch.py")
PARTIES = 8


def run(kind: str, count: int, plant: str = "none") -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=SHELF) as folder:
        command = [sys.executable, str(LIVES), kind, folder, str(count), plant]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_last_epsilon_is_spent_once_whoever_touches_the_file() -> None:
    assert run("last", PARTIES) == {"lives": PARTIES, "wrong": []}


def test_third_parties_touch_the_ledger_before_kills() -> None:
    assert run("moments", 2 * PARTIES) == {"lives": 2 * PARTIES, "wrong": []}


def test_a_planted_close_is_found_in_under_five_runs() -> None:
    """A process that opens and closes its own ledger's file loses all its locks on it."""
    assert run("last", 1, "close")["wrong"]  # the first party is another thread


@pytest.mark.slow
def test_the_last_epsilon_is_spent_once_in_two_hundred_races() -> None:
    assert run("last", 200) == {"lives": 200, "wrong": []}


@pytest.mark.slow
def test_third_parties_touch_the_ledger_before_two_hundred_kills() -> None:
    assert run("moments", 200) == {"lives": 200, "wrong": []}
