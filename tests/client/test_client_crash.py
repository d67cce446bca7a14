"""A device may stop at any point: it has spent at least what it sent, and a retry sends the same bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.shared.killed_processes import run_script

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, and killed")

LIVES = Path(__file__).with_name("client_crash.py")


def run(kind: str, count: int) -> dict[str, Any]:
    return run_script(LIVES, kind, count)


def test_killed_at_any_point_spent_is_at_least_sent() -> None:
    assert run("points", 40) == {"lives": 40, "wrong": []}


def test_a_debit_that_comes_after_the_sending_is_caught() -> None:
    assert 0 < len(run("careless", 15)["wrong"]) < 15


def test_two_processes_share_a_folder() -> None:
    assert run("race", 6) == {"lives": 6, "wrong": []}


@pytest.mark.slow
def test_killed_at_a_thousand_points() -> None:
    assert run("points", 1000) == {"lives": 1000, "wrong": []}


@pytest.mark.slow
def test_three_hundred_races() -> None:
    assert run("race", 300) == {"lives": 300, "wrong": []}
