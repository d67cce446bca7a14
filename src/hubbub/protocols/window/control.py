"""The two controls that stream algorithms borrow: a PID controller and a Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate

Floats = NDArray[np.float64]

SPEEDS = 10.0 ** np.linspace(-4, 4, 17)
"""The squared movements a step that a filter considers, as parts of the noise of the first estimate."""
DOUBT = 0.003
"""The chance that a value changes its speed in a step, as the filter believes."""
TINY = 1e-30


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
    """A filter for each value: a random walk observed with noise of known variance, whose speed may change any time.

    How fast a value walks need not be known. Each value has a filter for each of several speeds, weighed by how well it
    foretold what came; the result is their mean. The filter doubts itself: at every correction each value may, with a
    small chance, have taken another speed, very fast ones among them. So a filter that was sure of a slow one, and is
    surprised, begins anew from what is heard (interacting multiple models, Blom and Bar-Shalom 1988).

    Its variance is what it believes; a stream that is no such walk errs more. No interval is made of it.

    Parameters
    ----------
    process_variance
        How much a value moves in a step, squared; None learns it, for each value.

    Example:
        >>> kalman = Kalman(0.01)
        >>> kalman.correct(Estimate([1.0], [0.5], 10)).tolist()
        [1.0]
        >>> kalman.advance()
        >>> kalman.variance.tolist()
        [0.51]
        >>> kalman.correct(Estimate([0.0], [0.51], 10)).tolist()
        [0.5]
    """

    remembered = ("_speeds", "_weights", "_values", "_variances")

    def __init__(self, process_variance: float | None = None) -> None:
        if process_variance is not None and not process_variance >= 0:
            raise InvalidValue("process_variance", process_variance, "a number of at least 0, or None")
        self.process_variance = process_variance
        self._speeds = np.zeros(0)
        self._weights = self._values = self._variances = np.zeros((0, 0))  # a row a speed, a column a value

    @property
    def begun(self) -> bool:
        """Whether anything was heard yet."""
        return bool(self._speeds.size)

    @property
    def value(self) -> Floats:
        """The values as far as they are known; none before the first correction."""
        return np.asarray((self._weights * self._values).sum(axis=0))

    @property
    def variance(self) -> Floats:
        """How far off the values are believed to be, squared."""
        return np.asarray((self._weights * (self._variances + (self._values - self.value) ** 2)).sum(axis=0))

    def advance(self, steps: int = 1) -> None:
        """Let so many steps pass."""
        self._variances = self._variances + steps * self._speeds[:, None]

    def correct(self, fresh: Estimate) -> Floats:
        """Weigh a fresh estimate against what is known; the values as far as they are known now."""
        noise = np.maximum(fresh.variance, TINY)
        if not self.begun:
            self._begin(fresh.value, noise)
            return self.value
        self._doubt()
        spread, off = self._variances + noise, fresh.value - self._values
        with np.errstate(divide="ignore"):
            fits = np.log(self._weights) - (np.log(spread) + off**2 / spread) / 2
        weights = np.exp(fits - fits.max(axis=0))
        gain = self._variances / spread
        self._weights = weights / weights.sum(axis=0)
        self._values, self._variances = self._values + gain * off, (1 - gain) * self._variances
        return self.value

    def _begin(self, value: Floats, noise: Floats) -> None:
        known = self.process_variance
        self._speeds = SPEEDS * float(np.mean(noise)) if known is None else np.array([known])
        rows = (len(self._speeds), 1)
        self._values, self._variances = np.tile(value, rows), np.tile(noise, rows)
        self._weights = np.tile(_usual(len(self._speeds)), (1, len(value)))

    def _doubt(self) -> None:
        """Let each value take another speed with a small chance: a speed's filter then goes on from the mean of all."""
        mean, variance = self.value, self.variance
        stayed = (1 - DOUBT) * self._weights
        weights = stayed + DOUBT * _usual(len(self._speeds))
        part = stayed / weights
        values = part * self._values + (1 - part) * mean
        self._variances = part * (self._variances + (self._values - values) ** 2) + (1 - part) * (
            variance + (mean - values) ** 2
        )
        self._weights, self._values = weights, values


def _usual(speeds: int) -> Floats:
    """How likely each speed is before anything is known: slow ones are likelier. A column."""
    weights = SPEEDS[:speeds] ** -0.25 / np.sqrt(1 + SPEEDS[:speeds])
    return np.asarray(weights / weights.sum())[:, None]
