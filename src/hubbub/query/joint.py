"""Several sums over the same people, with their covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hubbub.query.monomials import Floats


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """Estimates of several sums, and how their errors go together.

    Parameters
    ----------
    value
        The estimates.
    covariances
        Matrices that add up to the covariance; none of their quadratic forms counts if it is negative, which chance can
        make of an estimated matrix.
    bias
        As of an `Estimate`.

    Example:
        >>> both = JointEstimate(np.array([3.0, 5.0]), (np.array([[4.0, 2.0], [2.0, 9.0]]),))
        >>> both.variance(np.array([1.0, -1.0]))
        9.0
    """

    value: Floats
    covariances: tuple[Floats, ...]
    bias: Literal["none", "consistent", "heuristic"] = "none"

    def variance(self, weights: Floats) -> float:
        """Of a weighted sum of the estimates."""
        forms = [float(weights @ matrix @ weights) for matrix in self.covariances]
        return sum(max(form, 0.0) if form == form else np.inf for form in forms)
