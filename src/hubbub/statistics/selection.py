"""Estimates that were selected because they exceed a cut, with intervals that account for the selection.

Where only the candidates with estimates above a cut are shown, these estimates are too high more often than too low. An
interval here covers the truth with its probability *given* that the estimate exceeds the cut: a normal estimate X of
the truth t with standard error s that is shown only above the cut c has P(X >= x | X > c) = Q((x - t)/s) / Q((c -
t)/s), which grows with t; the ends are the t that make it alpha/2 and 1 - alpha/2. Far above the cut it is the usual
interval.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats, Ints

_FAR = 30.0
_HALVINGS = 60


@dataclass(frozen=True, eq=False, repr=False)
class Selected(Estimate):
    """Values that are released because their unbiased estimates (`centre`, or else `value`) exceed a cut.

    `cut`: what an estimate had to exceed, which does not depend on it; -inf where everything is released.
    """

    normal: ClassVar[bool] = False
    cut: float = -math.inf

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Intervals that cover the truth with probability `level`, given that the estimate exceeds the cut."""
        ends = [
            conditional_interval(float(x), float(error), self.cut, level)
            for x, error in zip(self.middle, self.stderr, strict=True)
        ]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return np.minimum(self.value, low), np.maximum(self.value, high)


@lru_cache(maxsize=1 << 14)  # pages ask for those of the same releases again and again
def conditional_interval(x: float, error: float, cut: float, level: float) -> tuple[float, float]:
    """The interval of a normal estimate that was selected because it exceeds a cut."""
    reach = normal_reach(level) * error
    if not 0 < error < math.inf or (x - cut) / error > _FAR:
        return x - reach, x + reach
    tail = (1 - level) / 2
    z = (cut - x) / error  # at most 0, but for rounding

    def end(chance: float) -> float:
        # Far below the cut the probability falls very slowly: the search ends at a distance that no share has.
        low, high = -_FAR, _FAR
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if _log_upper(-middle) - _log_upper(min(z, 0.0) - middle) < math.log(chance):
                low = middle
            else:
                high = middle
        return x + error * (low + high) / 2

    return end(tail), end(1 - tail)


def _log_upper(z: float) -> float:
    """The logarithm of the chance that a standard normal number exceeds z."""
    if z < _FAR:
        return math.log(0.5 * math.erfc(z / math.sqrt(2)))
    return -z * z / 2 - math.log(z * math.sqrt(2 * math.pi))


LEVEL = 0.95


def chance_to_miss(estimate: Estimate, chosen: Ints) -> float:
    """The probability to miss the truth that the intervals of chosen values may have, so that one in twenty misses.

    The largest of m estimates tend to be those that noise raised. Let r be the largest number such that r of the chosen
    values are above 0 by intervals of level 1 - 0.05 r/m, and at least 1. Of these r intervals at most one in twenty
    misses the truth on average; of the other intervals fewer do. Returns 0.05 r/m.

    `estimate`: the estimate of all candidates from which the lower ends of intervals are taken.

    References
    ----------
    Benjamini and Yekutieli, 2005.
    """
    chances = (1 - LEVEL) * np.arange(1, len(chosen) + 1) / max(len(estimate), 1)
    variance = np.maximum(estimate.variance[chosen], np.finfo(float).tiny)
    scores = np.sort(estimate.value[chosen] / np.sqrt(variance))[::-1]
    clear = np.flatnonzero(scores > [normal_reach(1 - chance) for chance in chances])
    return float(chances[clear[-1] if clear.size else 0]) if chances.size else 1 - LEVEL
