"""The shares of what was found, from all groups together.

A group that reports prefixes tells of a value's share too, wherever hardly anyone else has the same prefix. How far up
that is so is not known: the shares that the groups saw tell. The models are that the last j groups saw the value alone,
j = 1, 2, ...; in all groups before, others have the prefix as well, with any share from 0 to `REST` standard errors
alike. The estimate is the mean of what the models say (the mean of their j groups, weighted by 1/variance), weighted by
how well each explains all groups. A group in which two values that were found share a prefix is not used for either,
nor are those before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

REST = 50.0
"""How much more than the value a prefix may have, in standard errors: measured, 20 to 200 serve alike."""
_LEAST = 1e-12


class Level(NamedTuple):
    """What one group says: the share of each chosen prefix, and which prefix of the level before each extends."""

    shares: NDArray[np.float64]
    variance: float
    parents: NDArray[np.int64]


def pooled_shares(levels: Sequence[Level]) -> NDArray[np.float64]:
    """The shares of the prefixes of the last level, from the shares that all levels saw; none is negative.

    Example:
        >>> first = Level(np.array([0.22, 0.5]), 1e-4, np.zeros(2, dtype=np.int64))  # others begin like the second, too
        >>> last = Level(np.array([0.2, 0.1]), 1e-4, np.int64([0, 1]))
        >>> pooled_shares([first, last]).round(3).tolist()
        [0.208, 0.1]
    """
    return np.array([max(_averaged(seen), 0.0) for seen in _alone(levels)])


def _alone(levels: Sequence[Level]) -> Iterator[list[tuple[float, float]]]:
    """Of each prefix of the last level, the shares and variances of the levels where it is alone, the last first."""
    ancestors = np.arange(len(levels[-1].shares))
    chains: list[list[tuple[float, float]]] = [[] for _ in ancestors]
    apart = np.ones(len(ancestors), dtype=bool)
    for level in reversed(levels):
        apart &= np.bincount(ancestors, minlength=len(level.shares))[ancestors] == 1
        for place in np.flatnonzero(apart):
            chains[place].append((float(level.shares[ancestors[place]]), level.variance))
        ancestors = level.parents[ancestors]
    yield from chains


def _averaged(seen: Sequence[tuple[float, float]]) -> float:
    """The mean over the models of how many of the last groups saw the value alone."""
    shares, precisions = (np.array(column) for column in zip(*((x, 1 / variance) for x, variance in seen), strict=True))
    means, fits = [], []
    for used in range(1, len(shares) + 1):
        weight = precisions[:used]
        mean = float(weight @ shares[:used] / weight.sum())
        apart = float(weight @ (shares[:used] - mean) ** 2)
        fit = (np.log(weight).sum() - math.log(weight.sum()) - apart - (used - 1) * math.log(2 * math.pi)) / 2
        for more, precision in zip(shares[used:], precisions[used:], strict=True):
            above = (float(more) - mean) * math.sqrt(precision)
            fit += (
                math.log(precision) / 2 - math.log(REST) + math.log(max(math.erfc(-above / math.sqrt(2)) / 2, _LEAST))
            )
        means.append(mean)
        fits.append(float(fit))
    chances = np.exp(np.array(fits) - max(fits))
    return float(chances @ np.array(means) / chances.sum())
