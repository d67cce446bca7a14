"""Estimates of several sums over the same people, with their covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.estimate import Bias
from hubbub.query.monomials import Floats


@dataclass(frozen=True, eq=False)
class SumsWithError:
    """Sums of a stratum and their covariance. Sums of different strata are independent."""

    value: Floats
    covariance: Floats


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """Estimates of several sums, with the covariance of their errors.

    Parameters
    ----------
    value
        The estimates.
    covariances
        Matrices that add up to the covariance; the first is that of the noise. The others are estimates and can by
        chance be negative: a variance is at least a quarter of that of the noise.
    bias
        As of an `Estimate`.

    Example:
        >>> both = JointEstimate(np.array([3.0, 5.0]), (np.array([[4.0, 2.0], [2.0, 9.0]]),))
        >>> both.variance(np.array([1.0, -1.0]))
        9.0
    """

    value: Floats
    covariances: tuple[Floats, ...]
    bias: Bias = "none"

    def variance(self, weights: Floats) -> float:
        """The variance of a weighted sum of the estimates."""
        forms = [float(weights @ matrix @ weights) for matrix in self.covariances]
        total = sum(forms)
        return np.inf if np.isnan(total) else max(total, forms[0] / 4, 0.0)

    def covariance(self, left: Floats, right: Floats) -> float:
        """The covariance of two weighted sums of the estimates."""
        return float(sum(left @ matrix @ right for matrix in self.covariances))


def independent(parts: Sequence[tuple[SumsWithError, Floats]], bias: Bias = "none") -> JointEstimate:
    """Add up the sums of several strata. Each comes with the matrix that maps its weights (columns) to the sums (rows).

    Example:
        >>> part = SumsWithError(np.array([3.0]), np.array([[4.0]]))
        >>> both = independent([(part, np.eye(1)), (part, 2 * np.eye(1))])
        >>> both.value.tolist(), both.variance(np.ones(1))
        ([9.0], 20.0)
    """
    value = np.sum([matrix @ part.value for part, matrix in parts], axis=0)
    covariance = np.sum([matrix @ part.covariance @ matrix.T for part, matrix in parts], axis=0)
    return JointEstimate(value, (covariance,), bias)
