"""Shares that sum to 1: Norm, Norm-Mul and Norm-Cut."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hubbub.consistency.shares import adjusted, shares_of
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
