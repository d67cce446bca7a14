"""Binomial tails and blocks of binomial counts, rounded outward, and the smallest epsilon that a bound allows."""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import needs
from hubbub.core.reports import Floats


class Blocks(NamedTuple):
    """Binomial counts in blocks: the smallest and largest count of each, its probability, and that of all counts
    outside."""

    low: Floats
    high: Floats
    chance: Floats
    outside: Floats


def at_least(count: ArrayLike, trials: ArrayLike, chance: float | Floats = 0.5) -> Floats:
    """The probability of at least a number of successes."""
    with needs("analytics"):
        from scipy.special import betainc

    count, trials = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    inside = (count > 0) & (count <= trials)
    tail = betainc(np.where(inside, count, 1.0), np.where(inside, trials - count + 1, 1.0), chance)
    return np.where(inside, tail, np.where(count <= 0, 1.0, 0.0))


def point(count: ArrayLike, trials: ArrayLike) -> Floats:
    """The probability of exactly a number of heads among fair coins, to about seven digits at a billion of them.

    By Loader's form, whose terms stay small where logarithms of factorials would lose digits.
    """
    count, trials = np.broadcast_arrays(np.asarray(count, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    rest = trials - count
    inner = (count > 0) & (rest > 0)
    k, r, n = (np.where(inner, part, 1.0) for part in (count, rest, trials))
    n = np.where(inner, n, 2.0)
    error = _stirling(n) - _stirling(k) - _stirling(r) - _deviance(k, n / 2) - _deviance(r, n / 2)
    middle = np.exp(error) * np.sqrt(n / (2 * math.pi * k * r))
    with np.errstate(under="ignore"):
        end = np.where((count == 0) | (rest == 0), np.exp2(-np.minimum(np.maximum(trials, 0.0), 1100.0)), 0.0)
    return np.where(inner, middle, np.where((count >= 0) & (rest >= 0), end, 0.0))


def blocks(trials: ArrayLike, chance: float, most: int, *, tail: float = 1e-18) -> Blocks:
    """Binomial counts, a row for each number of trials, in up to a number of blocks: single counts where they are few.

    They reach as far as leaves out about `tail`. Blocks past the last count are empty, and stand at it.
    """
    n = np.atleast_1d(np.asarray(trials, dtype=np.float64))[:, None]
    mean, far = n * chance, math.sqrt(2 * math.log(1 / tail))
    reach = far * np.sqrt(n * chance * (1 - chance))
    first = np.maximum(0.0, np.floor(mean - reach))
    last = np.minimum(n, np.ceil(mean + reach + far**2 / 3))  # rare successes have a longer tail above (Bernstein)
    count = min(most, int((last - first).max()) + 1)
    width = np.maximum((last + 1 - first) / count, 1.0)
    edges = np.minimum(np.round(first + width * np.arange(count + 1)), last + 1)
    low, high = np.minimum(edges[:, :-1], last), np.minimum(edges[:, 1:] - 1, last)
    # Differences of upper tails lose nothing above the mean; below it, of lower ones. No other tails are computed.
    upper = edges > mean
    lower = np.insert(~upper[:, :-1], 0, True, axis=1)  # where the edge before is not above the mean
    upper[:, -1] = True
    above = at_least(np.where(upper, edges, 0.0), n, chance)
    below = at_least(np.where(lower, n - edges + 1, 0.0), n, 1 - chance)
    inside = np.where(low > mean, above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1])
    return Blocks(low, high, np.maximum(inside, 0.0), above[:, -1] + below[:, 0])


def _stirling(n: Floats) -> Floats:
    """ln n! less Stirling's formula."""
    with needs("analytics"):
        from scipy.special import gammaln

    small = np.minimum(n, 20.0)
    exact = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2 * math.pi)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / n**2) / n**2) / n
    return np.where(n < 20, exact, series)


def _deviance(count: Floats, mean: Floats) -> Floats:
    """count ln(count/mean) + mean - count."""
    off = (count - mean) / mean
    series = off**2 * (0.5 - off * (1 / 6 - off * (1 / 12 - off * (1 / 20 - off / 30))))
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (1 + off) * np.log1p(off) - off
    return mean * np.where(np.abs(off) < 1e-2, series, exact)


_CLOSE = 1e-4


def smallest_epsilon(
    coarse: Callable[[float], float], fine: Callable[[float], float], delta: float, most: float
) -> float | None:
    """An epsilon of at most `most` whose fine bound is at most delta, about 1e-4 of it above the smallest such.

    The coarse bound gives the start of the search. The returned epsilon was evaluated, so that it is valid even if the
    bound is not monotone. None where even `most` is not enough.
    """
    fine = cache(fine)
    begin = _narrow(coarse, delta, 0.0, most)
    if begin is None:
        return most if fine(most) <= delta else None
    high = begin
    if fine(high) > delta:
        return _narrow(fine, delta, high, most)
    step = 0.003
    while step < 1:  # the fine bound's place is a little below
        low = high * (1 - step)
        if fine(low) > delta:
            return _narrow(fine, delta, low, high)
        high, step = low, 2 * step
    return high


def _narrow(bound: Callable[[float], float], delta: float, low: float, high: float) -> float | None:
    """An epsilon just above the one at which a bound falls to delta; None if that is above `high`.

    By false position on the logarithm, which is nearly a straight line of epsilon^2.
    """
    goal = math.log(delta)
    at_low, at_high = _log(bound(low)) - goal, _log(bound(high)) - goal
    if at_high > 0:
        return None
    if at_low <= 0:
        return low
    while high - low > _CLOSE * high:
        share = at_low / (at_low - at_high) if at_high > -math.inf else 0.5
        margin = 0.4 * _CLOSE * high
        middle = math.sqrt(low**2 + (high**2 - low**2) * share) + margin
        middle = min(max(middle, low + margin), high - margin)
        value = _log(bound(middle)) - goal
        # If one end moved twice in a row the search would slow down: the other end's value is halved (Illinois method).
        if value > 0:
            low, at_low, at_high = middle, value, at_high / 2
        else:
            high, at_high, at_low = middle, value, at_low / 2
    return high


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
