"""The two controls that stream algorithms borrow: a PID controller and a Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate

__all__ = ["Kalman", "Pid"]

SPEEDS = 10.0 ** np.linspace(-4, 4, 17)
"""The squared movements a step that a filter considers, as parts of the noise of the first estimate."""
TRUST_MEMORY = 0.99
"""How much of its record a speed keeps at each correction: what moves may change its pace."""
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
    """A filter for each value: a random walk observed with noise of known variance.

    How fast the walk is need not be known. A filter runs for each of several speeds, each is trusted by how well it
    foretold what came, and the result is their mean, as uncertain as they are and as they differ.

    Parameters
    ----------
    process_variance
        How much a value moves in a step, squared; None learns it.

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

    remembered = ("_speeds", "_trust", "_values", "_variances", "_latest")

    def __init__(self, process_variance: float | None = None) -> None:
        if process_variance is not None and not process_variance >= 0:
            raise InvalidValue("process_variance", process_variance, "a number of at least 0, or None")
        self.process_variance = process_variance
        self._speeds = self._trust = self._values = self._variances = np.zeros(0)  # one row a speed
        self._latest: Estimate | None = None

    @property
    def movement(self) -> float:
        """How much a value moves in a step, squared, as far as it is known; 0 before anything is."""
        return float(self._weights @ self._speeds) if self._latest is not None else 0.0

    def advance(self, steps: int = 1) -> None:
        """Let so many steps pass."""
        if self._latest is not None:
            self._variances = self._variances + steps * self._speeds[:, None]

    def mean(self) -> Estimate | None:
        """The value as far as it is known; None before the first correction."""
        if self._latest is None:
            return None
        weights = self._weights
        value = weights @ self._values
        variance = weights @ (self._variances + (self._values - value) ** 2)
        like = self._latest
        return Estimate(value, variance, like.n, bias="heuristic", kind=like.kind, labels=like.labels)

    def predict(self) -> Estimate | None:
        """The value of the next step as far as it is known; None before the first correction."""
        self.advance()
        return self.mean()

    def correct(self, fresh: Estimate) -> Estimate:
        """Weigh a fresh estimate against the prediction."""
        noise = np.maximum(fresh.variance, TINY)
        if self._latest is None:
            known = self.process_variance
            self._speeds = SPEEDS * float(np.mean(noise)) if known is None else np.array([known])
            self._trust = -np.log1p(SPEEDS[: len(self._speeds)]) / 2  # far above the noise is less likely at first
            self._values = np.tile(fresh.value, (len(self._speeds), 1))
            self._variances = np.tile(noise, (len(self._speeds), 1))
            self._latest = fresh
            return fresh
        spread, off = self._variances + noise, fresh.value - self._values
        fits = -np.mean(np.log(spread) + off**2 / spread, axis=1) / 2
        trust = TRUST_MEMORY * self._trust + max(off.shape[1] - 1, 1) * fits  # shares sum to 1: one is not free
        self._trust = trust - trust.max()
        gain = self._variances / spread
        self._values, self._variances = self._values + gain * off, (1 - gain) * self._variances
        self._latest = fresh
        return cast(Estimate, self.mean())

    @property
    def _weights(self) -> NDArray[np.float64]:
        weights = np.exp(self._trust)
        return np.asarray(weights / weights.sum())
