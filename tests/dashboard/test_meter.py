"""How fast reports come in."""

from __future__ import annotations

from itertools import pairwise

from hubbub.collection import ManualClock
from hubbub.dashboard.app import Meter
from hubbub.dashboard.ingest import rate_now


def test_nothing_is_lost_between_intervals_and_nothing_counted_twice():
    clock = ManualClock(1000.0)
    meter = Meter(clock, seconds=10.0, keep=50)
    for second in range(400):
        meter.add({("a", "accepted"): 3, ("a", "late"): 1, ("a", "duplicate"): 9, ("b", "accepted"): second})
        clock.advance(1.0)
    intervals = meter.intervals("a")
    assert sum(interval.accepted for interval in intervals) == 1200
    assert sum(interval.rejected for interval in intervals) == 400
    assert all(after.start - before.start == 10.0 for before, after in pairwise(intervals))
    assert round(rate_now(intervals), 3) == 3.0


def test_what_is_old_is_forgotten_and_memory_is_bounded():
    clock = ManualClock(0.0)
    meter = Meter(clock, seconds=1.0, keep=10)
    for _ in range(10_000):
        meter.add({("a", "accepted"): 1})
        clock.advance(1.0)
    assert len(meter._counts["a"]) <= 21
    intervals = meter.intervals("a")
    assert (len(intervals), intervals[-1].start) == (10, 10_000.0)
    clock.advance(1000.0)
    assert sum(interval.accepted for interval in meter.intervals("a")) == 0


def test_a_clock_that_jumps_breaks_nothing():
    clock = ManualClock(5000.0)
    meter = Meter(clock)
    meter.add({("a", "accepted"): 1})
    clock.set(100.0)
    meter.add({("a", "accepted"): 1})
    assert [interval.accepted for interval in meter.intervals("a")] == [2]
    assert all(interval.seconds > 0 for interval in meter.intervals("a"))
    assert meter.intervals("unknown")[0].accepted == 0


def test_what_came_before_a_restart_is_shown_minute_by_minute():
    clock = ManualClock(60_090.0)
    meter = Meter(clock, earlier={"a": [(997, 600, 6), (1000, 60, 0), (1001, 30, 1)], "b": []})
    meter.add({("a", "accepted"): 5})
    clock.advance(15.0)
    intervals = meter.intervals("a")
    assert [(interval.start, interval.seconds, interval.accepted, interval.rejected) for interval in intervals] == [
        (59_820.0, 60.0, 600, 6),
        (59_880.0, 60.0, 0, 0),
        (59_940.0, 60.0, 0, 0),
        (60_000.0, 60.0, 60, 0),
        (60_060.0, 30.0, 30, 1),
        (60_090.0, 10.0, 5, 0),
        (60_100.0, 5.0, 0, 0),
    ]
    assert len(meter.intervals("b")) == 2
    clock.advance(3600.0)
    assert {interval.seconds for interval in meter.intervals("a")[:-1]} == {10.0}
