"""The two controls that stream algorithms borrow: a PID controller and a Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.window.drift import Drift

__all__ = ["Kalman", "Pid"]

LEAST = 0.05
"""The least movement a step, as a part of the noise: a filter that learned 0 would stop listening."""


@dataclass
class Pid:
    """Proportional, integral and derivative feedback of an error.

    Parameters
    ----------
    proportional, integral, derivative
        The gains; they sum to 1 by convention.
    memory
        How many errors the integral averages.

    Example:
        >>> Pid().feedback(0.5, elapsed=1)
        0.5
    """

    proportional: float = 0.9
    integral: float = 0.1
    derivative: float = 0.0
    memory: int = 5
    remembered: ClassVar[tuple[str, ...]] = ("_errors",)

    def __post_init__(self) -> None:
        if min(self.proportional, self.integral, self.derivative) < 0 or self.memory < 1:
            raise InvalidValue("gains", (self.proportional, self.integral, self.derivative), "gains of at least 0")
        self._errors: list[float] = []

    def feedback(self, error: float, *, elapsed: int = 1) -> float:
        """The controlled error, after so many steps since the last one.

        Example:
            >>> pid = Pid(0.0, 1.0, 0.0)
            >>> pid.feedback(1.0), pid.feedback(0.0)
            (1.0, 0.5)
        """
        change = (error - self._errors[-1]) / max(elapsed, 1) if self._errors else 0.0
        self._errors = [*self._errors[-self.memory + 1 :], error]
        average = sum(self._errors) / len(self._errors)
        return self.proportional * error + self.integral * average + self.derivative * change


class Kalman:
    """A scalar filter for each value: a random walk observed with noise of known variance.

    Parameters
    ----------
    process_variance
        How much a value moves in a step, squared; None learns it from how far predictions were off.

    Example:
        >>> kalman = Kalman(0.01)
        >>> kalman.predict() is None
        True
        >>> kalman.correct(Estimate([1.0], [0.5], 10)).value.tolist()
        [1.0]
        >>> kalman.predict().variance.tolist()
        [0.51]
        >>> kalman.correct(Estimate([0.0], [0.51], 10)).value.tolist()
        [0.5]
    """

    remembered = ("_drift", "_state", "_corrected", "_noise", "_elapsed")

    def __init__(self, process_variance: float | None = None) -> None:
        if process_variance is not None and not process_variance >= 0:
            raise InvalidValue("process_variance", process_variance, "a number of at least 0, or None")
        self.process_variance = process_variance
        self._drift = Drift()
        self._state: Estimate | None = None
        self._corrected = 0.0  # the mean variance right after the last correction
        self._noise = 0.0  # the mean variance of the last fresh estimate
        self._elapsed = 0

    def predict(self) -> Estimate | None:
        """The value of the next step as far as it is known; None before the first correction."""
        if self._state is not None:
            process = self.process_variance
            if process is None:
                process = max(self._drift.per_step, LEAST * self._noise)
            grown = self._state.variance + process
            self._elapsed += 1
            self._state = Estimate(self._state.value, grown, self._state.n, bias="heuristic", kind=self._state.kind)
        return self._state

    def correct(self, fresh: Estimate) -> Estimate:
        """Weigh a fresh estimate against the prediction."""
        self._noise = float(np.mean(fresh.variance))
        if self._state is None:
            self._remember(fresh)
            return fresh
        off = float(np.mean((fresh.value - self._state.value) ** 2) - np.mean(fresh.variance)) - self._corrected
        self._drift.observe(off, steps=max(self._elapsed, 1))
        gain = self._state.variance / (self._state.variance + fresh.variance)
        value = self._state.value + gain * (fresh.value - self._state.value)
        variance = (1 - gain) * self._state.variance
        filtered = Estimate(value, variance, fresh.n, bias="heuristic", kind=fresh.kind, labels=fresh.labels)
        self._remember(filtered)
        return filtered

    def _remember(self, state: Estimate) -> None:
        self._state, self._corrected, self._elapsed = state, float(np.mean(state.variance)), 0
