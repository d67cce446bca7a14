"""The alarm of a watched stream: the collector's sequential test, on the estimate of each step's own reports."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hubbub.alarms.errors import stderr_at
from hubbub.alarms.limits import limits_for
from hubbub.alarms.sequential import SequentialTest, WatchState
from hubbub.core.errors import InvalidValue
from hubbub.protocols.release import Release

STEPS_A_FALSE_ALARM = 1000
"""How many steps there are to a false alarm, on average, if the truth is always at the threshold."""


class StreamAlarm:
    """Goes on once the truth is found above a threshold, and off once it is found below another.

    Parameters
    ----------
    weights
        What is watched: one weight a value.
    above, below
        Where it goes on, and off.
    """

    def __init__(self, weights: ArrayLike, *, above: float, below: float) -> None:
        if not below <= above:
            raise InvalidValue("below", below, f"at most above = {above}")
        self.above, self.below = above, below
        self._weights = np.asarray(weights, dtype=np.float64)
        limits = limits_for(1 / STEPS_A_FALSE_ALARM)
        self._test = SequentialTest(sides=("above",), raises=limits, clears=limits, threshold=above, ends=below)
        self._state = WatchState()

    @property
    def on(self) -> bool:
        """Whether it is on."""
        return self._state.raised is not None

    def judge(self, release: Release) -> bool:
        """Judge a release; return whether that turned the alarm on or off. A step without reports changes nothing."""
        own = release.own
        if own is None or not own.n:
            return False
        watched, expected = own.linear(self._weights), self._test.expects(self._state)
        at_null = 0.0 if expected is None else stderr_at(own, self._weights, expected)
        value, stderr = float(watched.value[0]), max(float(watched.stderr[0]), at_null)
        if not (math.isfinite(value) and 0 < stderr < math.inf):
            return False
        self._state, verdict = self._test.update(self._state, release.step, value, stderr)
        return verdict is not None
