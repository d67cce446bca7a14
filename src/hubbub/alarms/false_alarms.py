"""How often an alarm may be wrong, as people write it: "1 in 30d"."""

from __future__ import annotations

import re

from hubbub.collection.duration import seconds_of
from hubbub.core.errors import InvalidValue

DEFAULT_FALSE_ALARMS = "1 in 30d"
FEWEST_STEPS = 10
"""Steps between two false alarms below which no test is worth its name."""

_WRITTEN = re.compile(r"([0-9]{1,6}) in ([0-9]+[dhms])")


def false_alarms_a_step(text: object, step_seconds: int) -> float:
    """How many false alarms are allowed a step, on average.

    Example:
        >>> 1 / false_alarms_a_step("1 in 30d", 3600)
        720.0
        >>> false_alarms_a_step("often", 3600)
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: false_alarms: got 'often'; allowed: so many in a time, such as "1 in 30d"
    """
    number, seconds = written_rate(text)
    if seconds < FEWEST_STEPS * step_seconds * number:
        raise InvalidValue("false_alarms", text, f"at most one in {FEWEST_STEPS} steps of {step_seconds:,} seconds")
    return number * step_seconds / seconds


def written_rate(text: object) -> tuple[int, int]:
    """How many false alarms are allowed in how many seconds.

    Example:
        >>> written_rate("2 in 1d")
        (2, 86400)
    """
    found = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    number, seconds = (int(found[1]), seconds_of("false_alarms", found[2])) if found else (0, 0)
    if not number or not seconds:
        raise InvalidValue("false_alarms", text, 'so many in a time, such as "1 in 30d"')
    return number, seconds
