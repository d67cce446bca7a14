"""The release of a step: the last publication or a filtered value, with the interval of the step's own reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.protocols.release import Release
from hubbub.protocols.window.control import TINY, Kalman
from hubbub.protocols.window.division import Division


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
        self.value: NDArray[np.float64] = np.zeros(division.question.size)
        self.step = 0
        self.n = 0  # reports of the last step that had any
        self._kalman = Kalman()  # of all estimates, if filtered

    def publish(self, value: NDArray[np.float64]) -> None:
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

    def release_value(self, value: NDArray[np.float64], own: Estimate | None, *, published: bool) -> Release:
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
    first = estimates[0]
    if len(estimates) == 1:
        return first
    precision = np.array([1 / max(float(np.mean(estimate.variance)), TINY) for estimate in estimates])
    weights = precision / precision.sum()  # one for all values of an estimate, so that covariances keep their form
    weighted = list(zip(weights, estimates, strict=True))
    value = np.sum([weight * estimate.value for weight, estimate in weighted], axis=0)
    variance = np.sum([weight**2 * estimate.variance for weight, estimate in weighted], axis=0)
    noises = [(float(weight), estimate.noise) for weight, estimate in weighted if estimate.noise]
    noise = Noise.of_sum(noises) if len(noises) == len(estimates) else None
    if noise is not None:
        variance = noise.variance(value)  # at the pooled value, as the covariances are
    n = sum(estimate.n for estimate in estimates)
    return Estimate(value, variance, n, bias=first.bias, kind=first.kind, labels=first.labels, noise=noise)


def dissimilarity(fresh: Estimate, last: NDArray[np.float64]) -> float:
    """An unbiased estimate of the mean squared distance between the present values and the last release (Eq 3)."""
    return float(np.mean((fresh.value - last) ** 2) - np.mean(fresh.variance))
