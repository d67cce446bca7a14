"""Shares of a tree of prefixes that agree with each other: a prefix is held by at least as many as its extensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Level", "consistent_shares"]

_SWEEPS = 200
_CLOSE = 1e-9


class Level(NamedTuple):
    """What one group says: the share of each chosen prefix, and which prefix of the level before each extends."""

    shares: NDArray[np.float64]
    variance: float
    parents: NDArray[np.int64]


def consistent_shares(levels: Sequence[Level]) -> NDArray[np.float64]:
    """The shares of the last level that fit all levels best: by least squares, weighted by 1/variance.

    No share is negative, and none is less than the sum of those that extend it.
    What a prefix has beyond its extensions is a number of at least 0, and each observed share is a sum of such numbers:
    they are fitted one after the other, again and again, until nothing moves.

    Example:
        >>> first = Level(np.array([0.4, 0.1]), 1e-4, np.zeros(2, dtype=np.int64))
        >>> last = Level(np.array([0.3, 0.2, 0.05]), 1e-4, np.int64([0, 0, 1]))
        >>> consistent_shares([first, last]).round(3).tolist()
        [0.267, 0.167, 0.05]
    """
    fitted = [np.zeros(len(level.shares)) for level in levels]
    beyond = [np.zeros(len(level.shares)) for level in levels]
    weights = [1 / max(level.variance, 1e-300) for level in levels]
    scale = max(weights)
    weights = [weight / scale for weight in weights]
    for _ in range(_SWEEPS):
        moved = 0.0
        for depth in reversed(range(len(levels))):
            total = sum(weights[: depth + 1])
            for node in range(len(fitted[depth])):
                path, place = [], node
                for level in range(depth, -1, -1):
                    path.append((level, place))
                    place = int(levels[level].parents[place])
                slope = sum(weights[at] * (levels[at].shares[own] - fitted[at][own]) for at, own in path)
                step = max(slope / total, -beyond[depth][node])
                if step:
                    beyond[depth][node] += step
                    for at, own in path:
                        fitted[at][own] += step
                    moved = max(moved, abs(float(step)))
        if moved < _CLOSE:
            break
    return fitted[-1]
