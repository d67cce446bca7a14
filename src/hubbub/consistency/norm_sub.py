"""Norm-Sub: the nearest shares that are at least 0 and sum to 1, and the projection onto a simplex that it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise

Floats = NDArray[np.float64]


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

    The variance and the noise stay those of the estimate before. Where the method is a projection onto a set that
    holds the truth (`base_pos`, `norm_sub`), the sum of these variances still bounds the expected squared distance
    to the truth; elsewhere they say how noisy the reports were, not how far off the result is.
    """
    return replace(estimate, value=value, bias="heuristic" if estimate.bias == "heuristic" else "consistent")


def project_simplex(x: ArrayLike, total: float = 1.0) -> Floats:
    """The y nearest to x (Euclidean) with y_i >= 0 and sum y = total.

    y_i = max(x_i - theta, 0). The numbers above theta are the k largest, for the largest k at which the k-th one
    still exceeds (the sum of the k largest - total)/k, which is theta. O(d log d).

    Parameters
    ----------
    x
        Finite numbers.
    total
        The sum of the result, at least 0.

    Example:
        >>> project_simplex([0.75, 0.5, -0.25]).tolist()
        [0.625, 0.375, 0.0]

    References
    ----------
    Dissertation, section 8.1.3.
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

    Parameters
    ----------
    x
        Finite numbers.
    total
        The sum of the result, from 0 to cap times the number of entries.
    cap
        The most that one may be, above 0.

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
    Dissertation, sections 8.1.2 and 8.1.3.
    """
    return adjusted(estimate, project_simplex(shares_of(estimate)))
