"""Intervals for estimates that were selected because they are large."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.confidence import normal_reach
from hubbub.core.estimate import Estimate

LEVEL = 0.95


def chance_to_miss(estimate: Estimate, chosen: NDArray[np.int64]) -> float:
    """The probability to miss the truth that the intervals of chosen values may have, so that one in twenty misses.

    The largest of m estimates tend to be those that noise raised. Let r be the largest number such that r of the chosen
    values are above 0 by intervals of level 1 - 0.05 r/m, and at least 1. Of these r intervals at most one in twenty
    misses the truth on average; of the other intervals fewer do. Returns 0.05 r/m.

    Parameters
    ----------
    estimate
        The estimate of all candidates from which the lower ends of intervals are taken.
    chosen
        The places of the chosen candidates.

    References
    ----------
    Benjamini and Yekutieli, False discovery rate-adjusted multiple confidence intervals for selected parameters, 2005.
    """
    chances = (1 - LEVEL) * np.arange(1, len(chosen) + 1) / max(len(estimate), 1)
    variance = np.maximum(estimate.variance[chosen], np.finfo(float).tiny)
    scores = np.sort(estimate.value[chosen] / np.sqrt(variance))[::-1]
    clear = np.flatnonzero(scores > [normal_reach(1 - chance) for chance in chances])
    return float(chances[clear[-1] if clear.size else 0]) if chances.size else 1 - LEVEL
