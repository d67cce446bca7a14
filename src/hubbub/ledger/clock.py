"""The time of a device whose wall clock anyone may set: which step it is in, and how much time has surely passed."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from hubbub.core.errors import HubbubError, InvalidValue

TICKS = 10**6
"""Ticks a second: readings are kept in whole microseconds."""

_MOST_SECONDS = 10**12


def since_boot() -> float:
    """Seconds since the device was started, sleep included where the system counts it."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Observation(NamedTuple):
    """One reading of a device's clocks, in whole ticks, and the trusted time up to then. The ledger stores the last."""

    step: int
    wall: int
    monotonic: int
    trusted: int


class LedgerClock(Protocol):
    """What a ledger needs of a clock. The ledger stores each reading and gives it to the next `observe`."""

    @property
    def interval(self) -> int:
        """The length of a step, in ticks."""
        ...

    @property
    def origin(self) -> int:
        """Where step 0 begins, in ticks of the wall clock."""
        ...

    def observe(self, last: Observation | None) -> Observation:
        """The clock now. Trusted time never runs ahead of true time."""
        ...


class StepRefused(HubbubError):
    """The device does not answer this step: it is in another one, or its clock cannot be trusted."""

    def __init__(self, step: int, why: str) -> None:
        self.step = step
        self.why = why
        super().__init__(f"step {step}: {why}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.step, self.why)


class DeviceClock:
    """Steps by the wall clock; trusted time by the smaller of the wall clock and the clock since boot.

    The step is floor((wall - origin) / interval). Trusted time adds up, between one observation and the next, the
    smaller of what the two clocks say has passed. A wall clock set forward is held back by the other; one set back
    adds nothing. A monotonic clock that went back means a reboot, and then only the time since boot counts. So trusted
    time never runs ahead of true time; it falls behind while the device is off.

    `interval_seconds`: the length of a step, in the signed collection. `origin`: the wall time at which step 0 begins,
    in the signed collection. `wall`, `monotonic`: the two clocks, in seconds. The monotonic one counts from boot.
    """

    def __init__(
        self,
        interval_seconds: float,
        *,
        origin: float = 0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = since_boot,
    ) -> None:
        self._interval = _ticks("interval_seconds", interval_seconds)
        if self._interval < 1:
            raise InvalidValue("interval_seconds", interval_seconds, "at least a microsecond")
        self._origin = _ticks("origin", origin)
        self._wall = wall
        self._monotonic = monotonic

    @property
    def interval(self) -> int:
        """The length of a step, in microseconds."""
        return self._interval

    @property
    def origin(self) -> int:
        """Where step 0 begins, in microseconds."""
        return self._origin

    @property
    def step(self) -> int:
        """The step that the wall clock is in: the only one that may be answered."""
        return self._step(_ticks("wall", self._wall()))

    def observe(self, last: Observation | None) -> Observation:
        """Read both clocks, and trust the smaller of what passed since the last reading."""
        wall, monotonic = _ticks("wall", self._wall()), _ticks("monotonic", self._monotonic())
        trusted = 0 if last is None else last.trusted + max(0, self._passed(last, wall, monotonic))
        return Observation(self._step(wall), wall, monotonic, trusted)

    def _passed(self, last: Observation, wall: int, monotonic: int) -> int:
        since = monotonic - last.monotonic if monotonic >= last.monotonic else monotonic
        return min(wall - last.wall, since)

    def _step(self, wall: int) -> int:
        return (wall - self._origin) // self._interval


def _ticks(field: str, seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise InvalidValue(field, seconds, "a finite number of seconds")
    if not -_MOST_SECONDS <= seconds <= _MOST_SECONDS:
        raise InvalidValue(field, seconds, "a number of seconds within 10^12")
    return round(seconds * TICKS)
