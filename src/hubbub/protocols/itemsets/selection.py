"""Intervals for estimates that were selected because they are large."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate

LEVEL = 0.95


def after_selection(estimate: Estimate, chosen: NDArray[np.int64]) -> Estimate:
    """The chosen values of an estimate, with variances large enough that intervals are valid after the selection.

    The largest of m estimates tend to be those that noise raised. Let r be the largest number such that r of the chosen
    values are above 0 by intervals of level 1 - 0.05 r/m, and at least 1. Of these r intervals at most one in twenty
    misses the truth on average; of the other intervals fewer do. Variances are multiplied such that the 95% intervals
    of the result are these intervals.

    Parameters
    ----------
    estimate
        The estimate of all candidates.
    chosen
        The places of the chosen candidates, which have the largest values, largest first.

    Example:
        >>> estimate = Estimate([0.5, 0.3, 0.1, 0.0], [1e-4] * 4, 1000, labels=("a", "b", "c", "d"))
        >>> shown = after_selection(estimate, np.array([0, 1]))
        >>> shown.labels, [round(float(end), 4) for end in shown.interval()[0]]
        (('a', 'b'), [0.4776, 0.2776])

    References
    ----------
    Benjamini and Yekutieli, False discovery rate-adjusted multiple confidence intervals for selected parameters, 2005.
    """
    value, variance = estimate.value[chosen], estimate.variance[chosen]
    reaches = np.array([normal_reach(1 - (1 - LEVEL) * r / len(estimate)) for r in range(1, len(chosen) + 1)])
    scores = np.sort(value / np.sqrt(np.maximum(variance, np.finfo(float).tiny)))[::-1]
    clear = np.flatnonzero(scores > reaches)
    reach = reaches[clear[-1] if clear.size else 0] if reaches.size else normal_reach(LEVEL)
    labels = None if estimate.labels is None else tuple(estimate.labels[place] for place in chosen)
    wider = (float(reach) / normal_reach(LEVEL)) ** 2
    return Estimate(value, variance * wider, estimate.n, bias=estimate.bias, labels=labels)


def normal_reach(level: float) -> float:
    """Half the width of a normal interval of this level, in standard errors.

    Example:
        >>> round(normal_reach(0.95), 2)
        1.96
    """
    return NormalDist().inv_cdf(0.5 + level / 2)
