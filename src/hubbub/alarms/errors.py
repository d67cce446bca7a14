"""The standard error that a step is judged by."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate


def stderr_at(estimate: Estimate, weights: NDArray[np.float64], level: float) -> float:
    """The standard error of a weighted sum if the truth were at a level; 0 where the estimate does not tell.

    The variance of a share grows with it. By that of the estimate alone a low one would seem surer than it is, and be
    found below a threshold too often: so it is also computed at the nearest shares whose weighted sum is the level.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> low = Estimate([0.0, 1.0], [1e-4, 3e-4], 900, noise=Noise(floor=1e-4, slope=2e-4))
        >>> round(stderr_at(low, np.array([1.0, 0.0]), 0.5) ** 2, 6)
        0.0002
    """
    noise = estimate.noise
    if noise is None or not noise.knows_pairs:
        return 0.0
    moved = estimate.value + weights * (level - weights @ estimate.value) / (weights @ weights)
    variance = weights**2 @ noise.variance(moved) + noise.cross_terms(moved, weights[None, :])[0]
    return math.sqrt(max(float(variance), 0.0))
