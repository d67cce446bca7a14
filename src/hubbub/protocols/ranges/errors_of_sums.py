"""The exact variance of a sum over intervals, whose people are divided by level or report on every level."""

from __future__ import annotations

import numpy as np

from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Floats


class SumVariance:
    """Adds up the variance of a weighted sum of cells, level by level, given what people hold (or an estimate of it).

    A person of measure w adds (n/n_l) w sum_v c_v (s(v)-q)/(p-q) if they report on level l, c being the weights of its
    cells. The randomisation makes of it the variance (n/n_l) sum_i w_i^2 N_l(c_i), where c_i is the weight of the cell
    that person i is in and N_l(c) = A + B c + C c^2 is that of one report. Dividing n people at random into groups of
    sizes n_l adds n (sum_l (n/n_l) S_l - S): S_l is the variance among people of w_i c_i, and S that of the sum over
    levels, which is w_i times (1 if in the box) less the multiple of the known total. For one cell, OLH's p = 1/2 and
    groups drawn person by person this becomes Prop 7.2.2: of its 2k-1, k is of the oracle, k-1 of the division.

    Parameters
    ----------
    n
        How many people there are.
    squares
        The sum of their squared measures.
    known
        The multiple of the total that the query adds.
    divided
        Whether a person reports on one level only.

    Example:
        >>> from hubbub import OLH
        >>> variance = SumVariance(1000, 1000.0, 0.0, divided=True)  # three cells of 100 people each
        >>> variance.add(OLH(epsilon=2.0, domain=9), 500, np.ones(3), np.full(3, 100.0), np.full(3, 100.0))
        >>> round(variance.total())
        5116
    """

    def __init__(self, n: int, squares: float, known: float, *, divided: bool) -> None:
        self._n, self._squares, self._known, self._divided = n, squares, known, divided
        self._noise = 0.0
        self._spread = 0.0
        self._sum = 0.0
        self._sum_squares = 0.0

    def add(self, oracle: FrequencyOracle, size: int, weights: Floats, held: Floats, held_squares: Floats) -> None:
        """Add a level: how many reported, the cells' weights, and the sums of w and of w^2 over those in each cell."""
        if size == 0:
            self._noise = np.inf
            return
        scale = self._n / size if self._divided else 1.0
        constant, slope, curve = report_variance(oracle, weights)
        first, second = float(weights @ held_squares), float(weights**2 @ held_squares)
        self._noise += scale * (constant * self._squares + slope * first + curve * second)
        own = float(weights @ held)
        self._spread += scale * (second - own**2 / self._n)
        self._sum += own
        self._sum_squares += first

    def total(self) -> float:
        """The variance of what was added."""
        if not self._divided or self._n < 2:
            return max(self._noise, 0.0)
        known = self._known
        # People in the box have w (1 - known), others -w known; `_sum_squares` is sum w^2 (1 in the box - known).
        both = self._sum_squares * (1 - 2 * known) + known * (1 - known) * self._squares
        sampling = (self._spread - (both - self._sum**2 / self._n)) * self._n / (self._n - 1)
        return max(self._noise, 0.0) + max(sampling, 0.0)


def report_variance(oracle: FrequencyOracle, weights: Floats) -> tuple[float, float, float]:
    """A, B and C of the variance A + B c + C c^2 of one report's sum of weighted supports, c being its cell's weight.

    Example:
        >>> from hubbub import OLH
        >>> a, b, c = report_variance(OLH(epsilon=2.0, domain=9), np.ones(3))
        >>> round(a / 3, 3), b, round(c, 3)
        (0.725, 0.0, 0.93)
    """
    moments = oracle.moments()
    holder, neither = oracle.pair_covariance() or (0.0, 0.0)
    gap = (moments.true_mean - moments.false_mean) ** 2
    total, squares = float(weights.sum()), float(weights @ weights)
    constant = moments.false_variance * squares + neither * (total**2 - squares)
    slope = 2 * (holder - neither) * total
    curve = moments.true_variance - moments.false_variance - 2 * (holder - neither)
    return constant / gap, slope / gap, curve / gap
