"""Trusted time never runs ahead of true time; studies are debited whole, at the end of their last round."""

import random
import time
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.ledger.clock import DeviceClock, since_boot
from hubbub.ledger.promise import BudgetExceeded, Promise, of_question
from tests.ledger.budget_ledger import ShownClock, TrueTime, memory_book

TEN_YEARS = 10 * 365 * 86400
SECOND = 10**6


@pytest.mark.parametrize(
    ("wall", "step"), [(1000.0, 0), (1059.9, 0), (1060.0, 1), (999.0, -1), (1000.0 + 60 * 10**6, 10**6)]
)
def test_a_step_is_the_floor_from_the_origin(wall: float, step: int) -> None:
    clock = DeviceClock(60, origin=1000, wall=lambda: wall, monotonic=lambda: 0.0)
    assert clock.step == clock.observe(None).step == step


MOVES = st.lists(
    st.tuples(st.just("wait"), st.integers(0, 1000))
    | st.tuples(st.just("set"), st.integers(-1000, 1000) | st.sampled_from([-TEN_YEARS, TEN_YEARS]))
    | st.tuples(st.just("reboot"), st.integers(0, 1000))
    | st.tuples(st.just("observe"), st.just(0)),
    max_size=30,
)


@settings(deadline=None, database=None, max_examples=4 * settings().max_examples)
@given(MOVES)
def test_trusted_time_is_at_most_true_time(moves: list[tuple[str, int]]) -> None:
    clocks = TrueTime()
    clock = clocks.clock(100)
    start, reading = clocks.true, clock.observe(None)
    for move, seconds in moves:
        if move != "observe":
            getattr(clocks, move)(seconds)
            continue
        before, reading = reading, clock.observe(reading)
        assert before.trusted <= reading.trusted <= (clocks.true - start) * SECOND


@settings(deadline=None, database=None)
@given(st.lists(st.integers(0, 1000)))
def test_trusted_time_is_true_time_while_the_clocks_are_honest(waits: list[int]) -> None:
    clocks = TrueTime()
    clock = clocks.clock(100)
    reading = clock.observe(None)
    for wait in waits:
        clocks.wait(wait)
        reading = clock.observe(reading)
    assert reading.trusted == sum(waits) * SECOND


def test_ten_years_forward_and_back_add_nothing() -> None:
    clocks = TrueTime()
    clock = clocks.clock(100)
    reading = clock.observe(None)
    for jump in (TEN_YEARS, -TEN_YEARS, -TEN_YEARS, TEN_YEARS):
        clocks.set(jump)
        reading = clock.observe(reading)
        assert reading.trusted == 0
    clocks.wait(7)
    assert clock.observe(reading).trusted == 7 * SECOND


def test_after_a_reboot_only_the_time_since_boot_counts() -> None:
    clocks = TrueTime()
    clock = clocks.clock(100)
    reading = clock.observe(None)
    clocks.reboot(off=3600)
    clocks.wait(20)
    reading = clock.observe(reading)
    assert reading.trusted == 20 * SECOND
    clocks.reboot(off=0)
    clocks.set(-50)  # and the wall clock set back meanwhile
    clocks.wait(10)
    assert clock.observe(reading).trusted == 20 * SECOND


def test_the_devices_own_clocks() -> None:
    clock = DeviceClock(3600)
    first = clock.observe(None)
    second = clock.observe(first)
    assert 0 <= second.trusted <= second.monotonic - first.monotonic
    assert first.step <= clock.step <= time.time() // 3600
    assert 0 < since_boot() <= since_boot()


@pytest.mark.parametrize("seconds", [0, -5, float("nan"), float("inf"), 1e-9, True, "60", None])
def test_bad_intervals_are_refused(seconds: Any) -> None:
    with pytest.raises(InvalidValue):
        DeviceClock(seconds)


@pytest.mark.parametrize("reading", [float("nan"), float("-inf"), 1e300, "now"])
def test_bad_readings_are_refused(reading: Any) -> None:
    with pytest.raises(InvalidValue):
        DeviceClock(60, wall=lambda: reading).observe(None)
    with pytest.raises(InvalidValue):
        DeviceClock(60, monotonic=lambda: reading).observe(None)


STEP = 10


def most_in_any(spent: list[tuple[int, int, int]], steps: int, last: int) -> int:
    """The most that any steps of a given number cost: a run costs in every step from its first answer to its end."""
    totals = []
    for first in range(last // STEP + 2):
        low, high = first * STEP, (first + steps) * STEP
        totals.append(sum(units for units, begins, ends in spent if begins < high and ends >= low))
    return max(totals)


@pytest.mark.parametrize("seed", range(40))
def test_no_window_costs_more_than_is_promised(seed: int) -> None:
    draw, clock = random.Random(seed), ShownClock(STEP)
    limit, steps, own = draw.randint(4, 20), draw.randint(1, 5), draw.randint(3, 12)
    book, file = memory_book(
        clock,
        Promise(limit, steps, STEP, parts={"asks": limit}),
        Promise(own, 1, STEP, scope=of_question("study")),
        Promise(120, 0, parts={"asks": 120}),
    )
    spent: list[tuple[int, int, int]] = []
    studies: list[tuple[int, int, int]] = []
    refused = 0
    for _ in range(120):
        clock.wall = clock.trusted = now = clock.wall + draw.choice((0, 1, 3, STEP, 2 * STEP))
        question, units = draw.choice(("study", "popular")), draw.randint(1, 6)
        ends = now + draw.randint(0, 6 * STEP) if question == "study" else now
        with file.transaction():
            try:
                book.spend(clock.step, "asks", question, units, until=ends if question == "study" else None)
            except BudgetExceeded:
                refused += 1
                # It would have been too much: no promise is tighter than it says.
                with_debit = [*spent, (units, now, ends)]
                study_debits = [*studies, (units, now, ends)] if question == "study" else studies
                over = most_in_any(with_debit, steps, now) > limit or sum(debit[0] for debit in with_debit) > 120
                assert over or most_in_any(study_debits, 1, now) > own
                continue
        spent.append((units, now, ends))
        if question == "study":
            studies.append((units, now, ends))
        assert most_in_any(spent, steps, max(debit[2] for debit in spent)) <= limit
        assert most_in_any(studies, 1, max((debit[2] for debit in studies), default=0)) <= own
    assert spent
    assert refused
    file.close()


def test_a_clock_set_forward_does_not_bring_the_end_of_a_run_nearer() -> None:
    clock = ShownClock(STEP)
    book, file = memory_book(clock, Promise(10, 2, STEP, parts={"asks": 10}))
    with file.transaction():
        book.spend(0, "asks", "study", 10, until=5 * STEP - 1)
    for now, trusted, allowed in ((90 * STEP, 0, False), (91 * STEP, 5 * STEP, False), (92 * STEP, 6 * STEP, True)):
        clock.wall, clock.trusted = now, trusted
        with file.transaction(), nullcontext() if allowed else pytest.raises(BudgetExceeded):
            book.spend(clock.step, "asks", "popular", 10 if allowed else 1)
    file.close()
