"""Alarms over releases: a threshold with hysteresis, in standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import Release

__all__ = ["Alarm", "Monitor"]


@dataclass(frozen=True)
class Alarm:
    """What a monitor says of a step: the watched number with its interval, and whether the alarm is on.

    Example:
        >>> Alarm(step=3, value=0.2, low=0.1, high=0.3, on=True, changed=True).changed
        True
    """

    step: int
    value: float
    low: float
    high: float
    on: bool
    changed: bool


class Monitor:
    """Watches a weighted sum of the released values.

    The alarm goes on when the value is surely above `above` (its lower bound at `level` passes it), and off again
    when it is surely below `below`: noise alone does not make it flicker.

    Parameters
    ----------
    weights
        What is watched: one weight a value.
    above, below
        Where it goes on, and off; `below` is `above` unless given.
    level
        How sure one must be; 0.5 acts on the estimate alone, as the paper does.

    Example:
        >>> from hubbub import Estimate
        >>> monitor = Monitor([0, 1], above=0.5, below=0.4)
        >>> for step, share in enumerate([0.45, 0.6, 0.45, 0.3], start=1):
        ...     estimate = Estimate([1 - share, share], [1e-4, 1e-4], 9)
        ...     release = Release(step=step, estimates={"shares": estimate}, published=True, spent=0.0, n=9)
        ...     print(monitor.watch(release).on, end=" ")
        False True True False
    """

    def __init__(self, weights: ArrayLike, *, above: float, below: float | None = None, level: float = 0.95) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        self.above, self.below = above, above if below is None else below
        if not self.below <= self.above:
            raise InvalidValue("below", below, f"at most above = {above}")
        if not 0.5 <= level < 1:
            raise InvalidValue("level", level, "a probability from 0.5, below 1")
        self.level, self.on = level, False

    def watch(self, release: Release) -> Alarm:
        """Look at a release."""
        seen = release.estimate.linear(self.weights)
        value = float(seen.value[0])
        # Two sides, each of which the truth is past with a probability of at most 1 - level.
        low, high = (float(end[0]) for end in seen.interval(2 * self.level - 1)) if self.level > 0.5 else (value, value)
        before = self.on
        if not before and low > self.above:
            self.on = True
        elif before and high < self.below:
            self.on = False
        return Alarm(release.step, value, low, high, self.on, self.on != before)
