"""The smallest epsilon at which a bound of delta is small enough: by a coarse search, then a fine one."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

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
