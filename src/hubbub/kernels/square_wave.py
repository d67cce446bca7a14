"""Expectation maximisation for a band of likely cells: an iteration costs one pass over the cells, by prefix sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.kernels.compile import kernel

MOST = 50_000
_EVERY = 16  # logarithms cost as much as an iteration: the likelihood is looked at once in so many


def most_likely(
    counts: NDArray[np.int64], *, band: int, near: float, far: float, smoothing: float, tolerance: float
) -> tuple[NDArray[np.float64], int]:
    """The shares of the points that explain the counts of the cells best, and how many iterations they took.

    Point x makes each of the cells x to x + band - 1 as likely as `near`, and every other as likely as `far`. After an
    iteration a share of `smoothing` moves from every point to each of its neighbours: 0 is plain EM, the paper's EMS
    has 1/4. It ends when the log-likelihood of all reports changes by less than `tolerance` an iteration.
    """
    points = len(counts) - band + 1
    shares = np.full(points, 1.0 / points)
    total = float(counts.sum())
    frequencies = counts / total
    steps = _iterate(frequencies, band, near, far, smoothing, tolerance / total, MOST, shares)
    return shares / shares.sum(), int(steps)


@kernel
def _iterate(frequencies, band, near, far, smoothing, tolerance, most, shares):
    points, cells, gain = shares.size, frequencies.size, near - far
    below = np.zeros(points + 1)
    pull = np.zeros(cells + 1)
    moved = np.zeros(points)
    before = -np.inf
    for step in range(most):
        for x in range(points):
            below[x + 1] = below[x] + shares[x]
        look = step % _EVERY == 0
        likelihood = 0.0
        for y in range(cells):
            mixed = far * below[points] + gain * (below[min(points, y + 1)] - below[max(0, y - band + 1)])
            pull[y + 1] = pull[y] + frequencies[y] / mixed
            if look and frequencies[y] > 0:
                likelihood += frequencies[y] * np.log(mixed)
        if look:
            if abs(likelihood - before) < tolerance * _EVERY:
                return step
            before = likelihood
        for x in range(points):
            moved[x] = shares[x] * (far * pull[cells] + gain * (pull[x + band] - pull[x]))
        if smoothing == 0.0:
            for x in range(points):
                shares[x] = moved[x]
        else:
            for x in range(points):
                left, right = moved[max(x - 1, 0)], moved[min(x + 1, points - 1)]
                shares[x] = moved[x] + smoothing * (left + right - 2 * moved[x])
    return most
