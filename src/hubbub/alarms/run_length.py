"""How long a sequential test runs before it signals: exactly, by the Markov chain of its statistic.

The test adds up standardised steps, S = max(0, S + x - k), and signals when S reaches h, or when one step alone reaches
z (a CUSUM with a Shewhart limit). Between two signals S is a Markov chain on [0, h); cut into cells it is a matrix,
whose powers tell how likely the test is still running (Brook and Evans 1972).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

CELLS = 60
"""With more, average run lengths grow by less than 1%: what is computed is on the safe side."""
MOST_STEPS = 5000
"""How far ahead a delay is looked for."""

Floats = NDArray[np.float64]


def mean_steps(drift: float, *, k: float, h: float, z: float) -> float:
    """The average number of steps to a signal where every step is normal with this mean and variance 1.

    Example:
        >>> round(mean_steps(0.0, k=0.5, h=4.0, z=99.0))  # tables of the CUSUM say 336
        335
        >>> round(mean_steps(1.0, k=0.5, h=4.0, z=99.0), 1)  # and 8.38
        8.4
    """
    stays = _chain(drift, k, h, z)
    return float(np.linalg.solve(np.eye(CELLS) - stays, np.ones(CELLS))[0])


def median_steps(drifts: Floats, weights: Floats, *, k: float, h: float, z: float) -> int | None:
    """In how many steps half of the tests have signalled; the mean of a step is one of `drifts`, with these weights.

    None if it takes more than `MOST_STEPS`.

    Example:
        >>> median_steps(np.array([4.0]), np.ones(1), k=0.5, h=8.6, z=4.3)
        2
    """
    chains = np.stack([_chain(float(drift), k, h, z) for drift in drifts])
    running = np.zeros((len(drifts), 1, CELLS))
    running[:, 0, 0] = weights
    for step in range(1, MOST_STEPS + 1):
        running = running @ chains
        if running.sum() <= 0.5:
            return step
    return None


def _chain(drift: float, k: float, h: float, z: float) -> Floats:
    """The probabilities to go from each cell to each, without a signal."""
    width = 2 * h / (2 * CELLS - 1)  # the first cell is half as wide, around 0
    moves = (np.arange(-(CELLS - 1), CELLS + 1) - 0.5) * width + k
    below = _normal(np.minimum(moves, z) - drift)
    cells = np.arange(CELLS)
    move = cells[None, :] - cells[:, None] + CELLS - 1
    stays: Floats = below[move + 1] - below[move]
    stays[:, 0] = below[move[:, 0] + 1]  # all that would go below 0
    return stays


def _normal(points: Floats) -> Floats:
    return np.array([_phi(point) for point in points.tolist()])


@lru_cache(maxsize=1 << 14)
def _phi(point: float) -> float:
    return math.erfc(-point / math.sqrt(2)) / 2
