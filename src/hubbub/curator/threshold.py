"""The threshold above which values are cut: Noisy Max over candidates, in integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.random.integers import ceil_div
from hubbub.random.noise import MOST_SCALE, geometric_cells, laplace_cells
from hubbub.random.source import Random

NOISES = ("exponential", "laplace")
"""The noise on each candidate's score: one-sided, or two-sided as the paper has it."""

_MOST_CELLS = 1 << 12  # a count is divided into at most this number of cells


@dataclass(frozen=True, kw_only=True)
class ThresholdSearch:
    """Which of `candidates` thresholds, evenly spaced up to the bound, costs least in noise and in what is cut off.

    The score of theta is -(3 m theta / (c r eps)) sqrt(2 (b-1) log_b^3 r) - m_theta, where m_theta of the m values are
    above theta (Eq 6, corrected). Changing a value changes every m_theta by at most 1, all in the same direction, so
    that noise of scale 1/epsilon on each score, and the largest of them, is epsilon-private. Scores are integers in
    cells, the noise is exact, ties go to the smaller threshold: the epsilon spent is exactly cells/scale.

    Parameters
    ----------
    epsilon
        What the search may spend on a value.
    bound, candidates
        The largest possible value, and how many thresholds are tried.
    slope
        What a score loses for each unit of theta and each value looked at: (3 / (c r eps)) sqrt(...).
    noise
        One of `NOISES`.

    References
    ----------
    tops-topl, section 3.3; Ding et al. 2021 for one-sided noise.
    """

    epsilon: Fraction
    bound: float
    candidates: int
    slope: float
    noise: str = "exponential"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Fraction(self.epsilon))
        if self.noise not in NOISES:
            raise InvalidValue("noise", self.noise, f"one of {', '.join(NOISES)}")
        if ceil_div(1, self.epsilon) > MOST_SCALE:
            raise InvalidValue("epsilon", float(self.epsilon), f"at least 1/{MOST_SCALE} for a threshold search")

    @cached_property
    def cells(self) -> int:
        """Into how many cells a count of 1 is divided."""
        cells = _MOST_CELLS
        while cells > 1 and ceil_div(cells, self.epsilon) > MOST_SCALE:
            cells //= 2
        return cells

    @property
    def scale(self) -> int:
        """The scale of the noise, in cells."""
        return ceil_div(self.cells, self.epsilon)

    @property
    def effective_epsilon(self) -> Fraction:
        """What a search spends, exactly."""
        return Fraction(self.cells, self.scale)

    @cached_property
    def thresholds(self) -> NDArray[np.float64]:
        """The candidates, in order."""
        return self.bound * np.arange(1, self.candidates + 1) / self.candidates

    def count(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many values lie between one candidate and the next: all that a search needs to know of them."""
        places = np.searchsorted(self.thresholds, values, side="left")
        return np.bincount(np.minimum(places, self.candidates - 1), minlength=self.candidates).astype(np.int64)

    def scores(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The score of each candidate, in cells, without noise."""
        m = int(counts.sum())
        above = m - np.cumsum(counts)
        penalty = np.rint(np.minimum(self.slope * m * self.thresholds * self.cells, 2.0**61))  # the same for all data
        return -penalty.astype(np.int64) - above * self.cells

    def choose(self, counts: NDArray[np.int64], rng: Random) -> float:
        """The threshold with the largest noisy score."""
        draw = geometric_cells if self.noise == "exponential" else laplace_cells
        noisy = self.scores(counts) + draw(self.candidates, self.scale, rng)
        return float(self.thresholds[np.argmax(noisy)])

    @staticmethod
    def tree_slope(epsilon: float, fan_out: int, height: int, constant: float) -> float:
        """(3 / (c r eps)) sqrt(2 (b-1) log_b^3 r) of Eq 6, for r = b^h."""
        return 3 / (constant * float(fan_out) ** height * epsilon) * math.sqrt(2 * (fan_out - 1) * height**3)
