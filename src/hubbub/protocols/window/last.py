"""What a step releases: the last publication or a mean of all that was heard, with the interval of the step's own."""

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


class Last:
    """What was last published, and what is released in a step: from it alone, or from all that was heard.

    As printed in the paper, a step without a publication releases the last one again. Filtered, every step releases
    the mean of a Kalman filter over all estimates so far, those that only measured a distance too: nothing more is
    asked of anyone, and the errors are a half to a third. Before anything was published the value is all zeros, as in
    the paper.

    Either way **the interval is that of what the step itself heard**, drawn out to hold the value: it holds whatever
    the stream did. No filter's own variance does, since no filter knows of a jump before it is past. A step that heard
    nothing has no interval: its variance is infinite.

    Example:
        >>> from hubbub.protocols.window import Frequencies, PopulationDivision
        >>> last = Last(PopulationDivision(Frequencies(2), epsilon=1.0, w=4))
        >>> published = last.release(Estimate([0.5, 0.5], [0.01, 0.01], 9))
        >>> later = last.release(None, Estimate([0.4, 0.6], [0.04, 0.04], 5)).estimate
        >>> later.value.tolist(), [end.round(2).tolist() for end in later.interval()]
        ([0.5, 0.5], [[0.01, 0.21], [0.79, 0.99]])
        >>> last.release(None).estimate.variance.tolist()
        [inf, inf]
    """

    remembered = ("value", "step", "n", "_kalman")

    def __init__(self, division: Division, *, filtered: bool = False) -> None:
        self.division, self.filtered = division, filtered
        self.value: NDArray[np.float64] = np.zeros(division.question.size)
        self.step = 0
        self.n = 0  # reports of the last step that heard any
        self._kalman = Kalman()  # of what was heard, where filtered

    def publish(self, value: NDArray[np.float64]) -> None:
        """Remember what is published in this step."""
        self.value, self.step = value, self.division.step

    def release(self, fresh: Estimate | None, now: Estimate | None = None) -> Release:
        """End the step: what was published in it if anything was, and what else was heard in it."""
        heard = [estimate for estimate in (now, fresh) if estimate is not None]
        own = pooled(heard) if heard else None
        if fresh is not None:
            self.publish(fresh.value)
        value = self.value
        if self.filtered:
            self._kalman.advance()
            if own is not None:
                value = self._kalman.correct(own)
            elif self._kalman.begun:
                value = self._kalman.value
        return self.say(value, own, published=fresh is not None)

    def say(self, value: NDArray[np.float64], own: Estimate | None, *, published: bool) -> Release:
        """End the step with this value, and the interval of what the step itself heard."""
        if own is None:
            unknown = np.full_like(value, np.inf)
            estimate = Estimate(value, unknown, self.n, bias="heuristic", kind=self.division.question.kind)
        else:
            self.n = own.n
            same = np.array_equal(value, own.value)
            estimate = own if same else replace(own, value=value, centre=own.value, bias="heuristic")
        return self.division.release(estimate, own=own, published=published)


def pooled(estimates: Sequence[Estimate]) -> Estimate:
    """One estimate from several independent ones of the same thing, each weighed by its precision.

    Example:
        >>> pooled([Estimate([0.2], [0.01], 10), Estimate([0.4], [0.01], 10)]).value.round(3).tolist()
        [0.3]
    """
    first = estimates[0]
    if len(estimates) == 1:
        return first
    precision = np.array([1 / max(float(np.mean(estimate.variance)), TINY) for estimate in estimates])
    weights = precision / precision.sum()  # one for all values: then the errors of two go together as they did
    value = np.sum([weight * each.value for weight, each in zip(weights, estimates, strict=True)], axis=0)
    variance = np.sum([weight**2 * each.variance for weight, each in zip(weights, estimates, strict=True)], axis=0)
    noises = [(float(weight), each.noise) for weight, each in zip(weights, estimates, strict=True) if each.noise]
    noise = Noise.of_sum(noises) if len(noises) == len(estimates) else None
    if noise is not None:
        variance = noise.variance(value)  # at the better value, as the covariances are
    n = sum(estimate.n for estimate in estimates)
    return Estimate(value, variance, n, bias=first.bias, kind=first.kind, labels=first.labels, noise=noise)


def dissimilarity(fresh: Estimate, last: NDArray[np.float64]) -> float:
    """The unbiased mean squared distance between now and the last release (Eq 3).

    Example:
        >>> round(dissimilarity(Estimate([0.5, 0.5], [0.01, 0.01], 10), np.array([0.2, 0.8])), 6)
        0.08
    """
    return float(np.mean((fresh.value - last) ** 2) - np.mean(fresh.variance))
