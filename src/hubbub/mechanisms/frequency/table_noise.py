"""The second moments of oracles whose sketch keeps how often each hash function and bucket was reported."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hubbub.core.noise import Noise

__all__ = ["TableNoise"]

Floats = NDArray[np.float64]


class TableNoise(Noise):
    """Variances of shares from a formula; variances of their sums from the reports themselves.

    Under a short list of hash functions three values do not fall together as often as chance has it, even where any two
    do. So a sum of shares is looked at report by report. With T the weight of all values in a report's bucket, and W
    that of all values, Z = (T - q W)/(p - q) has the mean w_x for a holder of x. The estimated sum is the mean of Z
    over all reports; its variance, given the population, is (mean of Z^2 - sum of f_x w_x^2)/n under any functions.

    Parameters
    ----------
    noise
        The formula.
    counts
        How often each function (row) and bucket (column) was reported.
    cells
        From the weights of the values, the weight of all values in each cell of that table.
    rates
        p and q.
    squares
        The sum of the squared shares, which matters where values are confused (`Noise.square` is below 0): the bias
        of a sum has the mean square -square times (sum of w^2)(sum of f^2) + (sum of w f)^2 - 2 (sum of w^2 f^2).

    Example:
        >>> counts = np.array([[30, 10], [10, 30]])  # two functions, two buckets: value 0 falls in 0, then in 1
        >>> noise = TableNoise(Noise(0.01, 0.0), counts, lambda w: np.array([w, w[::-1]]), (0.75, 0.5))
        >>> noise.cross_terms(np.array([1.0, 0.0]), np.array([[1.0, 1.0]])).round(4).tolist()  # the sum is certain
        [-0.02]
    """

    counts: NDArray[np.int64]
    cells: Callable[[Floats], Floats]
    rates: tuple[float, float]
    squares: float

    def __init__(
        self,
        noise: Noise,
        counts: NDArray[np.int64],
        cells: Callable[[Floats], Floats],
        rates: tuple[float, float],
        squares: float = 0.0,
    ) -> None:
        super().__init__(noise.floor, noise.slope, sampling=noise.sampling, square=noise.square, pairs=False)
        for name, value in (("counts", counts), ("cells", cells), ("rates", rates), ("squares", squares)):
            object.__setattr__(self, name, value)

    @property
    def knows_pairs(self) -> bool:
        """As long as the table is at hand: what is stored of this noise (`pairs`) does not."""
        return True

    def cross_terms(self, share: Floats, weights: Floats) -> Floats:
        """What the variance of each row's weighted sum exceeds the sum of variances by."""
        n, (p, q) = int(self.counts.sum()), self.rates
        found = np.empty(len(weights))
        for k, row in enumerate(weights):
            said = (self.cells(row) - q * row.sum()) / (p - q)
            found[k] = max(float(np.vdot(self.counts, said**2)) / n - float(row**2 @ share), 0.0) / n
        squared = weights**2
        confused = self.squares * squared.sum(axis=1) + (weights @ share) ** 2 - 2 * squared @ share**2
        found += -self.square * np.maximum(confused, 0.0)
        return np.asarray(found + self._sampled(share, weights) - squared @ self.variance(share)) + self.sampling * (
            squared @ (share * (1 - share))
        )

    def sampled(self, n: int, size: int) -> Noise:
        """The moments when the n who answered are a random part of `size` people."""
        plain = Noise(self.floor, self.slope, sampling=(1 - n / size) / max(n, 1), square=self.square)
        return TableNoise(plain, self.counts, self.cells, self.rates, self.squares)
