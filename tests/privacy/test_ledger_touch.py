"""A third party touches a device's ledger: the last epsilon is spent once, and nothing that was sent is forgotten."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hubbub.core.event import Event
from hubbub.core.migrations import Format
from hubbub.ledger.file import LedgerFile, LedgerUnavailable
from hubbub.ledger.promise import Budget
from tests.privacy.budget_ledger import Ledger, StepClock
from tests.shared.killed_processes import run_script

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, and killed")

LIVES = Path(__file__).with_name("ledger_touch.py")
PARTIES = 8
EVENT = Event("GRR", "0" * 32, 7)


def run(kind: str, count: int, plant: str = "none") -> dict[str, Any]:
    return run_script(LIVES, kind, count, plant)


def test_the_last_epsilon_is_spent_once_whoever_touches_the_file() -> None:
    assert run("last", PARTIES) == {"lives": PARTIES, "wrong": []}


def test_third_parties_touch_the_ledger_before_kills() -> None:
    assert run("moments", PARTIES) == {"lives": PARTIES, "wrong": []}


def test_a_planted_close_is_found_in_under_five_runs() -> None:
    """A process that opens and closes its own ledger's file loses all its locks on it."""
    assert run("last", 4, "close")["wrong"]  # another thread opens it


def test_a_forked_child_that_closes_it_takes_nothing_back(tmp_path: Path) -> None:
    file = LedgerFile(tmp_path / "file", {}, ("CREATE TABLE numbers (number INTEGER)",), Format("version", 1))
    with file.transaction():
        file.run("INSERT INTO numbers VALUES (7)")
        assert (tmp_path / "file-journal").exists()
        child = os.fork()
        if child == 0:
            try:
                file.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert (tmp_path / "file-journal").exists(), "without it a crash now would leave half of this"
    assert file.run("SELECT number FROM numbers") == [(7,)]
    file.close()


@pytest.mark.parametrize("loss", ["deleted", "replaced"])
def test_a_ledger_whose_file_is_gone_answers_nothing(tmp_path: Path, loss: str) -> None:
    path = tmp_path / "ledger"
    with Ledger(path, Budget(user=100), clock=StepClock(1)) as ledger:
        ledger.answer("ask 1", 1, EVENT, lambda: b"")
        if loss == "replaced":
            (tmp_path / "other").write_bytes(b"")
            (tmp_path / "other").replace(path)
        else:
            path.unlink()
        with pytest.raises(LedgerUnavailable):
            ledger.answer("ask 2", 1, EVENT, lambda: b"")


@pytest.mark.slow
def test_the_last_epsilon_is_spent_once_in_two_hundred_races() -> None:
    assert run("last", 200) == {"lives": 200, "wrong": []}


@pytest.mark.slow
def test_third_parties_touch_the_ledger_before_two_hundred_kills() -> None:
    assert run("moments", 200) == {"lives": 200, "wrong": []}
