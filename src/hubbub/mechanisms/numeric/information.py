"""Unbiased shares of the points of a square wave, with their covariance: least squares by Fisher information."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def unbiased_shares(
    counts: NDArray[np.int64], shares: Floats, *, band: int, near: float, far: float
) -> tuple[Floats, Floats]:
    """The unbiased estimate of smallest variance, if `shares` are about right, and its covariance given the population.

    With M the probabilities of the cells (rows) given the points, and m = M shares, the Fisher information of a report
    is I = M' diag(1/m) M. The estimate is I^-1 M' diag(1/m) c for the relative counts c: unbiased whatever the weights
    m are. Its covariance is (I^-1 - diag(shares))/n, given who holds what. Single shares are all noise; sums of many
    neighbours, and the mean, are not.
    """
    points, n, gain = len(shares), int(counts.sum()), near - far
    first = np.arange(points)
    cells = np.arange(len(counts))
    below = np.concatenate([[0.0], np.cumsum(shares)])
    mixed = far + gain * (below[np.minimum(points, cells + 1)] - below[np.maximum(0, cells - band + 1)])
    weight = np.concatenate([[0.0], np.cumsum(1 / mixed)])
    pull = np.concatenate([[0.0], np.cumsum(counts / n / mixed)])
    in_band = weight[first + band] - weight[first]
    late, early = np.maximum.outer(first, first), np.minimum.outer(first, first)
    in_both = np.where(early + band > late, weight[np.minimum(early + band, len(counts))] - weight[late], 0.0)
    information = far**2 * weight[-1] + far * gain * np.add.outer(in_band, in_band) + gain**2 * in_both
    inverse = np.linalg.inv(information)
    whole = inverse @ (far * pull[-1] + gain * (pull[first + band] - pull[first]))
    return whole, (inverse - np.diag(shares)) / n
