"""Projective-geometry response: a report is a point of a finite geometry, more often one orthogonal to the value's."""

from __future__ import annotations

import math
from bisect import bisect, bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, unsigned
from hubbub.mechanisms.weights import TWO_64, Blanket, search_power
from hubbub.random.integers import bounded, exp_floor
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.core.estimate import Estimate

MOST_POINTS = 1 << 24
_MOST_ORDER = 65_521
_ENUMERABLE = 5_000
_CLOSE = 1.01  # of variances: among those the smallest geometry is taken


@dataclass(frozen=True, kw_only=True)
class PGR(FrequencyOracle):
    """Shares of a large domain with the variance of subset selection, in a report of log2 d bits without a hash.

    Values are points of a projective space over the integers modulo a prime q (`order`), and so are reports. Of the N
    points, c = (q^(t-1) - 1)/(q - 1) are orthogonal to a value, which are e^eps times as likely as the others. A
    report supports the values orthogonal to it: p = c e^eps/(c e^eps + N - c), and any two values have
    (q^(t-2) - 1)/(q - 1) points in common. The variance is near that of `SubsetSelection` if q is near e^eps + 1. The
    server adds up whole hyperplanes by dynamic programming over the coordinates, in some N q t operations.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    order, include
        The prime q, and of 2^64 the share of reports that are orthogonal to the value; 0 chooses them.

    Example:
        >>> oracle = PGR(epsilon=1.5, domain=1000)
        >>> reports = oracle.randomize([7] * 6000 + [8] * 4000, Random(seed=1))
        >>> oracle.estimate(oracle.accumulate(reports)).top(2).tolist(), oracle.order, oracle.report_bytes
        ([7, 8], 5, 2)

    References
    ----------
    Feldman et al., 2022. Primes only, no powers of them; the choice of q by the exact variance is ours.
    """

    order: int = 0
    include: int = 0
    server_work: ClassVar[str] = "one increment, then q t operations a point"

    def _resolve(self) -> None:
        self._resolve_domain()
        if self.order == 0:
            self._set("order", best_order(self.epsilon, self.size))
        self._integer("order", 2, _MOST_ORDER)
        if any(self.order % factor == 0 for factor in range(2, math.isqrt(self.order) + 1)):
            raise InvalidValue("order", self.order, "a prime")
        if self.points > MOST_POINTS:
            raise InvalidValue("domain", self.size, f"values that fit a geometry of at most {MOST_POINTS:,} points")
        if self.include == 0:
            orthogonal = self._orthogonal * exp_floor(self.epsilon)
            share = math.floor(TWO_64 * orthogonal / (orthogonal + self.points - self._orthogonal))
            self._set("include", min(max(1, share), TWO_64 - 1))
        self._integer("include", 1, TWO_64 - 1)
        p, q = self.rates
        if p <= q:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 64-bit probabilities can tell from 0")

    @cached_property
    def dimension(self) -> int:
        """How many coordinates a point has: t."""
        return _dimension(self.order, self.size)

    @cached_property
    def points(self) -> int:
        """How many points there are: N, at least as many as values."""
        return _points(self.order, self.dimension)

    @property
    def _orthogonal(self) -> int:
        return _points(self.order, self.dimension - 1)

    @property
    def _common(self) -> int:
        """How many points are orthogonal to both of two values."""
        return _points(self.order, self.dimension - 2)

    @cached_property
    def _chances(self) -> tuple[Fraction, Fraction]:
        """The probability of one point that is not orthogonal to the value, and of one that is."""
        p = Fraction(self.include, TWO_64)
        return (1 - p) / (self.points - self._orthogonal), p / self._orthogonal

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        other, own = self._chances
        return own * self._orthogonal, own * self._common + other * (self._orthogonal - self._common)

    def pair_covariance(self) -> None:
        return None  # it differs where the third value is on the line of two: `_with_sketch_noise` has it

    def ratio(self) -> Fraction:
        other, own = self._chances
        return max(own / other, other / own)

    def blanket(self) -> Blanket:
        return Blanket(self.points * self._chances[0], self.ratio(), both=Fraction(self._common, self.points))

    def server_operations(self, n: int) -> float:
        return 1 + self.points * self.order * self.dimension / n

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec("private", "point", unsigned(self.points), below=self.points),)

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 2)
        orthogonal = draws[:, 0] < np.uint64(self.include)
        affine = self.points - self._orthogonal
        number = bounded(draws[:, 1], np.where(orthogonal, self._orthogonal, affine), rng)
        # All coordinates but that of the value's leading 1, which follows from the product: 0, or 1 up to a factor.
        free = np.where(orthogonal, self._vectors(number, self.dimension - 1), number)
        rest, own = self._digits(free, self.dimension - 1), self._coordinates(codes)
        lead, rows, places = (own != 0).argmax(axis=1), np.arange(codes.size), np.arange(self.dimension)
        vectors = np.take_along_axis(rest, np.clip(places - (places > lead[:, None]), 0, self.dimension - 2), axis=1)
        vectors[rows, lead] = 0
        vectors[rows, lead] = (~orthogonal - (vectors * own).sum(axis=1)) % self.order
        return {"point": self._numbered(vectors)}

    # -- points, numbered as in `kernels/projective.py` -------------------------------------------------------

    def _powers(self, dimension: int) -> Ints:
        return self.order ** np.arange(dimension - 1, -1, -1, dtype=np.int64)

    def _vectors(self, points: Ints, dimension: int) -> Ints:
        """The digits of each point's coordinates, as one number."""
        powers = self._powers(dimension)
        starts = np.cumsum(powers) - powers
        zeros = np.searchsorted(starts, points, side="right") - 1
        return np.asarray(points - starts[zeros] + powers[zeros])

    def _digits(self, vectors: Ints, dimension: int) -> Ints:
        return vectors[:, None] // self._powers(dimension) % self.order

    def _coordinates(self, points: Array) -> Ints:
        return self._digits(self._vectors(points.astype(np.int64), self.dimension), self.dimension)

    def _numbered(self, vectors: Ints) -> Ints:
        """The point in the direction of each vector."""
        powers, inverses = self._powers(self.dimension), _inverses(self.order)
        zeros = (vectors != 0).argmax(axis=1)
        factor = inverses[np.take_along_axis(vectors, zeros[:, None], axis=1)]
        return np.asarray(
            (vectors * factor % self.order) @ powers - powers[zeros] + (np.cumsum(powers) - powers)[zeros]
        )

    # -- probabilities and counts -----------------------------------------------------------------------------

    def _cases(self, reports: Reports, values: Values) -> Cases:
        products = self._coordinates(reports.private["point"]) @ self._coordinates(self.encode(values)).T
        return self._chances, (products % self.order == 0).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        return self._with_public(public, {"point": np.arange(self.points)}) if self.points <= _ENUMERABLE else None

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.points,)

    def _fold(self, reports: Reports) -> Ints:
        return np.bincount(reports.private["point"], minlength=self.points)

    def _support_counts(self, sketch: Sketch) -> Ints:
        return self._sums(sketch.counts)[: self.size]

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        counts = np.zeros(self.points, dtype=np.int64)
        np.add.at(counts, reports.private["point"], 1 if weights is None else weights)
        return self._sums(counts)[candidates]

    def _sums(self, numbers: Array) -> Array:
        from hubbub.kernels.projective import hyperplane_sums

        return hyperplane_sums(numbers, self.order)

    def _with_sketch_noise(self, sketch: Sketch, estimate: Estimate) -> Estimate:
        from hubbub.mechanisms.frequency.function_list import TableNoise

        def supported(weights: Floats) -> Floats:
            return self._sums(np.append(weights, np.zeros(self.points - self.size)))

        assert estimate.noise is not None
        p, q = (float(rate) for rate in self.rates)
        noise = TableNoise(estimate.noise, sketch.n, supported, lambda shares: sketch.counts / sketch.n, (p, q))
        return replace(estimate, noise=noise)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=5)
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d", "e", "f", "g"], order=5)
        yield cls(epsilon=1.0, domain=300)


def _points(order: int, dimension: int) -> int:
    return int((order**dimension - 1) // (order - 1))


def _dimension(order: int, size: int) -> int:
    """The fewest coordinates, at least two, with as many points as values."""
    return next(t for t in range(2, size.bit_length() + 2) if _points(order, t) >= size)


@lru_cache(maxsize=64)
def _inverses(order: int) -> Ints:
    return np.array([0] + [pow(number, -1, order) for number in range(1, order)], dtype=np.int64)


@lru_cache(maxsize=1)
def _primes() -> list[int]:
    numbers = np.arange(2, _MOST_ORDER + 1)
    prime = np.ones(numbers.size, dtype=bool)
    for factor in range(2, math.isqrt(_MOST_ORDER) + 1):
        prime[factor * factor - 2 :: factor] = False
    return [int(number) for number in numbers[prime]]


@lru_cache(maxsize=1024)
def best_order(epsilon: float, size: int) -> int:
    """The prime of the smallest variance at share 0; of those within 1% of it, the one with the smallest geometry.

    Tried are the primes next to e^eps + 1, and for each number of coordinates the smallest with as many points as
    values.
    """
    power, primes = search_power(epsilon), _primes()
    near = bisect(primes, power + 1)
    tried = set(primes[max(0, near - 3) : near + 4])
    for t in range(2, size.bit_length() + 2):
        tried |= set(primes[bisect_left(primes, size, key=partial(_points, dimension=t)) :][:1])
    fitting = sorted(q for q in tried if _points(q, _dimension(q, size)) <= MOST_POINTS)
    if not fitting:
        raise InvalidValue("domain", size, f"values that fit a geometry of at most {MOST_POINTS:,} points")
    variances = [_variance(power, q, _dimension(q, size)) for q in fitting]
    close = [q for q, variance in zip(fitting, variances, strict=True) if variance <= _CLOSE * min(variances)]
    return min(close, key=lambda q: (_points(q, _dimension(q, size)) * q, q))


def _variance(power: float, order: int, dimension: int) -> float:
    orthogonal, common = _points(order, dimension - 1), _points(order, dimension - 2)
    others = _points(order, dimension) - orthogonal
    other = 1 / (power * orthogonal + others)
    p, q = power * other * orthogonal, other * (power * common + orthogonal - common)
    return q * (1 - q) / (p - q) ** 2 if p > q else math.inf
