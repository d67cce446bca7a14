"""Shares that sum to 1 (Norm, Norm-Mul, -Cut, -Sub), or of at least 0 (Base-Pos, Post-Pos, Base-Cut); projections.

Hierarchies made consistent: every node is the sum of its children, with the least squared error.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.estimate import Bias, Estimate
from hubbub.core.noise import Noise
from hubbub.core.reports import Floats

_ROUNDING = 1e-9  # a sum this close to 1 counts as 1


def shares_of(estimate: Estimate) -> Floats:
    """The shares of an estimate, refused if they are not shares or not finite."""
    if estimate.kind != "share":
        raise InvalidValue("kind", estimate.kind, "share: only shares are known to be at least 0 and to sum to 1")
    if estimate.value.ndim != 1 or not estimate.value.size or not np.isfinite(estimate.value).all():
        raise InvalidValue("value", estimate.value, "finite shares, at least one")
    return estimate.value


def noise_of(estimate: Estimate, method: str) -> Noise:
    """The noise of an estimate; refused if it is missing or has a floor of 0, as estimates of unknown noise do."""
    noise = estimate.noise
    if noise is None or not noise.floor > 0:
        raise InvalidValue("noise", noise, f"the noise of the mechanism, with a floor above 0, for {method}")
    return noise


def adjusted(estimate: Estimate, value: Floats) -> Estimate:
    """The same estimate with values that constraints have changed: it is biased.

    The variance and the noise stay those of the estimate before, which becomes the centre: the intervals are its own,
    extended to include the new values, and so are those of sums (`Estimate.linear`). They cover the truth as often as
    before, whatever the bias. Where the method is a projection onto a set that holds the truth (`base_pos`,
    `norm_sub`), the sum of these variances bounds the expected squared distance to the truth; elsewhere they say how
    noisy the reports were, not how far off the result is.
    """
    bias: Bias = "heuristic" if estimate.bias == "heuristic" else "consistent"
    return replace(
        estimate, value=value, bias=bias, centre=estimate.value if estimate.centre is None else estimate.centre
    )


def norm(estimate: Estimate) -> Estimate:
    """Add the same number to each estimate so that they sum to 1; some may stay negative.

    f_i = f~_i + (1 - sum f~)/d. Unbiased (Lemma 3), so the bias stays what it was, and variance and noise are exact:
    those of estimates less their mean. An oracle whose estimates sum to 1 already (GRR) is left as it is. Without
    noise the values are taken as independent, as `Estimate.linear` does.

    `estimate`: shares of the whole domain: some candidates alone need not sum to 1.

    Example:
        >>> estimate = Estimate(value=[0.7, 0.5, -0.1, 0.1], variance=[0.01] * 4, n=100)
        >>> norm(estimate).value.round(2).tolist(), norm(estimate).variance.round(5).tolist(), norm(estimate).bias
        ([0.65, 0.45, -0.15, 0.05], [0.0075, 0.0075, 0.0075, 0.0075], 'none')

    References
    ----------
    T. Wang, Lopuhaa-Zwakenberg et al., 2020; T. Wang, 2021, section 8.1.2.
    """
    value = shares_of(estimate)
    size = value.size
    centred = value + (1.0 - value.sum()) / size
    unbiased = centred if estimate.centre is None else estimate.centre + (1.0 - estimate.centre.sum()) / size
    centre = None if estimate.centre is None else unbiased
    if estimate.noise is None:
        variance = estimate.variance * (1 - 2 / size) + estimate.variance.sum() / size**2
        return replace(estimate, value=centred, variance=variance, centre=centre)
    noise = estimate.noise.centred(size, 1.0)
    variance = np.maximum(noise.variance(unbiased), 0.0)
    return replace(estimate, value=centred, variance=variance, noise=noise, centre=centre)


def norm_sub(estimate: Estimate) -> Estimate:
    """Add the same number to each estimate, and set negative results to 0, so that the results sum to 1.

    f_i = max(f~_i + delta, 0). This is constrained least squares: the Euclidean projection onto the simplex
    (section 8.1.3). The variance stays that of the estimate before: as the truth lies on the simplex, the expected
    squared distance to it is at most the sum of the variances.

    Example:
        >>> norm_sub(Estimate(value=[0.75, 0.5, -0.25], variance=[0.01] * 3, n=100)).value.tolist()
        [0.625, 0.375, 0.0]

    References
    ----------
    T. Wang, Lopuhaa-Zwakenberg et al., 2020; T. Wang, 2021, sections 8.1.2 and 8.1.3.
    """
    return adjusted(estimate, project_simplex(shares_of(estimate)))


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
    T. Wang, Lopuhaa-Zwakenberg et al., 2020; T. Wang, 2021, section 8.1.2.
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
    T. Wang, Lopuhaa-Zwakenberg et al., 2020; T. Wang, 2021, section 8.1.2.
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
    T. Wang, Lopuhaa-Zwakenberg et al., 2020; T. Wang, 2021, section 8.1.1.
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
    T. Wang, Lopuhaa-Zwakenberg et al., 2020; T. Wang, 2021, section 8.1.1.
    """
    value = shares_of(result)
    return adjusted(result, np.where(value > 0, value, 0.0))


def base_cut(estimate: Estimate, alpha: float = 2.0, *, k: int | None = None) -> Estimate:
    """Estimates below a threshold T become 0; the others stay as they are.

    T is where chance explains an estimate: quantile(1 - alpha/d) sqrt(Var*), Eq 8.1, where Var* is the variance at
    share 0. Of d values that nobody holds, about alpha pass. Or T is the k-th highest estimate (section 8.2.5), for
    whoever knows how many values are wanted. A threshold below 0 counts as 0. The variance stays that of the estimate
    before: right for the values far above T, too large for those far below.

    Parameters
    ----------
    estimate
        Shares, with the noise of their mechanism unless `k` is given.
    alpha
        How many false positives to expect, above 0. The field's 0.05 loses most true ones; 2 is the chapter's choice.
    k
        How many of the highest estimates stay, from 1; estimates equal to the k-th stay too.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> estimate = Estimate(value=[0.7, 0.1, -0.1] + [0.0] * 97, variance=[0.01] * 100, n=100, noise=Noise(0.01, 0))
        >>> base_cut(estimate).value[:3].tolist(), base_cut(estimate, k=2).value[:3].tolist()
        ([0.7, 0.0, 0.0], [0.7, 0.1, 0.0])

    References
    ----------
    T. Wang, Lopuhaa-Zwakenberg et al., 2020; T. Wang, 2021, sections 8.1.1 and 8.2.5.
    """
    value = shares_of(estimate)
    if k is not None:
        check_integer("k", k, 1)
        highest = np.sort(value)[-min(k, value.size)]
        return adjusted(estimate, np.where((value >= highest) & (value > 0), value, 0.0))
    if isinstance(alpha, bool) or not (math.isfinite(alpha) and alpha > 0):
        raise InvalidValue("alpha", alpha, "a finite number above 0")
    chance = alpha / value.size
    quantile = NormalDist().inv_cdf(1 - chance) if chance < 0.5 else 0.0
    threshold = quantile * math.sqrt(noise_of(estimate, "base_cut").floor)
    return adjusted(estimate, np.where((value >= threshold) & (value > 0), value, 0.0))


def project_simplex(x: ArrayLike, total: float = 1.0) -> Floats:
    """The y nearest to x (Euclidean) with y_i >= 0 and sum y = total.

    y_i = max(x_i - theta, 0). The numbers above theta are the k largest, for the largest k at which the k-th one
    still exceeds (the sum of the k largest - total)/k, which is theta. O(d log d).

    `x`: finite numbers. `total`: the sum of the result, at least 0.

    Example:
        >>> project_simplex([0.75, 0.5, -0.25]).tolist()
        [0.625, 0.375, 0.0]

    References
    ----------
    T. Wang, Lopuhaa-Zwakenberg et al., 2020; T. Wang, 2021, section 8.1.3.
    """
    point = _vector(x)
    if not (math.isfinite(total) and total >= 0):
        raise InvalidValue("total", total, "a finite sum of at least 0")
    # theta is at least max - total: shifted by the largest number and cut there, no number is much larger than the
    # result.
    with np.errstate(over="ignore"):
        below = np.maximum(point - point.max(), -total)
    largest = np.sort(below)[::-1]
    thetas = (np.cumsum(largest) - total) / np.arange(1, largest.size + 1)
    positive = max(int(np.count_nonzero(largest > thetas)), 1)
    theta = (largest[:positive].sum() - total) / positive  # numpy's pairwise sum rounds less than the running one
    return np.asarray(np.maximum(below - theta, 0.0))


def project_capped_simplex(x: ArrayLike, total: float, cap: float = 1.0) -> Floats:
    """The y nearest to x (Euclidean) with 0 <= y_i <= cap and sum y = total.

    y_i = min(max(x_i - theta, 0), cap). The sum falls in theta, linearly between the breakpoints x_i and x_i - cap;
    the two breakpoints next to the answer are found by bisection, and theta between them exactly. O(d log d).

    `x`: finite numbers. `total`: the sum of the result, from 0 to cap times the number of entries. `cap`: the most that
    one may be, above 0.

    Example:
        >>> project_capped_simplex([3.0, 0.75, 0.5], total=1.5).tolist()
        [1.0, 0.375, 0.125]
    """
    point = _vector(x)
    if not (math.isfinite(cap) and cap > 0):
        raise InvalidValue("cap", cap, "a finite number above 0")
    if not 0 <= total <= cap * point.size:
        raise InvalidValue("total", total, f"a sum from 0 to {cap * point.size}: {point.size} times the cap")

    def capped(theta: float) -> Floats:
        with np.errstate(over="ignore"):
            return np.clip(point - theta, 0.0, cap)

    breaks = np.unique(np.concatenate([point, point - cap]))
    low, high = 0, breaks.size - 1  # the sum is all caps at the lowest, 0 at the highest
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if capped(breaks[middle]).sum() >= total else (low, middle)
    between = (point - cap <= breaks[low]) & (point >= breaks[high])
    excess = capped(breaks[low]).sum() - total
    projected = capped(breaks[low] + excess / max(np.count_nonzero(between), 1))
    if not math.isclose(projected.sum(), total, rel_tol=1e-9, abs_tol=1e-9 * cap):
        raise InvalidValue("x", x, f"numbers so near each other that floats can tell a cap of {cap} from them")
    return projected


def _vector(x: ArrayLike) -> Floats:
    point = np.asarray(x, dtype=np.float64)
    if point.ndim != 1 or not point.size or not np.isfinite(point).all():
        raise InvalidValue("x", x, "a vector of finite numbers, at least one")
    return point


def consistent_leaves(levels: Sequence[Floats], variances: Sequence[float], *, fanout: int) -> Floats:
    """The leaves of a tree whose levels were estimated independently; the shares of each level sum to 1.

    First, from the leaves up, each node becomes the mean of its own estimate and the sum of its children, weighted by
    their inverse variances. Then, from the root down, the difference between a node and the sum of its children is
    distributed evenly over the children. This is the least-squares solution where all nodes of a level have one
    variance.

    `levels`: the estimated shares of each level, below the root first: fanout, fanout^2, ... numbers. `variances`: of
    one number of each level.
    """
    if len(levels) != len(variances) or any(len(level) != fanout ** (h + 1) for h, level in enumerate(levels)):
        raise InvalidValue("levels", [len(level) for level in levels], f"powers of {fanout}, with a variance each")
    nodes, spread = [np.asarray(levels[-1], dtype=np.float64)], float(variances[-1])
    for level, variance in zip(levels[-2::-1], variances[-2::-1], strict=True):
        below, below_variance = nodes[0].reshape(-1, fanout).sum(axis=1), spread * fanout
        weight = below_variance / (below_variance + variance)
        nodes.insert(0, weight * level + (1 - weight) * below)
        spread = variance * below_variance / (variance + below_variance)
    parent = np.ones(1)
    for level in nodes:
        children = level.reshape(-1, fanout)
        parent = (children + ((parent - children.sum(axis=1)) / fanout)[:, None]).reshape(-1)
    return parent
