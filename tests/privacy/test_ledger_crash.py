"""A device may stop at any point: it has spent at least what it sent, and a retry sends the same bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.shared.killed_processes import run_script

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, and killed")

LIVES = Path(__file__).with_name("ledger_crash.py")


def run(kind: str, count: int) -> dict[str, Any]:
    return run_script(LIVES, kind, count)


def test_killed_at_any_point_spent_is_at_least_sent() -> None:
    assert run("points", 150) == {"lives": 150, "wrong": []}


def test_killed_at_any_moment_spent_is_at_least_sent() -> None:
    assert run("moments", 40) == {"lives": 40, "wrong": []}


def test_a_debit_in_a_transaction_of_its_own_is_caught() -> None:
    assert run("careless", 150)["wrong"]


def test_of_two_processes_one_gets_the_last_of_the_budget() -> None:
    assert run("race", 40) == {"lives": 40, "wrong": []}


@pytest.mark.slow
def test_killed_at_a_thousand_points() -> None:
    assert run("points", 1500) == {"lives": 1500, "wrong": []}


@pytest.mark.slow
def test_killed_at_a_thousand_moments() -> None:
    assert run("moments", 1000) == {"lives": 1000, "wrong": []}


@pytest.mark.slow
def test_a_thousand_races() -> None:
    assert run("race", 1000) == {"lives": 1000, "wrong": []}
