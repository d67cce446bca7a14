"""How many items people hold: to what length to pad, and what sets longer than that take from every share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate

__all__ = ["corrected", "percentile_length", "update_factor"]


def percentile_length(sizes: ArrayLike, part: float = 0.9) -> int:
    """The smallest length that at least this part of the people do not exceed; at least 1.

    Parameters
    ----------
    sizes
        How many people hold 0, 1, 2, ... items, or their shares. Estimates below 0 count as 0.
    part
        The part: 0.9 is the chapter's 90th percentile.

    Example:
        >>> percentile_length([0, 50, 30, 11, 9]), percentile_length([100, 0, 0])
        (3, 1)

    References
    ----------
    Dissertation, section 5.2.5.
    """
    counts = _counts(sizes)
    if not 0 < part <= 1:
        raise InvalidValue("part", part, "a number above 0, at most 1")
    reached = np.cumsum(counts) >= part * counts.sum() * (1 - 1e-12)
    return max(1, int(np.argmax(reached)))


def update_factor(sizes: ArrayLike, length: int) -> float:
    """What shares padded to this length must be multiplied by, on the whole: items held over items counted.

    A set of k items counts as min(k, length) of them. Where long and short sets hold different items, single shares
    stay too small or become too large.

    Parameters
    ----------
    sizes
        How many people hold 0, 1, 2, ... items, or their shares: exact (Eq 5.4), or estimates (Eq 5.5), of which those
        below 0 count as 0.
    length
        How many elements a set is filled up to.

    Example:
        >>> update_factor([0, 50, 30, 11, 9], 3)
        1.0529411764705883

    References
    ----------
    Dissertation, Eqs 5.4 and 5.5.
    """
    counts = _counts(sizes)
    if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
        raise InvalidValue("length", length, "an integer of at least 1")
    held = np.arange(counts.size)
    counted = float(counts @ np.minimum(held, length))
    return float(counts @ held) / counted if counted else 1.0


def corrected(estimate: Estimate, factor: float) -> Estimate:
    """The estimate times an update factor: a heuristic, and declared one. Intervals leave out what the factor errs.

    Example:
        >>> corrected(Estimate(value=[0.5], variance=[0.01], n=9), 1.2).value.tolist()
        [0.6]
    """
    if not factor >= 1:
        raise InvalidValue("factor", factor, "a number of at least 1")
    variance = estimate.variance * factor**2
    return replace(estimate, value=estimate.value * factor, variance=variance, bias="heuristic", noise=None)


def _counts(sizes: ArrayLike) -> NDArray[np.float64]:
    counts = np.asarray(sizes, dtype=np.float64)
    if counts.ndim != 1 or not counts.size or not np.isfinite(counts).all():
        raise InvalidValue("sizes", sizes, "finite numbers: how many people hold 0, 1, 2, ... items")
    counts = np.maximum(counts, 0.0)
    if not counts.sum():
        raise InvalidValue("sizes", sizes, "at least one number above 0")
    return counts
