"""Projection onto a simplex: the nearest numbers of at least 0 that have a given sum and, if wanted, a cap."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue

Floats = NDArray[np.float64]


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
        raise InvalidValue("x", x, f"numbers so near each other that floats can tell a cap of {cap} beside them")
    return projected


def _vector(x: ArrayLike) -> Floats:
    point = np.asarray(x, dtype=np.float64)
    if point.ndim != 1 or not point.size or not np.isfinite(point).all():
        raise InvalidValue("x", x, "a vector of finite numbers, at least one")
    return point
