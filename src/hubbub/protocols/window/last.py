"""The last release, kept for when it stands in for a fresh one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate
from hubbub.protocols.ask import Release
from hubbub.protocols.window.control import TINY, Kalman
from hubbub.protocols.window.division import Division

__all__ = ["Last", "dissimilarity", "pooled"]


class Last:
    """What was last published, and what is released in a step: from it alone, or from all that was heard.

    As printed in the paper, a step without a publication releases the last one again. Filtered, every step releases
    the mean of a Kalman filter over all estimates so far, those that only measured a distance too: nothing more is
    asked of anyone, and the errors are a half to a third. Either way the variance grows with what may have changed.
    Before anything was published the value is all zeros, as in the paper.

    Example:
        >>> from hubbub.protocols.window import Frequencies, PopulationDivision
        >>> last = Last(PopulationDivision(Frequencies(2), epsilon=1.0, w=4))
        >>> _ = last.publish(Estimate([0.5, 0.5], [0.01, 0.01], 9), step=1)
        >>> last.stand_in(step=2).value.tolist(), bool(last.stand_in(step=2).variance[0] > 0.01)
        ([0.5, 0.5], True)
    """

    remembered = ("value", "estimate", "step", "_kalman")

    def __init__(self, division: Division, *, filtered: bool = False) -> None:
        self.division, self.filtered = division, filtered
        self.value: NDArray[np.float64] = np.zeros(division.question.size)
        self.estimate: Estimate | None = None
        self.step = 0
        self._kalman = Kalman()  # of what was published; filtered, of what was heard

    def publish(self, estimate: Estimate, step: int) -> Estimate:
        """Remember a fresh estimate."""
        if not self.filtered:
            self._kalman.advance(step - self.step)
            self._kalman.correct(estimate)
        self.value, self.estimate, self.step = estimate.value, estimate, step
        return estimate

    def stand_in(self, step: int) -> Estimate:
        """The last release as an estimate of now, its variance grown by what may have changed."""
        if self.estimate is None:
            return Estimate(self.value, np.full_like(self.value, np.inf), 0, bias="heuristic")
        grown = self.estimate.variance + self._kalman.movement * (step - self.step)
        return replace(self.estimate, variance=grown, bias="heuristic")

    def release(self, fresh: Estimate | None, now: Estimate | None = None) -> Release:
        """End the step: what was published in it if anything was, and what else was heard in it."""
        step = self.division.step
        if fresh is not None:
            self.publish(fresh, step)
        said = fresh if fresh is not None else self.stand_in(step)
        if self.filtered:
            self._kalman.advance()
            heard = [estimate for estimate in (now, fresh) if estimate is not None]
            said = self._kalman.correct(pooled(heard)) if heard else self._kalman.mean() or said
        return self.division.release(said, published=fresh is not None)


def pooled(estimates: Sequence[Estimate]) -> Estimate:
    """One estimate from several independent ones of the same thing, each weighed by its precision.

    Example:
        >>> pooled([Estimate([0.2], [0.01], 10), Estimate([0.4], [0.01], 10)]).value.round(3).tolist()
        [0.3]
    """
    if len(estimates) == 1:
        return estimates[0]
    precision = np.array([1 / np.maximum(one.variance, TINY) for one in estimates])
    total = precision.sum(axis=0)
    value = (precision * np.array([one.value for one in estimates])).sum(axis=0) / total
    first = estimates[0]
    n = sum(one.n for one in estimates)
    return Estimate(value, 1 / total, n, bias=first.bias, kind=first.kind, labels=first.labels)


def dissimilarity(fresh: Estimate, last: NDArray[np.float64]) -> float:
    """The unbiased mean squared distance between now and the last release (Eq 3).

    Example:
        >>> round(dissimilarity(Estimate([0.5, 0.5], [0.01, 0.01], 10), np.array([0.2, 0.8])), 6)
        0.08
    """
    return float(np.mean((fresh.value - last) ** 2) - np.mean(fresh.variance))
