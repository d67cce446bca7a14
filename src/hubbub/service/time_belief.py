"""Which time a collector believes: a pure rule over readings of the wall clock and of the clock since boot.

Wall time that moves as the clock since boot does is believed. A jump that elapsed time does not explain is held *in
doubt*: the collector goes on by the time that it trusted before. A jump that lasts for `hold` seconds is accepted, and
remembered for a day: if wall time goes back to where it was, the collector follows at once.

After a reboot, or on another machine, only the last stored time is known: the true time is that or later. If the
machine was off for less than `hold`, wall time is believed at once; a longer time off is held in doubt like any other
jump.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

MEMORY = 86400.0
"""Seconds, by the clock since boot, for which an accepted jump may be taken back at once, and for which nothing is
deleted because of it."""


class ClockReading(NamedTuple):
    """Wall time in Unix seconds, seconds since boot (sleep included), and which boot that was."""

    wall: float
    since_boot: float
    boot: str


@dataclass(frozen=True)
class Jump:
    """An accepted jump of `size` seconds, made when the collector had lived `at` seconds.

    `loose`: it followed a reboot, so the true time may be anywhere between the times before and after it.
    """

    at: float
    size: float
    loose: bool


@dataclass(frozen=True)
class Doubt:
    """Wall time has been `ahead` of trusted time since the collector had lived `since` seconds."""

    since: float
    ahead: float


@dataclass(frozen=True)
class Belief:
    """The time that is believed, and the last reading of the clocks.

    Parameters
    ----------
    trusted
        The time that the collector uses, in Unix seconds.
    wall, since_boot, boot
        The last reading.
    lived
        Seconds that were observed to pass, over all boots: the scale of `Jump.at` and `Doubt.since`.
    tied
        Whether wall time was believed since this boot. Until then `trusted` is only the earliest possible time.
    jumps
        The accepted jumps of the last day, oldest first.
    doubt
        The jump that is in doubt now.
    """

    trusted: float
    wall: float
    since_boot: float
    boot: str
    lived: float = 0.0
    tied: bool = True
    jumps: tuple[Jump, ...] = ()
    doubt: Doubt | None = None


def believe(before: Belief | None, reading: ClockReading, *, hold: float, tolerance: float) -> Belief:
    """The belief after one more reading.

    Parameters
    ----------
    before
        The belief before; None if nothing is known: then wall time is believed.
    reading
        The clocks now.
    hold
        Seconds for which a jump is held in doubt.
    tolerance
        Seconds that wall time may jump without being doubted: clocks are corrected all the time.
    """
    if before is None:
        return Belief(reading.wall, reading.wall, reading.since_boot, reading.boot)
    same_boot = reading.boot == before.boot and reading.since_boot >= before.since_boot
    passed = reading.since_boot - before.since_boot if same_boot else 0.0
    lived = before.lived + passed
    now = Belief(
        trusted=before.trusted + passed,
        wall=reading.wall,
        since_boot=reading.since_boot,
        boot=reading.boot,
        lived=lived,
        tied=before.tied and same_boot,
        jumps=tuple(jump for jump in before.jumps if lived - jump.at < MEMORY),
        doubt=before.doubt if same_boot else None,
    )
    ahead = now.wall - now.trusted
    if -tolerance <= ahead <= (tolerance if now.tied else max(hold, tolerance)):
        return _believed(now, now.jumps)
    for index, earliest, latest in _times_without_jump(now, hold, tolerance):
        if earliest - tolerance <= now.wall <= latest:
            jump = replace(now.jumps[index], size=now.wall - earliest)
            remaining = (jump,) if jump.size > max(hold, tolerance) else ()
            return _believed(now, (*now.jumps[:index], *remaining))
    doubt = now.doubt
    if doubt is None or abs(ahead - doubt.ahead) > tolerance:  # a first jump, or another one
        doubt = Doubt(lived, ahead)
    if lived - doubt.since < hold:
        return replace(now, doubt=doubt)
    return _believed(now, (*now.jumps, Jump(lived, ahead, loose=not now.tied)))


def settled(belief: Belief) -> float:
    """The earliest possible time, if any of the last day's jumps was wrong. Deletion uses this time."""
    times = [belief.trusted] if belief.doubt is None else [belief.trusted, belief.wall]
    without_jumps = belief.trusted
    for jump in reversed(belief.jumps):
        without_jumps -= jump.size
        times.append(without_jumps)
    return min(times)


def _believed(now: Belief, jumps: tuple[Jump, ...]) -> Belief:
    return replace(now, trusted=now.wall, tied=True, jumps=jumps, doubt=None)


def _times_without_jump(now: Belief, hold: float, tolerance: float) -> list[tuple[int, float, float]]:
    """For each jump, latest first: its index, and the earliest and latest time now if it and all later ones were wrong.

    After a reboot only the earliest time is certain: every time up to the believed one is possible.
    """
    times = []
    with_jump = now.trusted
    for index in reversed(range(len(now.jumps))):
        jump = now.jumps[index]
        earliest = with_jump - jump.size
        loose = jump.loose or not now.tied
        latest = with_jump if loose and jump.size > 0 else earliest + (max(hold, tolerance) if loose else tolerance)
        times.append((index, earliest, latest))
        with_jump = earliest
    return times
