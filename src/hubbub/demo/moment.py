"""A release as `hubbub watch` shows it, and what a run must have to be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from hubbub.demo.step_times import StepTimes


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

    def to_dict(self) -> dict[str, Any]:
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
