"""Time as an object, which nothing reads by itself, and durations as people write them."""

import re
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


_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NAMES = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
_WRITTEN = re.compile(r"([0-9]{1,9})([dhms])")


def seconds_of(field: str, text: object) -> int:
    """The whole seconds of a duration."""
    written = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    if written is None:
        raise InvalidValue(field, text, 'a duration such as "1d", "1h", "10m" or "30s"')
    return int(written[1]) * _UNITS[written[2]]


def duration_text(seconds: int) -> str:
    """A duration in words."""
    for letter, size in _UNITS.items():
        if seconds % size == 0:
            count = seconds // size
            return f"{count:,} {_NAMES[letter]}{'s' * (count != 1)}"
    raise InvalidValue("seconds", seconds, "a whole number")


def every(seconds: int) -> str:
    """How often something happens that has this interval, in words."""
    return f"every {span(seconds)}"


def span(seconds: int) -> str:
    """A duration in words as it follows "any" or "every": without the number where it is 1."""
    return duration_text(seconds).removeprefix("1 ")
