"""A device may stop at any point: it has spent at least what it sent, and a retry sends the same bytes."""

import os
from functools import partial
from pathlib import Path

import pytest

from tests.shared.killed_processes import run_script

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, and killed")

run = partial(run_script, Path(__file__).with_name("ledger_crash.py"))


@pytest.mark.parametrize("points", [150, pytest.param(1500, marks=pytest.mark.slow)])
def test_killed_at_any_point_spent_is_at_least_sent(points: int) -> None:
    assert run("points", points) == {"lives": points, "wrong": []}


@pytest.mark.parametrize("moments", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_killed_at_any_moment_spent_is_at_least_sent(moments: int) -> None:
    assert run("moments", moments) == {"lives": moments, "wrong": []}


def test_a_debit_in_a_transaction_of_its_own_is_caught() -> None:
    assert run("careless", 150)["wrong"]


@pytest.mark.parametrize("races", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_of_two_processes_one_gets_the_last_of_the_budget(races: int) -> None:
    assert run("race", races) == {"lives": races, "wrong": []}
