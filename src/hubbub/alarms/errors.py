"""The standard error of a step under the null hypothesis of an alarm's test."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate


def stderr_at(estimate: Estimate, weights: NDArray[np.float64], level: float) -> float:
    """The standard error of a weighted sum if the true sum were `level`; 0 if the estimate has no noise model.

    The variance of a share grows with the share. With the variance at the estimate alone, a low estimate would seem
    more precise than it is, and would be found below a threshold too often. So the variance is also computed at the
    nearest shares whose weighted sum is `level`.
    """
    noise = estimate.noise
    if noise is None or not noise.knows_pairs:
        return 0.0
    moved = estimate.value + weights * (level - weights @ estimate.value) / (weights @ weights)
    variance = weights**2 @ noise.variance(moved) + noise.cross_terms(moved, weights[None, :])[0]
    return math.sqrt(max(float(variance), 0.0))
