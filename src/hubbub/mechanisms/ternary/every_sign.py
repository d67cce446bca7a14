"""Ternary mechanisms whose reports hold a sign for every position, and the short seeds of such rows of signs.

Short seeds of long rows of signs: at any few positions the signs are exactly independent fair coins.

Position x of a row is an element of the field GF(2^w); its bit is the inner product of the seed with the column
(1, x, x^3, ..., x^(2l-1)), 1 + l w bits. Any 2l + 1 columns are linearly independent: of a set of positions whose
columns sum to zero, the 1s say that it is of even size, at most 2l; squaring (which is linear here) gives the even
powers, so all powers from 0 to 2l sum to zero, which a Vandermonde matrix allows for no set. (The dual of an extended
BCH code.) So under a uniform seed the bits at any 2l + 1 positions are independent and fair: not nearly, but exactly.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats, Ints, Sketch
from hubbub.mechanisms.ternary.ternary import Quantity, Rates, TernaryMechanism


@dataclass(frozen=True, kw_only=True)
class MeanOnly(TernaryMechanism):
    """Every report stands for a number at every position, with the same mean square everywhere.

    The variance of a mean is then (square - frequency)/n. Reports do not tell the frequency; the stated variance uses
    the smallest that it can be, the size of the mean. So it is a little too large where signs cancel.
    """

    answers: ClassVar[tuple[Quantity, ...]] = ("mean",)

    @property
    @abstractmethod
    def square(self) -> float:
        """The mean square of one report's number."""

    @abstractmethod
    def _means(self, sketch: Sketch) -> Floats:
        """The means from a checked sketch."""

    @cached_property
    def _variances(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (self.square - 1, self.square), (math.inf, math.inf)

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        if candidates is not None:
            raise InvalidValue("candidates", candidates, "nothing: every position is estimated")
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        value = self._means(sketch)
        variance = (self.square - np.minimum(np.abs(value), 1.0)) / sketch.n
        return Estimate(value, variance, sketch.n, bias=self.bias, kind="quantity", bounds=(-1.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class EverySign(MeanOnly):
    """A report holds a sign for every position: a fair coin where nothing is held, more often the true sign elsewhere.

    The vector is filled up to s entries with stubs. With gap = p_true - p_reverse, the error of a mean is
    (1/gap^2 - frequency)/n.
    """

    @property
    @abstractmethod
    def mean_trues(self) -> Fraction:
        """How many of the s entries' signs are true, on average, exactly."""

    @cached_property
    def rates(self) -> Rates:
        true = self.mean_trues / self.sparsity
        return Rates(true, Fraction(1, 2), 1 - true)

    @cached_property
    def square(self) -> float:
        return float(1 / self.rates.gap("mean") ** 2)

    def _means(self, sketch: Sketch) -> Floats:
        counts = sketch.counts
        if counts.min() < 0 or (counts.sum(axis=0) != sketch.n).any():
            raise InvalidValue("counts", [int(counts.min()), int(counts.max())], f"{sketch.n} signs at every position")
        return np.asarray((counts[0] - counts[1]) / sketch.n / self.gap("mean"))


def seed_bits(positions: int, strength: int) -> int:
    """The length of the seed, in bits, of a row of positions of which any `strength` are independent."""
    return 1 + strength // 2 * _width(positions)


@lru_cache(maxsize=16)
def columns_of(positions: int, strength: int) -> NDArray[np.uint8]:
    """The columns of the code, one for each position; row i belongs to bit i of a seed."""
    width = _width(positions)
    power = np.arange(positions, dtype=np.int64)
    square = _product(power, power, width)
    rows = [np.ones((1, positions), dtype=np.uint8)]
    for _ in range(strength // 2):
        rows.append((power >> np.arange(width)[:, None] & 1).astype(np.uint8))
        power = _product(power, square, width)
    table = np.concatenate(rows)
    table.flags.writeable = False
    return table


def solve(rows: NDArray[np.uint8], wanted: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A seed for every system of independent equations: `rows` (systems, equations, bits) times the seed = `wanted`."""
    rows, wanted = rows.copy(), wanted.copy()
    systems, equations, bits = rows.shape
    every, pivots = np.arange(systems), np.empty((equations, systems), dtype=np.int64)
    for k in range(equations):
        pivots[k] = rows[:, k].argmax(axis=1)  # a bit that the equation has; it is taken out of all others
        others = rows[every, :, pivots[k]]
        if not others[:, k].all():
            raise InvalidValue("rows", "equations that depend on each other", "independent ones")
        others[:, k] = 0
        rows ^= others[:, :, None] & rows[:, k, None]
        wanted ^= others & wanted[:, k, None]
    seeds = np.zeros((systems, bits), dtype=np.uint8)
    for k in range(equations):
        seeds[every, pivots[k]] = wanted[:, k]
    return seeds


def _width(positions: int) -> int:
    return max(1, (positions - 1).bit_length())


def _product(a: Ints, b: Ints, width: int) -> Ints:
    """Products in GF(2^width)."""
    modulus, result = irreducible(width), np.zeros_like(a)
    for bit in range(width - 1, -1, -1):
        result = result << 1
        result ^= modulus * (result >> width)
        result ^= a * (b >> bit & 1)
    return result


@lru_cache(maxsize=32)
def irreducible(width: int) -> int:
    """The smallest polynomial of a degree, as bits, that no smaller one divides."""
    candidates = range((1 << width) + 1, 2 << width, 2)
    if width == 1:
        return 2  # x: GF(2) itself
    return next(
        polynomial for polynomial in candidates if all(_rest(polynomial, by) for by in range(2, 2 << width // 2))
    )


def _rest(polynomial: int, by: int) -> int:
    while polynomial.bit_length() >= by.bit_length():
        polynomial ^= by << polynomial.bit_length() - by.bit_length()
    return polynomial
