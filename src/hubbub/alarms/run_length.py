"""The run length of a sequential test, the number of steps to its signal, from the Markov chain of its statistic.

The test adds up standardised steps, S = max(0, S + x - k), and signals when S reaches h, or when one step alone reaches
z (a CUSUM with a Shewhart limit). Between two signals S is a Markov chain on [0, h). Cut into cells it is a matrix,
whose powers give the probability that the test has not signalled yet (Brook and Evans 1972).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

CELLS = 60
"""Cells of the chain. With more cells, average run lengths grow by less than 1%: the error is on the safe side."""
MOST_STEPS = 5000
"""The longest delay that is looked for."""

Floats = NDArray[np.float64]


def mean_steps(drift: float, *, k: float, h: float, z: float) -> float:
    """The average number of steps to a signal, if every step is normal with mean `drift` and variance 1."""
    transitions = _chain(drift, k, h, z)
    return float(np.linalg.solve(np.eye(CELLS) - transitions, np.ones(CELLS))[0])


def median_steps(drifts: Floats, weights: Floats, *, k: float, h: float, z: float) -> int | None:
    """The median number of steps to a signal, if the mean of all steps is one of `drifts` with these probabilities.

    None if it is more than `MOST_STEPS`.
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
    """The probabilities of the transitions between cells without a signal."""
    width = 2 * h / (2 * CELLS - 1)  # the first cell is half as wide, around 0
    moves = (np.arange(-(CELLS - 1), CELLS + 1) - 0.5) * width + k
    below = _normal(np.minimum(moves, z) - drift)
    cells = np.arange(CELLS)
    move = cells[None, :] - cells[:, None] + CELLS - 1
    transitions: Floats = below[move + 1] - below[move]
    transitions[:, 0] = below[move[:, 0] + 1]  # sums below 0 become 0
    return transitions


def _normal(points: Floats) -> Floats:
    return np.array([_phi(point) for point in points.tolist()])


@lru_cache(maxsize=1 << 14)
def _phi(point: float) -> float:
    return math.erfc(-point / math.sqrt(2)) / 2
