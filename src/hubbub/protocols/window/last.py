"""The last release, kept for when it stands in for a fresh one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate
from hubbub.protocols.window.division import Division
from hubbub.protocols.window.drift import Drift

__all__ = ["Last", "dissimilarity"]


class Last:
    """What was last published, and how far the stream may have moved since.

    The distance between two publications, less their noise, tells how fast the stream moves; a stand-in that is k steps
    old has that much more variance a step. Before anything was published the value is all zeros, as in the paper.

    Example:
        >>> from hubbub.protocols.window import Frequencies, PopulationDivision
        >>> last = Last(PopulationDivision(Frequencies(2), epsilon=1.0, w=4))
        >>> _ = last.publish(Estimate([0.5, 0.5], [0.01, 0.01], 9), step=1)
        >>> last.stand_in(step=2).variance.tolist()
        [0.01, 0.01]
    """

    remembered = ("value", "estimate", "step", "_drift")

    def __init__(self, division: Division) -> None:
        self.value: NDArray[np.float64] = np.zeros(division.question.size)
        self.estimate: Estimate | None = None
        self.step = 0
        self._drift = Drift()

    def publish(self, estimate: Estimate, step: int) -> Estimate:
        """Remember a fresh estimate."""
        if self.estimate is not None:
            moved = dissimilarity(estimate, self.value) - float(np.mean(self.estimate.variance))
            self._drift.observe(moved, steps=step - self.step)
        self.value, self.estimate, self.step = estimate.value, estimate, step
        return estimate

    def stand_in(self, step: int) -> Estimate:
        """The last release as an estimate of now, its variance grown by what may have changed."""
        if self.estimate is None:
            return Estimate(self.value, np.full_like(self.value, np.inf), 0, bias="heuristic")
        grown = self.estimate.variance + self._drift.per_step * (step - self.step)
        return replace(self.estimate, variance=grown, bias="heuristic")


def dissimilarity(fresh: Estimate, last: NDArray[np.float64]) -> float:
    """The unbiased mean squared distance between now and the last release (Eq 3).

    Example:
        >>> round(dissimilarity(Estimate([0.5, 0.5], [0.01, 0.01], 10), np.array([0.2, 0.8])), 6)
        0.08
    """
    return float(np.mean((fresh.value - last) ** 2) - np.mean(fresh.variance))
