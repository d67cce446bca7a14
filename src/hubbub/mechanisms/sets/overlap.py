"""The arithmetic of PrivSet: how many elements a random subset shares with a set, and the best size and threshold.

A subset of m of D elements meets a set of s of them in J elements, hypergeometric. With H(j) = P(J = j), weights
w(j) = 1 where j >= t and f = e^-eps elsewhere, and Z = E[w(J)], an element that is held is in a report with probability
E[J w(J)] / (s Z), any other with E[(m-J) w(J)] / ((D-s) Z).
"""

from __future__ import annotations

from functools import lru_cache
from math import lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.two_weights import search_power

Floats = NDArray[np.float64]
_SIZES = 1 << 10  # sizes m looked at together: all of them, or a grid that is narrowed down
_EQUAL = 1e-9  # errors that differ by less are ties, on any machine: the smallest m and t is taken


class OverlapRule(NamedTuple):
    """A size m, a threshold t, and the mean variance of one report's estimates with them."""

    m: int
    t: int
    error: float


@lru_cache(maxsize=1024)
def best_overlap(epsilon: float, items: int, held: int, share: float) -> OverlapRule:
    """The size and the threshold of the smallest mean variance where an item is held by this share of the people."""
    last = items + held - 1
    sizes = np.unique(np.round(np.linspace(1, last, min(last, _SIZES)))).astype(np.int64)
    sizes = np.union1d(sizes, np.arange(1, min(last, _SIZES) + 1))
    rule = _best_of(epsilon, items, held, share, sizes)
    if last > _SIZES:  # the neighbours that the grid left out
        around = last // _SIZES + 1
        near = np.arange(max(1, rule.m - around), min(last, rule.m + around) + 1)
        rule = min(rule, _best_of(epsilon, items, held, share, near), key=lambda candidate: candidate.error)
    return rule


def _best_of(epsilon: float, items: int, held: int, share: float, sizes: NDArray[np.int64]) -> OverlapRule:
    errors = _errors(epsilon, items, held, share, sizes)
    close = errors <= errors.min() * (1 + _EQUAL)
    row, column = (int(place[0]) for place in np.nonzero(close))
    return OverlapRule(int(sizes[row]), column + 1, float(errors[row, column]))


def _errors(epsilon: float, items: int, held: int, share: float, sizes: NDArray[np.int64]) -> Floats:
    """For each size (row) and threshold 1, 2, ... (column)."""
    power, elements = search_power(epsilon), items + held
    met = np.arange(held + 1)
    size = sizes[:, None]
    possible = (met <= size) & (size - met <= items)
    inside = np.clip(size - met, 0, items)
    logs = _log_choose(held, met) + _log_choose(items, inside) - _log_choose(elements, size)
    chance = np.where(possible, np.exp(logs), 0.0)

    def weighed(number: Floats) -> Floats:
        whole = chance * number
        above = np.cumsum(whole[:, ::-1], axis=1)[:, ::-1][:, 1:]  # where at least 1, 2, ... are met
        return np.asarray(whole.sum(axis=1, keepdims=True) + (power - 1) * above)

    total = weighed(np.ones_like(chance))
    p = weighed(np.broadcast_to(met, chance.shape).astype(np.float64)) / held / total
    q = weighed((size - met).astype(np.float64)) / items / total
    with np.errstate(divide="ignore", invalid="ignore"):
        error = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
    rule = (met[1:] <= size) & (met[1:] > size - items)  # some subsets meet so many, and some fewer
    return np.where(rule & (p > q) & np.isfinite(error), error, np.inf)


def _log_choose(n: int, k: NDArray[np.int64]) -> Floats:
    ways = [lgamma(n + 1) - lgamma(number + 1) - lgamma(n - number + 1) for number in k.ravel().tolist()]
    return np.array(ways).reshape(k.shape)
