"""Time as an object: nothing that decides anything reads the system's clock by itself."""

from __future__ import annotations

import time
from typing import Protocol

from hubbub.core.errors import InvalidValue


class Clock(Protocol):
    """Something that knows the time."""

    def now(self) -> float:
        """Unix seconds."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()


class ManualClock:
    """A clock that stands still until it is moved, for tests and simulations."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = float(now)

    def now(self) -> float:
        """Unix seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Example:
            >>> ManualClock().advance(-1.0)
            Traceback (most recent call last):
                ...
            hubbub.core.errors.InvalidValue: seconds: got -1.0; allowed: at least 0; `set` moves a clock back
        """
        if not seconds >= 0:
            raise InvalidValue("seconds", seconds, "at least 0; `set` moves a clock back")
        self._now += seconds

    def set(self, now: float) -> None:
        """Put the clock anywhere: clocks do jump."""
        self._now = float(now)
