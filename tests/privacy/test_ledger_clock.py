"""Trusted time never runs ahead of true time, whatever is done to the clocks."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.ledger.clock import DeviceClock, since_boot

TEN_YEARS = 10 * 365 * 86400
SECOND = 10**6


class Clocks:
    """A wall clock that can be set and a clock since boot, over a true time that both are told of."""

    def __init__(self) -> None:
        self.true = 10**6
        self.boot = 10**6 - 500
        self.error = 0

    def wall(self) -> float:
        return float(self.true + self.error)

    def since_boot(self) -> float:
        return float(self.true - self.boot)

    def reboot(self, off: int) -> None:
        self.true += off
        self.boot = self.true

    def clock(self, interval: int = 100) -> DeviceClock:
        return DeviceClock(interval, wall=self.wall, monotonic=self.since_boot)


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


@settings(deadline=None, database=None, max_examples=4 * settings.default.max_examples)
@given(MOVES)
def test_trusted_time_is_at_most_true_time(moves: list[tuple[str, int]]) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    start, reading = clocks.true, clock.observe(None)
    for move, seconds in moves:
        if move == "wait":
            clocks.true += seconds
        elif move == "set":
            clocks.error += seconds
        elif move == "reboot":
            clocks.reboot(seconds)
        else:
            before, reading = reading, clock.observe(reading)
            assert before.trusted <= reading.trusted <= (clocks.true - start) * SECOND


@settings(deadline=None, database=None)
@given(st.lists(st.integers(0, 1000)))
def test_trusted_time_is_true_time_while_the_clocks_are_honest(waits: list[int]) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    reading = clock.observe(None)
    for wait in waits:
        clocks.true += wait
        reading = clock.observe(reading)
    assert reading.trusted == sum(waits) * SECOND


def test_ten_years_forward_and_back_add_nothing() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    reading = clock.observe(None)
    for jump in (TEN_YEARS, -TEN_YEARS, -TEN_YEARS, TEN_YEARS):
        clocks.error += jump
        reading = clock.observe(reading)
        assert reading.trusted == 0
    clocks.true += 7
    assert clock.observe(reading).trusted == 7 * SECOND


def test_after_a_reboot_only_the_time_since_boot_counts() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    reading = clock.observe(None)
    clocks.reboot(off=3600)
    clocks.true += 20
    reading = clock.observe(reading)
    assert reading.trusted == 20 * SECOND
    clocks.reboot(off=0)
    clocks.error -= 50  # and the wall clock set back meanwhile
    clocks.true += 10
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
