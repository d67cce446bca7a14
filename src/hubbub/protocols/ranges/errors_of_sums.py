"""The exact variance of a weighted sum of cells, for people who report on one level each or on every level."""

from __future__ import annotations

import numpy as np

from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Floats


class SumVariance:
    """Adds up the variance of a weighted sum of cells, level by level, given the true or estimated sums of the cells.

    A person of measure w adds (n/n_l) w sum_v c_v (s(v)-q)/(p-q) if they report on level l, where c are the weights of
    its cells. The randomisation has the variance (n/n_l) sum_i w_i^2 N_l(c_i), where c_i is the weight of person i's
    cell and N_l(c) = A + B c + C c^2 is the variance of one report. Dividing n people at random into groups of sizes
    n_l adds n (sum_l (n/n_l) S_l - S): S_l is the variance among people of w_i c_i, and S that of the sum over levels,
    which is w_i times (1 if in the box, else 0, minus the multiple of the known total). For one cell, OLH's p = 1/2 and
    groups drawn person by person this is Prop 7.2.2: of its 2k-1, k is due to the oracle and k-1 to the division.

    Parameters
    ----------
    n
        How many people there are.
    squares
        The sum of their squared measures.
    known
        The multiple of the known total that the query adds.
    divided
        Whether a person reports on one level only.
    """

    def __init__(self, n: int, squares: float, known: float, *, divided: bool) -> None:
        self._n, self._squares, self._known, self._divided = n, squares, known, divided
        self._noise = 0.0
        self._spread = 0.0
        self._sum = 0.0
        self._sum_squares = 0.0

    def add(self, oracle: FrequencyOracle, size: int, weights: Floats, sums: Floats, squares: Floats) -> None:
        """Add a level: how many reported, the weights of the cells, and each cell's sums of w and w^2."""
        if size == 0:
            self._noise = np.inf
            return
        scale = self._n / size if self._divided else 1.0
        constant, slope, curve = report_variance(oracle, weights)
        weighted, twice_weighted = float(weights @ squares), float(weights**2 @ squares)
        self._noise += scale * (constant * self._squares + slope * weighted + curve * twice_weighted)
        level_sum = float(weights @ sums)
        self._spread += scale * (twice_weighted - level_sum**2 / self._n)
        self._sum += level_sum
        self._sum_squares += weighted

    def total(self) -> float:
        """The variance of the sum over all levels that were added."""
        if not self._divided or self._n < 2:
            return max(self._noise, 0.0)
        known = self._known
        # People in the box have w (1 - known), others -w known; `_sum_squares` is sum w^2 (1 in the box - known).
        both = self._sum_squares * (1 - 2 * known) + known * (1 - known) * self._squares
        sampling = (self._spread - (both - self._sum**2 / self._n)) * self._n / (self._n - 1)
        return max(self._noise, 0.0) + max(sampling, 0.0)


def report_variance(oracle: FrequencyOracle, weights: Floats) -> tuple[float, float, float]:
    """A, B and C of the variance A + B c + C c^2 of one report's sum of weighted supports, c being its cell's weight."""
    moments = oracle.moments()
    holder, neither = oracle.pair_covariance() or (0.0, 0.0)
    gap = (moments.true_mean - moments.false_mean) ** 2
    total, squares = float(weights.sum()), float(weights @ weights)
    constant = moments.false_variance * squares + neither * (total**2 - squares)
    slope = 2 * (holder - neither) * total
    curve = moments.true_variance - moments.false_variance - 2 * (holder - neither)
    return constant / gap, slope / gap, curve / gap
