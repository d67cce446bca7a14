"""Sums of weights over the same people, estimated together with their covariances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.core.estimate import Bias
from hubbub.core.reports import Floats
from hubbub.query.formula import NO_FACTOR, PrivateFactor


@dataclass(frozen=True, order=True)
class Monomial:
    """A power of a public expression, and 0 where the expression is NULL. The power 0 is 1 where it is not NULL.

    `base`: the expression as SQL; the empty text is 1 for everybody. `power`: from 0 on. `private`: what private
    columns multiply it with.
    """

    base: str
    power: int = 1
    private: PrivateFactor = NO_FACTOR

    @property
    def public(self) -> Monomial:
        """The part that the server knows of everybody."""
        return self if self.private is NO_FACTOR else Monomial(self.base, self.power)

    def __mul__(self, other: Monomial) -> Monomial:
        private = self.private * other.private
        if not self.base or not other.base:
            known = other if not self.base else self
            return Monomial(known.base, known.power, private)
        if self.base == other.base:
            return Monomial(self.base, self.power + other.power, private)
        left, right = sorted((self.public, other.public))
        return Monomial(f"{left._factor()} * {right._factor()}", private=private)

    def _factor(self) -> str:
        if self.power == 0:
            return f"(CASE WHEN ({self.base}) IS NULL THEN NULL ELSE 1 END)"
        return " * ".join([f"CAST(({self.base}) AS DOUBLE)"] * self.power)

    def sql(self) -> str:
        """The public part of a row as a DOUBLE, 0 for NULL."""
        if not self.base:
            return "1.0"
        if self.power == 0:
            return f"CASE WHEN ({self.base}) IS NULL THEN 0.0 ELSE 1.0 END"
        return f"COALESCE({' * '.join([f'CAST(({self.base}) AS DOUBLE)'] * self.power)}, 0.0)"

    def of(self, values: Floats) -> Floats:
        """The public part of the values of its base, NaN being NULL."""
        present = ~np.isnan(values)
        return np.where(present, np.where(present, values, 1.0) ** self.power, 0.0)


EVERYBODY = Monomial("", 0)
Form = tuple[tuple[float, Monomial], ...]
"""A sum of monomials, each times a number."""


def with_products(weights: Iterable[Monomial]) -> list[Monomial]:
    """The weights and all products of two weights: the sums, and what their covariances are computed from."""
    factors = list(weights)
    return sorted({*factors, *(a * b for a in factors for b in factors)})


def monomials_to_count(monomials: Iterable[Monomial]) -> list[Monomial]:
    """The monomials that must be counted: the count of a monomial also gives the count of its square."""
    every = sorted(set(monomials))
    chosen: list[Monomial] = []
    for monomial in every:
        root = Monomial(monomial.base, monomial.power // 2)
        if monomial.power < 2 or monomial.power % 2 or root not in every or root.power == 0:
            chosen.append(monomial)
    squares = {Monomial(monomial.base, 2 * monomial.power) for monomial in chosen}
    half = {Monomial(monomial.base, monomial.power // 2) for monomial in every if monomial not in {*chosen, *squares}}
    return sorted({*chosen, *half})


@dataclass(frozen=True, eq=False)
class SumsWithError:
    """Sums of a stratum, their covariance, and their step (`PartSums`). Different strata are independent."""

    value: Floats
    covariance: Floats
    step: Floats


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """Estimates of several sums, with the covariance of their errors.

    Parameters
    ----------
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
        sizes = np.sum([np.abs(np.diag(part)) for part in self.covariances], axis=0)
        scale = np.sqrt(np.where(sizes > 0, sizes, 1.0))
        varies = np.outer(sizes > 0, sizes > 0)  # what is known exactly goes with nothing, but for what floats round
        noise, *others = (np.where(varies, part, 0.0) / np.outer(scale, scale) for part in self.covariances)
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
    """Add up the sums of several strata, each with the matrix that maps its weights (columns) to sums (rows)."""
    value = np.sum([matrix @ part.value for part, matrix in parts], axis=0)
    covariance = np.sum([matrix @ part.covariance @ matrix.T for part, matrix in parts], axis=0)
    return JointEstimate(value, (covariance,), bias)


@dataclass(frozen=True, eq=False)
class Dual:
    """A number and its gradient."""

    value: float
    gradient: Floats

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.gradient + other.gradient)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.value - other.value, self.gradient - other.gradient)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, self.value * other.gradient + other.value * self.gradient)

    def __truediv__(self, other: Dual) -> Dual:
        if other.value == 0:
            return Dual(math.nan, np.full_like(self.gradient, np.nan))
        quotient = self.value / other.value
        return Dual(quotient, (self.gradient - quotient * other.gradient) / other.value)

    def root(self) -> Dual:
        """The square root; of what is not above 0, nothing is known."""
        if not self.value > 0:
            return Dual(math.nan, np.full_like(self.gradient, np.nan))
        root = math.sqrt(self.value)
        return Dual(root, self.gradient / (2 * root))

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.gradient)
