"""The second moments of oracles with a short public list of hash functions, computed from every cell of their table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hubbub.core.noise import Noise

Floats = NDArray[np.float64]


class TableNoise(Noise):
    """Variances of shares from a formula; variances of their sums from the functions themselves.

    Under a short list of hash functions, three values do not collide as often as under random ones, even where any two
    do. So the variance of a sum of shares is computed cell by cell. With T the weight of all values in a report's
    bucket, and W that of all values, Z = (T - q W)/(p - q) has the mean w_x for a holder of x. The estimated sum is the
    mean of Z over all reports. Its variance, given the population, is (mean of Z^2 - sum of f_x w_x^2)/n, whatever the
    functions.

    Parameters
    ----------
    noise
        The formula.
    n
        How many reports there are.
    cells
        From the weights of the values, the weight of all values in each cell: of a function (row), a bucket (column).
    likely
        From the shares, the probability that a report is of each cell.
    rates
        p and q.
    squares
        The sum of the squared shares, which matters where values are confused (`Noise.square` is below 0): the bias
        of a sum has the mean square -square times (sum of w^2)(sum of f^2) + (sum of w f)^2 - 2 (sum of w^2 f^2).
    """

    n: int
    cells: Callable[[Floats], Floats]
    likely: Callable[[Floats], Floats]
    rates: tuple[float, float]
    squares: float

    def __init__(
        self,
        noise: Noise,
        n: int,
        cells: Callable[[Floats], Floats],
        likely: Callable[[Floats], Floats],
        rates: tuple[float, float],
        squares: float = 0.0,
    ) -> None:
        super().__init__(noise.floor, noise.slope, sampling=noise.sampling, square=noise.square, pairs=False)
        own = {"n": n, "cells": cells, "likely": likely, "rates": rates, "squares": squares}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @property
    def knows_pairs(self) -> bool:
        """True while the functions are in memory; stored noise has `pairs` alone, which is false."""
        return True

    def cross_terms(self, share: Floats, weights: Floats) -> Floats:
        """The variance of each row's weighted sum, less the weighted sum of the variances."""
        (p, q), likely = self.rates, self.likely(share)
        terms = np.empty(len(weights))
        for k, row in enumerate(weights):
            shares = (self.cells(row) - q * row.sum()) / (p - q)
            terms[k] = max(float(np.vdot(likely, shares**2)) - float(row**2 @ share), 0.0) / self.n
        squared = weights**2
        confused = self.squares * squared.sum(axis=1) + (weights @ share) ** 2 - 2 * squared @ share**2
        terms += -self.square * np.maximum(confused, 0.0)
        return np.asarray(terms + self._sampled(share, weights) - squared @ self.variance(share)) + self.sampling * (
            squared @ (share * (1 - share))
        )

    def sampled(self, n: int, size: int) -> Noise:
        """The moments when the n who answered are a random part of `size` people."""
        plain = Noise(self.floor, self.slope, sampling=(1 - n / size) / max(n, 1), square=self.square)
        return TableNoise(plain, self.n, self.cells, self.likely, self.rates, self.squares)
