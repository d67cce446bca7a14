"""The rate of false alarms that is allowed, as it is written: "1 in 30d"."""

from __future__ import annotations

import re

from hubbub.collection.duration import seconds_of
from hubbub.core.errors import InvalidValue

DEFAULT_FALSE_ALARMS = "1 in 30d"
FEWEST_STEPS = 10
"""The fewest steps between two false alarms: with fewer, a test decides nothing."""

_WRITTEN = re.compile(r"([0-9]{1,6}) in ([0-9]+[dhms])")


def false_alarms_a_step(text: object, step_seconds: int) -> float:
    """The average number of false alarms that is allowed a step."""
    number, seconds = written_rate(text)
    if seconds < FEWEST_STEPS * step_seconds * number:
        raise InvalidValue("false_alarms", text, f"at most one in {FEWEST_STEPS} steps of {step_seconds:,} seconds")
    return number * step_seconds / seconds


def written_rate(text: object) -> tuple[int, int]:
    """The number of false alarms that is allowed, and in how many seconds."""
    match = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    number, seconds = (int(match[1]), seconds_of("false_alarms", match[2])) if match else (0, 0)
    if not number or not seconds:
        raise InvalidValue("false_alarms", text, 'a number in a time, such as "1 in 30d"')
    return number, seconds
