"""A third party touches a device's ledger: the last epsilon is spent once, and nothing that was sent is forgotten."""

import os
from functools import partial
from pathlib import Path

import pytest

from hubbub.core.event import Event
from hubbub.ledger.file import LedgerUnavailable
from hubbub.ledger.promise import Budget
from tests.ledger.budget_ledger import Ledger, StepClock
from tests.shared.killed_processes import run_script

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, and killed")

run = partial(run_script, Path(__file__).with_name("ledger_touch.py"))
EVENT = Event("GRR", "0" * 32, 7)


@pytest.mark.parametrize("races", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_the_last_epsilon_is_spent_once_whoever_touches_the_file(races: int) -> None:
    assert run("last", races, "none") == {"lives": races, "wrong": []}


@pytest.mark.parametrize("kills", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_third_parties_touch_the_ledger_before_kills(kills: int) -> None:
    assert run("moments", kills, "none") == {"lives": kills, "wrong": []}


def test_a_planted_close_is_found_in_under_five_runs() -> None:
    """A process that opens and closes its own ledger's file loses all its locks on it."""
    assert run("last", 4, "close")["wrong"]  # another thread opens it


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
