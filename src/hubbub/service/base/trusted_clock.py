"""The collector's clock: wall time as far as it can be believed, also across restarts.

Which time a collector believes: a pure rule over readings of the wall clock and of the clock since boot.

Wall time that moves as the clock since boot does is believed. A jump that elapsed time does not explain is held *in
doubt*: the collector goes on by the time that it trusted before. A jump that lasts for `hold` seconds is accepted, and
remembered for a day: if wall time goes back to where it was, the collector follows at once.

After a reboot, or on another machine, only the last stored time is known: the true time is that or later. If the
machine was off for less than `hold`, wall time is believed at once; a longer time off is held in doubt like any other
jump.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from hubbub.collection import SignedCollection
from hubbub.core.errors import InvalidValue
from hubbub.ledger.clock import since_boot
from hubbub.random.source import Random
from hubbub.service.base.api import ClockBody
from hubbub.service.base.logs import log

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


HOLD = 300.0
"""Seconds for which a jump of wall time is held in doubt, where steps are ten minutes or longer."""

_SAVE = 30.0
"""Seconds between two stored times, if the belief does not change otherwise."""

_GLANCE = 0.1
_MOST_TOLERANCE, _LEAST_TOLERANCE = 10.0, 1.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_clocks() -> ClockReading:
    """The machine's clocks now."""
    return ClockReading(time.time(), since_boot(), _boot())


@cache
def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:  # no id of the boot: each start of the process counts as a boot
        return Random().bytes(8).hex()


def hold_for(collections: Iterable[SignedCollection]) -> float:
    """Seconds to hold a jump in doubt: at most half of the shortest step, so that a true jump costs less than that."""
    return min([HOLD, *(collection.step_seconds / 2 for collection in collections)])


@dataclass(frozen=True)
class ClockStatus:
    """The state of the clock.

    Parameters
    ----------
    state
        "sure"; "in doubt" (wall time jumped, and is not believed yet); "moved" (a jump was accepted within a day).
    trusted, wall
        The time that the collector uses, and the machine's, in Unix seconds.
    ahead
        Seconds by which wall time is ahead of trusted time; for "moved", the seconds of the accepted jumps.
    seconds_left
        For "in doubt": seconds until wall time is believed, if it does not jump again.
    known
        False if the trusted time is only the earliest possible time.
    """

    state: Literal["sure", "in doubt", "moved"]
    trusted: float
    wall: float
    ahead: float = 0.0
    seconds_left: float = 0.0
    known: bool = True


class TrustedClock:
    """A clock that does not follow every jump of wall time: see `hubbub.service.base.trusted_clock`.

    `hold`: seconds for which a jump is held in doubt; 0 believes every jump at once.
    """

    def __init__(
        self, stored: str | None, *, hold: float = HOLD, read: Callable[[], ClockReading] = read_clocks
    ) -> None:
        if not hold >= 0:
            raise InvalidValue("hold", hold, "a number of seconds from 0")
        self.hold = hold
        self._tolerance = min(max(hold / 30, _LEAST_TOLERANCE), _MOST_TOLERANCE)
        self._read = read
        self._lock = threading.Lock()
        self._saved: Belief | None = None
        before = _decoded(stored)
        self._belief = self._next(before)
        if before is not None and before.doubt is not None and self._belief.doubt == before.doubt:
            _log_change(replace(before, doubt=None), self._belief)  # each process logs the doubt once

    def now(self) -> float:
        """The trusted time, in Unix seconds."""
        reading, belief = self._read(), self._belief
        passed = reading.since_boot - belief.since_boot
        # This is called with every request: while wall time moves with the clock since boot, the belief is not updated.
        sure = belief.doubt is None and belief.tied and belief.boot == reading.boot
        if sure and 0 <= passed < _GLANCE and abs(reading.wall - belief.trusted - passed) < _GLANCE:
            return reading.wall
        return self._observe().trusted

    def settled(self) -> float:
        """The earliest possible time. Deletion uses this time."""
        return settled(self._observe())

    def status(self) -> ClockStatus:
        """The state of the clock now."""
        belief = self._observe()
        if belief.doubt is not None:
            left = max(self.hold - (belief.lived - belief.doubt.since), 0.0)
            ahead = belief.wall - belief.trusted
            return ClockStatus("in doubt", belief.trusted, belief.wall, ahead, left, belief.tied)
        if belief.jumps:
            return ClockStatus("moved", belief.trusted, belief.wall, sum(jump.size for jump in belief.jumps))
        return ClockStatus("sure", belief.trusted, belief.wall)

    def record(self) -> str | None:
        """The record to store now; None while the last one is recent enough. The caller must store the record."""
        belief, saved = self._observe(), self._saved
        if saved is not None and _same_state(saved, belief) and belief.lived - saved.lived < _SAVE:
            return None
        self._saved = belief
        return msgspec.json.encode(belief).decode()

    def _observe(self) -> Belief:
        with self._lock:
            self._belief = self._next(self._belief)
            return self._belief

    def _next(self, before: Belief | None) -> Belief:
        belief = believe(before, self._read(), hold=self.hold, tolerance=self._tolerance)
        if before is not None:
            _log_change(before, belief)
        return belief


def clock_body(status: ClockStatus) -> ClockBody:
    """A status as the API shows it: with both times if they differ, or differed within a day."""
    if status.state == "sure":
        return ClockBody(state=status.state)
    left = round(status.seconds_left) if status.state == "in doubt" else msgspec.UNSET
    ahead, going_by, wall = round(status.ahead), moment(status.trusted), moment(status.wall)
    return ClockBody(state=status.state, ahead_seconds=ahead, going_by=going_by, wall=wall, seconds_left=left)


def moment(seconds: float) -> str:
    """A time in ISO 8601, or as a plain number if it is out of range.

    Example:
        >>> moment(0.0), moment(1e15)
        ('1970-01-01T00:00:00Z', '1e+15')
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def _same_state(a: Belief, b: Belief) -> bool:
    return (a.boot, a.tied, a.jumps, a.doubt) == (b.boot, b.tied, b.jumps, b.doubt)


def _decoded(stored: str | None) -> Belief | None:
    if stored is None:
        return None
    try:
        return msgspec.json.decode(stored, type=Belief)
    except (msgspec.DecodeError, ValueError) as error:
        log("clock forgotten", level=logging.WARNING, detail=str(error))  # as if the store were new
        return None


def _log_change(before: Belief, now: Belief) -> None:
    """Log a change of the belief, with both times."""
    if now.doubt is not None:
        if before.doubt is None or before.doubt.since != now.doubt.since:
            log("clock in doubt", level=logging.WARNING, wall=moment(now.wall), going_by=moment(now.trusted))
        return
    moved = now.trusted - before.trusted - (now.lived - before.lived)
    if now.jumps and now.jumps[-1].at == now.lived and now.jumps[-1] not in before.jumps:
        otherwise = now.trusted - now.jumps[-1].size
        log("clock accepted", level=logging.WARNING, going_by=moment(now.trusted), instead_of=moment(otherwise))
    elif set(before.jumps) - set(now.jumps) and abs(moved) > _LEAST_TOLERANCE:
        otherwise = now.trusted - moved
        log("clock returned", level=logging.WARNING, going_by=moment(now.trusted), instead_of=moment(otherwise))
    elif before.doubt is not None:
        log("clock sure", going_by=moment(now.trusted))
