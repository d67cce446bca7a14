"""Durations as people write them: "1h", "10m", "30s", "1d"."""

from __future__ import annotations

import re

from hubbub.core.errors import InvalidValue

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
