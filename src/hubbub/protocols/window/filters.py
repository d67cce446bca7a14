"""The release of a step: the last publication or a filtered value; the PID controller and the Kalman filter."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.core.reports import Floats
from hubbub.protocols.driver import Release
from hubbub.protocols.window.division import Division

SPEEDS = 10.0 ** np.linspace(-4, 4, 17)
"""The process variances per step that a filter considers, as multiples of the variance of the first estimate."""
DOUBT = 0.003
"""The assumed probability that a value changes its process variance ("speed") at a correction."""
TINY = 1e-30


@dataclass
class Pid:
    """Proportional, integral and derivative feedback of an error.

    `proportional`, `integral`, `derivative`: the gains; they sum to 1 by convention. `memory`: how many errors the
    integral averages.
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
        """The controlled error, after a number of steps since the last one."""
        change = (error - self._errors[-1]) / max(elapsed, 1) if self._errors else 0.0
        self._errors = [*self._errors[-self.memory + 1 :], error]
        average = sum(self._errors) / len(self._errors)
        return self.proportional * error + self.integral * average + self.derivative * change


class Kalman:
    """A Kalman filter for each value: a random walk of unknown speed, observed with noise of known variance.

    The speed is the process variance per step. Each value has one filter for each of several speeds; the result is
    their mean, weighted by the likelihood of the observations. At every correction each value is assumed to change to
    another speed with a small probability. So a filter that had settled on a slow speed soon follows a jump
    (interacting multiple models, Blom and Bar-Shalom 1988).

    `variance` holds for random walks; on other streams the error is larger. No interval is computed from it.

    `process_variance`: the variance of a value's change in a step; if None, it is learnt for each value.
    """

    remembered = ("_speeds", "_weights", "_values", "_variances")

    def __init__(self, process_variance: float | None = None) -> None:
        if process_variance is not None and not process_variance >= 0:
            raise InvalidValue("process_variance", process_variance, "a number of at least 0, or None")
        self.process_variance = process_variance
        self._speeds = np.zeros(0)
        self._weights = self._values = self._variances = np.zeros((0, 0))  # rows are speeds, columns are values

    @property
    def begun(self) -> bool:
        """Whether there was a first correction."""
        return bool(self._speeds.size)

    @property
    def value(self) -> Floats:
        """The estimates of the values; empty before the first correction."""
        return np.asarray((self._weights * self._values).sum(axis=0))

    @property
    def variance(self) -> Floats:
        """The variance of the estimates, for random walks."""
        return np.asarray((self._weights * (self._variances + (self._values - self.value) ** 2)).sum(axis=0))

    def advance(self, steps: int = 1) -> None:
        """Advance by a number of steps without an observation."""
        self._variances = self._variances + steps * self._speeds[:, None]

    def correct(self, fresh: Estimate) -> Floats:
        """Update the filter with a fresh estimate; return the new estimates of the values."""
        noise = np.maximum(fresh.variance, TINY)
        if not self.begun:
            self._begin(fresh.value, noise)
            return self.value
        self._mix_speeds()
        spread, innovation = self._variances + noise, fresh.value - self._values
        with np.errstate(divide="ignore"):
            fits = np.log(self._weights) - (np.log(spread) + innovation**2 / spread) / 2
        weights = np.exp(fits - fits.max(axis=0))
        gain = self._variances / spread
        self._weights = weights / weights.sum(axis=0)
        self._values, self._variances = self._values + gain * innovation, (1 - gain) * self._variances
        return self.value

    def _begin(self, value: Floats, noise: Floats) -> None:
        known = self.process_variance
        self._speeds = SPEEDS * float(np.mean(noise)) if known is None else np.array([known])
        rows = (len(self._speeds), 1)
        self._values, self._variances = np.tile(value, rows), np.tile(noise, rows)
        self._weights = np.tile(_prior(len(self._speeds)), (1, len(value)))

    def _mix_speeds(self) -> None:
        """Let each value change its speed with a small probability; the filter of the new speed begins at the mean."""
        mean, variance = self.value, self.variance
        stayed = (1 - DOUBT) * self._weights
        weights = stayed + DOUBT * _prior(len(self._speeds))
        part = stayed / weights
        values = part * self._values + (1 - part) * mean
        self._variances = part * (self._variances + (self._values - values) ** 2) + (1 - part) * (
            variance + (mean - values) ** 2
        )
        self._weights, self._values = weights, values


def _prior(speeds: int) -> Floats:
    """The prior probability of each speed, as a column; slow speeds are likelier."""
    weights = SPEEDS[:speeds] ** -0.25 / np.sqrt(1 + SPEEDS[:speeds])
    return np.asarray(weights / weights.sum())[:, None]


class LastPublication:
    """The last published value, from which the release of each step is made.

    As printed in the paper, a step without a publication releases the last one again. If `filtered`, every step
    releases the mean of a Kalman filter over all estimates so far, including those that only measured a distance. That
    asks no more of anyone, and the errors are a half to a third. Before the first publication the value is all zeros,
    as in the paper.

    Either way **the interval is that of the step's own reports**, extended to include the value: it is valid whatever
    the stream does. The variance of a filter would not be, since a filter cannot foresee a jump. A step without reports
    has no interval: its variance is infinite.
    """

    remembered = ("value", "step", "n", "_kalman")

    def __init__(self, division: Division, *, filtered: bool = False) -> None:
        self.division, self.filtered = division, filtered
        self.value: Floats = np.zeros(division.question.size)
        self.step = 0
        self.n = 0  # reports of the last step that had any
        self._kalman = Kalman()  # of all estimates, if filtered

    def publish(self, value: Floats) -> None:
        """Set the value that is published in this step."""
        self.value, self.step = value, self.division.step

    def release(self, fresh: Estimate | None, measured: Estimate | None = None) -> Release:
        """End the step: `fresh` is the publication of the step if there was one, `measured` its other estimate."""
        estimates = [estimate for estimate in (measured, fresh) if estimate is not None]
        own = pooled(estimates) if estimates else None
        if fresh is not None:
            self.publish(fresh.value)
        value = self.value
        if self.filtered:
            self._kalman.advance()
            if own is not None:
                value = self._kalman.correct(own)
            elif self._kalman.begun:
                value = self._kalman.value
        return self.release_value(value, own, published=fresh is not None)

    def release_value(self, value: Floats, own: Estimate | None, *, published: bool) -> Release:
        """End the step: release this value, with the interval of `own`, the estimate from the step's own reports."""
        if own is None:
            infinite = np.full_like(value, np.inf)
            estimate = Estimate(value, infinite, self.n, bias="heuristic", kind=self.division.question.kind)
        else:
            self.n = own.n
            same = np.array_equal(value, own.value)
            estimate = own if same else replace(own, value=value, centre=own.value, bias="heuristic")
        return self.division.release(estimate, own=own, published=published)


def pooled(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of several independent estimates of the same values, weighted by their precision."""
    if len(estimates) == 1:
        return estimates[0]
    precision = np.array([1 / max(float(np.mean(estimate.variance)), TINY) for estimate in estimates])
    return weighted_mean(estimates, precision / precision.sum())


def weighted_mean(estimates: Sequence[Estimate], weights: Iterable[float]) -> Estimate:
    """A weighted mean of several independent estimates of the same values; the weights sum to 1."""
    first = estimates[0]
    # One weight for all values of an estimate, so that covariances keep their form.
    weighted = list(zip(weights, estimates, strict=True))
    value = np.sum([weight * estimate.value for weight, estimate in weighted], axis=0)
    variance = np.sum([weight**2 * estimate.variance for weight, estimate in weighted], axis=0)
    noises = [(float(weight), estimate.noise) for weight, estimate in weighted if estimate.noise]
    noise = Noise.of_sum(noises) if len(noises) == len(estimates) else None
    if noise is not None:
        variance = noise.variance(value)  # at the pooled value, as the covariances are
    n = sum(estimate.n for estimate in estimates)
    return Estimate(
        value, variance, n, bias=first.bias, kind=first.kind, labels=first.labels, noise=noise, spread=first.spread
    )


def dissimilarity(fresh: Estimate, last: Floats) -> float:
    """An unbiased estimate of the mean squared distance between the present values and the last release (Eq 3)."""
    return float(np.mean((fresh.value - last) ** 2) - np.mean(fresh.variance))
