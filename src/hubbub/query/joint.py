"""Estimates of several sums over the same people, with their covariances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core.estimate import Bias
from hubbub.query.monomials import Floats


@dataclass(frozen=True, eq=False)
class SumsWithError:
    """Sums of a stratum, their covariance, and their step (`SumsMethod`). Different strata are independent."""

    value: Floats
    covariance: Floats
    step: float = 0.0


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
    one_report
        The products of what one report of a person with much weight adds to each sum; None: nothing is added.
    bounds
        Unbiased estimates of a lower and an upper bound of each sum, where the sums themselves are not unbiased.
    """

    value: Floats
    covariances: tuple[Floats, ...]
    bias: Bias = "none"
    one_report: Floats | None = None
    bounds: tuple[JointEstimate, JointEstimate] | None = None

    def widened(self, reach: float) -> JointEstimate:
        """The estimates with the covariance that intervals of this reach are made from.

        Few reports may be all that an estimate and its variance are made of, and where by chance there is none both are
        0. The interval of a Poisson count k by test inversion has the variance k + reach^2 / 4. Likewise, the variance
        here is that of reach^2 / 4 more reports.
        """
        if self.one_report is None:
            return self
        return replace(self, covariances=(*self.covariances, reach**2 / 4 * self.one_report), one_report=None)

    def variance(self, weights: Floats) -> float:
        """The variance of a weighted sum of the estimates."""
        forms = [float(weights @ matrix @ weights) for matrix in self.covariances]
        total = sum(forms)
        return np.inf if np.isnan(total) else max(total, forms[0] / 4, 0.0)

    def matrix(self) -> Floats:
        """The covariance as a matrix without negative eigenvalues, of at least a quarter of that of the noise."""
        if not all(np.isfinite(part).all() for part in self.covariances):
            return np.full_like(self.covariances[0], np.inf)
        scale = np.sqrt(np.maximum(np.sum([np.abs(np.diag(part)) for part in self.covariances], axis=0), 1e-300))
        noise, *others = (part / np.outer(scale, scale) for part in self.covariances)
        least = _without_negative(noise / 4)
        return np.outer(scale, scale) * (least + _without_negative(np.sum([noise, *others], axis=0) - least))

    def covariance(self, left: Floats, right: Floats) -> float:
        """The covariance of two weighted sums of the estimates."""
        return float(sum(left @ matrix @ right for matrix in self.covariances))


def _without_negative(matrix: Floats) -> Floats:
    """A symmetric matrix with its negative eigenvalues set to 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def independent(parts: Sequence[tuple[SumsWithError, Floats]], bias: Bias = "none") -> JointEstimate:
    """Add up the sums of several strata. Each comes with the matrix that maps its weights (columns) to the sums (rows)."""
    value = np.sum([matrix @ part.value for part, matrix in parts], axis=0)
    covariance = np.sum([matrix @ part.covariance @ matrix.T for part, matrix in parts], axis=0)
    return JointEstimate(value, (covariance,), bias)
