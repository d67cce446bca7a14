"""A release as `hubbub watch` shows it, and times in a file as steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.rehearse.columns import CodedColumn, first_rows, number_of

MOST_STEPS = 100_000
_SECONDS, _MILLISECONDS = (1e8, 1e11), (1e11, 1e14)  # Unix times of the years 1973 to 5138, in either unit


@dataclass(frozen=True)
class StepTimes:
    """When steps are: step 1 begins at `start` (Unix seconds) and each lasts `seconds`."""

    start: float
    seconds: int

    def begins(self, step: int) -> float:
        """When a step begins, in Unix seconds."""
        return self.start + (step - 1) * self.seconds

    def label(self, step: int) -> str:
        """When a step begins, as it is written: UTC, no finer than steps are."""
        when = datetime.fromtimestamp(self.begins(step), UTC)
        if self.seconds % 86400 == 0:
            return when.strftime("%Y-%m-%d")
        return when.strftime("%Y-%m-%d %H:%M" if self.seconds % 60 == 0 else "%Y-%m-%d %H:%M:%S")

    def tick(self, step: int) -> str | None:
        """What stands below a step on an axis, if anything: about every tenth step has its time, midnight its day."""
        when, at = datetime.fromtimestamp(self.begins(step), UTC), self.begins(step)
        every = next((round_ for round_ in _TICKS if round_ >= 8 * self.seconds), 8 * self.seconds)
        if self.seconds >= 86400:
            return when.strftime("%m-%d") if step % 10 == 0 else None
        if at % every >= self.seconds:
            return None
        return when.strftime("%m-%d") if at % 86400 < self.seconds else when.strftime("%H:%M")


_TICKS = (10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400)


def time_of(label: str) -> float:
    """The Unix time that a label spells, to a finite number of seconds; NaN where it spells none.

    It is ISO 8601, in UTC unless it says otherwise, or Unix seconds or milliseconds since 1973.
    """
    number = number_of(label)
    if _SECONDS[0] <= number < _SECONDS[1]:
        return number
    if _MILLISECONDS[0] <= number < _MILLISECONDS[1]:
        return number / 1000
    if not math.isnan(number):
        return math.nan
    try:
        when = datetime.fromisoformat(label)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def time_column(path: Path) -> str:
    """The one column of a file whose first values are all times."""
    times = [name for name, values in first_rows(path).items() if _are_times(values)]
    if len(times) != 1:
        number = f"{len(times)} columns of times{': ' + ', '.join(times) if times else ''}"
        raise InvalidValue("step column", number, "one, such as 2026-01-30T14:05:00Z, or --step with its name")
    return times[0]


def read_times(when: CodedColumn, name: str, seconds: int) -> tuple[Ints, Floats, StepTimes]:
    """The step of each row, from 1 on, its time, and when steps are: whole hours of UTC, if a step is an hour."""
    times = np.array([time_of(label) for label in when.labels])
    if np.isnan(times).any():
        wrong = when.labels[int(np.argmax(np.isnan(times)))]
        raise InvalidValue("step column", wrong, f"times only in {name}, such as 2026-01-30T14:05:00Z or Unix seconds")
    first, last = (math.floor(end / seconds) for end in (times.min(), times.max()))
    if last - first >= MOST_STEPS:
        raise InvalidValue("every", f"{last - first + 1:,} steps", f"at most {MOST_STEPS:,}: take longer ones")
    steps = np.floor(times / seconds).astype(np.int64) - first + 1
    return steps[when.codes], times[when.codes], StepTimes(float(first * seconds), seconds)


def _are_times(values: Sequence[str]) -> bool:
    return bool(values) and not any(math.isnan(time_of(value)) for value in values)


@dataclass(frozen=True)
class Moment:
    """A release of a watched stream: the watched number with its 95% interval, and whether the alarm is on.

    The number is NaN before the first report; the ends of its interval are NaN in every step without reports. `spent`
    is the epsilon that the steps of the window took, on average over the devices; `n` is the estimated number of
    devices; `time` is when the step begins, in Unix seconds, if that is known. For simulated devices, `truth` is the
    true number and `bits` the bits that a device has sent and received so far, on average.
    """

    step: int
    value: float
    low: float
    high: float
    published: bool
    spent: float
    n: float
    alarm: bool
    changed: bool
    truth: float = math.nan
    bits: float = math.nan
    time: float | None = None

    def to_dict(self) -> dict[str, object]:
        """The moment as JSON: only what the server knows, without the truth and the devices' own counts."""
        keys = ("step", "value", "low", "high", "published", "spent", "n", "alarm")
        when = {} if self.time is None else {"time": datetime.fromtimestamp(self.time, UTC).isoformat()}
        return when | {key: getattr(self, key) for key in keys}


class Watched(Protocol):
    """A run as it is drawn: its moments, whether they are shares, what they can be, thresholds, and when steps are."""

    moments: list[Moment]
    share: bool
    span: tuple[float, float]
    thresholds: tuple[float, ...]
    times: StepTimes | None
