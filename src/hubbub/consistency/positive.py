"""Non-negative shares, whose sum is not constrained: Base-Pos, Post-Pos and Base-Cut."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from hubbub.consistency.shares import adjusted, noise_of, shares_of
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate


def base_pos(estimate: Estimate) -> Estimate:
    """Negative estimates become 0.

    Each value comes nearer to the truth or stays. Each has a positive bias (Lemma 1), and the biases add up in the sum
    over a set: the larger the set, the larger the bias. The variance stays that of the estimate before, an upper bound.

    Example:
        >>> base_pos(Estimate(value=[0.7, 0.4, -0.1], variance=[0.01] * 3, n=100)).value.tolist()
        [0.7, 0.4, 0.0]

    References
    ----------
    Dissertation, section 8.1.1.
    """
    value = shares_of(estimate)
    return adjusted(estimate, np.where(value > 0, value, 0.0))


def post_pos(result: Estimate) -> Estimate:
    """Negative query results become 0: for what `estimate.linear(weights)` returns, not for the estimate itself.

    The bias is that of each result alone, so a set of many values has little of it; but the results of two disjoint
    sets need not add up to that of their union. The weights must be non-negative, or a result below 0 may be right.

    Example:
        >>> estimate = Estimate(value=[0.7, 0.05, -0.1], variance=[0.01] * 3, n=100)
        >>> post_pos(estimate.linear([[1, 0, 1], [0, 1, 1]])).value.round(2).tolist()
        [0.6, 0.0]

    References
    ----------
    Dissertation, section 8.1.1.
    """
    value = shares_of(result)
    return adjusted(result, np.where(value > 0, value, 0.0))


def base_cut(estimate: Estimate, alpha: float = 2.0) -> Estimate:
    """Estimates below a significance threshold become 0; the others stay as they are.

    T = quantile(1 - alpha/d) sqrt(Var*), Eq 8.1, where Var* is the variance at share 0: of d values that nobody holds,
    about alpha pass. A threshold below 0 (alpha above d/2) counts as 0. The variance stays that of the estimate
    before: right for the values far above T, too large for those far below.

    Parameters
    ----------
    estimate
        Shares with the noise of their mechanism.
    alpha
        How many false positives to expect, above 0. The field's 0.05 loses most true ones; 2 is the chapter's choice.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> estimate = Estimate(value=[0.7, 0.1, -0.1] + [0.0] * 97, variance=[0.01] * 100, n=100, noise=Noise(0.01, 0))
        >>> base_cut(estimate).value[:3].tolist()
        [0.7, 0.0, 0.0]

    References
    ----------
    Dissertation, section 8.1.1.
    """
    value = shares_of(estimate)
    if isinstance(alpha, bool) or not (math.isfinite(alpha) and alpha > 0):
        raise InvalidValue("alpha", alpha, "a finite number above 0")
    chance = alpha / value.size
    quantile = NormalDist().inv_cdf(1 - chance) if chance < 0.5 else 0.0
    threshold = quantile * math.sqrt(noise_of(estimate, "base_cut").floor)
    return adjusted(estimate, np.where((value >= threshold) & (value > 0), value, 0.0))
