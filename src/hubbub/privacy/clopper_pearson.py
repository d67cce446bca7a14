"""Exact confidence bounds of a probability from counts (Clopper and Pearson, 1934)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import needs


def lower_bound(hits: ArrayLike, trials: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """A lower bound of the probability, at confidence 1 - alpha."""
    with needs("analytics"):
        from scipy.special import betaincinv
    count, total = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    return np.where(count > 0, betaincinv(np.maximum(count, 1), total - count + 1, alpha), 0.0)


def upper_bound(hits: ArrayLike, trials: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """An upper bound of the probability, at confidence 1 - alpha."""
    return 1.0 - lower_bound(np.asarray(trials) - np.asarray(hits), trials, alpha)
