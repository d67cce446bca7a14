"""Shares that sum to 1 (Norm, Norm-Mul, Norm-Cut), and shares that are at least 0 (Base-Pos, Post-Pos, Base-Cut)."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from hubbub.consistency.norm_sub import adjusted, noise_of, shares_of
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate

_ROUNDING = 1e-9  # a sum this close to 1 counts as 1


def norm(estimate: Estimate) -> Estimate:
    """Add the same number to each estimate so that they sum to 1; some may stay negative.

    f_i = f~_i + (1 - sum f~)/d. Unbiased (Lemma 3), so the bias stays what it was, and variance and noise are exact:
    those of estimates less their mean. An oracle whose estimates sum to 1 already (GRR) is left as it is. Without
    noise the values are taken as independent, as `Estimate.linear` does.

    Parameters
    ----------
    estimate
        Shares of the whole domain: some candidates alone need not sum to 1.

    Example:
        >>> estimate = Estimate(value=[0.7, 0.5, -0.1, 0.1], variance=[0.01] * 4, n=100)
        >>> norm(estimate).value.round(2).tolist(), norm(estimate).variance.round(5).tolist(), norm(estimate).bias
        ([0.65, 0.45, -0.15, 0.05], [0.0075, 0.0075, 0.0075, 0.0075], 'none')

    References
    ----------
    Dissertation, section 8.1.2.
    """
    value = shares_of(estimate)
    size = value.size
    centred = value + (1.0 - value.sum()) / size
    if estimate.noise is None:
        variance = estimate.variance * (1 - 2 / size) + estimate.variance.sum() / size**2
        return replace(estimate, value=centred, variance=variance)
    noise = estimate.noise.centred(size, 1.0)
    return replace(estimate, value=centred, variance=np.maximum(noise.variance(centred), 0.0), noise=noise)


def norm_mul(estimate: Estimate) -> Estimate:
    """Negative estimates become 0, then all are multiplied so that they sum to 1.

    The larger a share, the more it is moved: poor where few values are frequent. Where no estimate is above 0 there is
    nothing to multiply, and the shares become equal (our choice: the chapter has none). The variance stays that of
    the estimate before: it does not count the bias, which can be larger.

    Example:
        >>> norm_mul(Estimate(value=[0.9, 0.3, -0.2], variance=[0.01] * 3, n=100)).value.round(2).tolist()
        [0.75, 0.25, 0.0]

    References
    ----------
    Dissertation, section 8.1.2.
    """
    value = shares_of(estimate)
    most = value.max()
    positive = np.where(value > 0, value, 0.0) / most if most > 0 else np.ones_like(value)
    return adjusted(estimate, positive / positive.sum())


def norm_cut(estimate: Estimate) -> Estimate:
    """The largest estimates stay as they are, as long as their sum is at most 1; the others become 0.

    The threshold is the smallest theta for which the estimates of at least theta sum to at most 1; where the positive
    ones sum to no more than 1, only negative ones are cut. Equal estimates are kept or cut together. The sum is thus 1
    or somewhat less. Where the largest alone pass 1 the definition would keep nothing; here they share 1 equally (our
    choice). The variance stays that of the estimate before.

    Example:
        >>> norm_cut(Estimate(value=[0.7, 0.25, 0.2, -0.1], variance=[0.01] * 4, n=100)).value.tolist()
        [0.7, 0.25, 0.0, 0.0]

    References
    ----------
    Dissertation, section 8.1.2.
    """
    value = shares_of(estimate)
    positive = np.where(value > 0, value, 0.0)
    largest, inverse, times = np.unique(-positive, return_inverse=True, return_counts=True)
    sums = np.cumsum(-largest * times)
    fits = sums <= 1 + _ROUNDING
    if not fits[0]:
        return adjusted(estimate, np.where(inverse == 0, 1 / times[0], 0.0))
    return adjusted(estimate, np.where(fits[inverse], positive, 0.0))


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
