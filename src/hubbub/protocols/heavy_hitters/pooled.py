"""The shares of the values that were found, estimated from the reports of all groups.

A group that reports a prefix of a value also tells the value's share, if hardly anyone else has the same prefix. From
which group on that is so is inferred from the estimated shares. Model j (j = 1, 2, ...) assumes that in the last j
groups only people with the value have the prefix, and that in each earlier group others have it too, with a share
uniform from 0 to `REST` standard errors. The estimate of a model is the mean of its j groups, weighted by 1/variance.
The final estimate is the mean over the models, weighted by their likelihoods. Where two values that were found share a
prefix in a group, this group and the earlier ones are used for neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

REST = 50.0
"""The most that other people may add to a prefix's share, in standard errors; measured, 20 to 200 do equally well."""
_LEAST = 1e-12


class Level(NamedTuple):
    """The estimates of one group: the share of each chosen prefix, and the place of its parent in the level before."""

    shares: NDArray[np.float64]
    variance: float
    parents: NDArray[np.int64]


def pooled_shares(levels: Sequence[Level]) -> NDArray[np.float64]:
    """The shares of the prefixes of the last level, from the estimates of all levels; none is negative."""
    return np.array([max(_model_average(estimates), 0.0) for estimates in _unshared(levels)])


def _unshared(levels: Sequence[Level]) -> Iterator[list[tuple[float, float]]]:
    """For each prefix of the last level, the (share, variance) of its unshared ancestors, the last level first."""
    ancestors = np.arange(len(levels[-1].shares))
    chains: list[list[tuple[float, float]]] = [[] for _ in ancestors]
    unshared = np.ones(len(ancestors), dtype=bool)
    for level in reversed(levels):
        unshared &= np.bincount(ancestors, minlength=len(level.shares))[ancestors] == 1
        for place in np.flatnonzero(unshared):
            chains[place].append((float(level.shares[ancestors[place]]), level.variance))
        ancestors = level.parents[ancestors]
    yield from chains


def _model_average(estimates: Sequence[tuple[float, float]]) -> float:
    """The mean of the models' estimates, weighted by their likelihoods."""
    shares, variances = (np.array(column) for column in zip(*estimates, strict=True))
    precisions = 1 / variances
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
