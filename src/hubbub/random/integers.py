"""Exact arithmetic and draws in integers: bounds of e^x, choices by weight, uniform subsets, rounding, rows of bits."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Bools, Ints, Words
from hubbub.random.source import Random

_DIGITS = 60
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emin=-999999, Emax=999999)
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emin=-999999, Emax=999999)
_ULP = Fraction(1, 10 ** (_DIGITS - 2))
_KEPT = 1 << 12  # results of each function: planning and auditing ask for the same few again and again


@lru_cache(_KEPT)
def exp_floor(exponent: float | Fraction) -> Fraction:
    """A rational just below e^exponent: a likelihood ratio that a mechanism may use."""
    exact = Fraction(exponent)
    x = _DOWN.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    # decimal's exp is correctly rounded; a few relative units in the 58th digit cover it, the division and log_upper's.
    return Fraction(_DOWN.exp(x)) * (1 - 3 * _ULP * max(1, abs(int(x))))


@lru_cache(_KEPT)
def log_upper(ratio: Fraction) -> float:
    """The smallest float that is surely at least ln(ratio)."""
    if ratio <= 0:
        raise ValueError("the ratio of two probabilities is above 0")
    if ratio == 1:
        return 0.0
    rounded = _ln(ratio)
    logarithm = Fraction(rounded) + _ULP * max(1, abs(int(rounded)))
    nearest = float(logarithm)
    return nearest if Fraction(nearest) >= logarithm else math.nextafter(nearest, math.inf)


@lru_cache(_KEPT)
def log_fraction(probability: Fraction) -> float:
    """ln of an exact probability, to the nearest float; -inf for 0."""
    return -math.inf if probability == 0 else float(_ln(probability))


def ceil_div(numerator: int | Fraction, denominator: int | Fraction) -> int:
    """The quotient of two positive rationals, rounded up."""
    return math.ceil(Fraction(numerator) / Fraction(denominator))


def _ln(ratio: Fraction) -> Decimal:
    quotient = _UP.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return _UP.ln(quotient)


class ExactChoice:
    """A categorical distribution with big integer weights, sampled without any rounding.

    A draw takes 64 random bits and finds their place among the cumulative weights. Only where those bits equal the
    first 64 of a border (a chance of some 2^-64 for each) are more bits drawn, until the side is certain: no
    probability, however small, is rounded to zero.
    """

    def __init__(self, weights: Sequence[int]) -> None:
        if not weights or any(weight <= 0 for weight in weights):
            raise InvalidValue("weights", list(weights)[:5], "at least one weight, all positive")
        self.weights = tuple(weights)
        *self._borders, self.total = accumulate(weights)
        self._first_bits = np.array([(border << 64) // self.total for border in self._borders], dtype=np.uint64)

    def probability(self, index: int) -> Fraction:
        """The exact chance of an index."""
        return Fraction(self.weights[index], self.total)

    def sample(self, rng: Random, *shape: int) -> Ints:
        """Indices of the given shape."""
        return self.place(rng.uint64(*shape), rng)

    def place(self, bits: Words, rng: Random) -> Ints:
        """The index that each 64 random bits select; `rng` gives more bits only where these cannot decide."""
        index = np.searchsorted(self._first_bits, bits, side="right")
        unsure = np.searchsorted(self._first_bits, bits, side="left") != index
        for place in zip(*np.nonzero(unsure), strict=True):
            index[place] = self._resolve(int(bits[place]), rng)
        return index

    def _resolve(self, bits: int, rng: Random) -> int:
        length = 64
        while True:
            # The borders surely at or below the point, and surely above it, given the bits so far.
            below = bisect_right(self._borders, bits * self.total, key=lambda border: border << length)
            above = bisect_right(self._borders, (bits + 1) * self.total - 1, key=lambda border: border << length)
            if below == above:
                return below
            bits, length = bits << 64 | int.from_bytes(rng.bytes(8), "little"), length + 64


def bounded(words: Words, bounds: Ints, rng: Random) -> Ints:
    """Turn each 64-bit word into an integer below its bound, without bias.

    A word past the last whole multiple of the bound is drawn again; for bounds below 2^20 that happens to one in
    2^44 of them.
    """
    limit = bounds.astype(np.uint64)
    last = ~np.uint64(0) - (~np.uint64(0) % limit + np.uint64(1)) % limit
    words = words.copy()
    redraw = np.flatnonzero(words > last)
    while redraw.size:
        words[redraw] = rng.uint64(redraw.size)
        redraw = redraw[words[redraw] > last[redraw]]
    return (words % limit).astype(np.int64)


def subsets(words: Words, counts: Ints, rng: Random) -> Bools:
    """Mark `counts[i]` columns in row i, each set of that many columns equally likely, from one word per column.

    By selection sampling: a column is marked with probability (columns still to mark)/(columns still to visit).
    """
    remaining, columns = counts.copy(), words.shape[1]
    marked = np.empty(words.shape, dtype=bool)
    for column in range(columns):
        marked[:, column] = bounded(words[:, column], np.full(len(words), columns - column), rng) < remaining
        remaining -= marked[:, column]
    return marked


def distinct(words: Words, below: int, rng: Random) -> Ints:
    """In each row as many different numbers below a bound as words, every set of them equally likely, in order.

    By Floyd's sampling: the work grows with the square of how many there are.
    """
    drawn = np.full(words.shape, -1, dtype=np.int64)
    for place, last in enumerate(range(below - words.shape[1], below)):
        number = bounded(words[:, place], np.full(len(words), last + 1), rng)
        drawn[:, place] = np.where((drawn == number[:, None]).any(axis=1), last, number)
    return np.sort(drawn, axis=1)


GRAIN = 1 << 32
"""A number between two grid points is first fixed to a 2^-32 part of a cell."""


def to_units(values: Values, low: float, high: float, cells: int) -> Ints:
    """Numbers from low to high as integers from 0 to cells 2^32, to the nearest."""
    numbers = np.atleast_1d(np.asarray(values))
    if numbers.size == 0:
        return np.empty(0, dtype=np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
        raise InvalidValue("values", values, "a one-dimensional batch of numbers")
    inside = (numbers >= low) & (numbers <= high)
    if not inside.all():
        raise InvalidValue("values", numbers[~inside][0].item(), f"numbers from {low:g} to {high:g}")
    top = cells * GRAIN
    return np.clip(np.rint((numbers - low) / (high - low) * top), 0, top).astype(np.int64)


def to_grid(units: Ints, draws: NDArray[np.uint32]) -> Ints:
    """Round each up or down to a grid point by 32 random bits, so that its mean is kept exactly."""
    return (units >> 32) + (draws < (units & (GRAIN - 1)))


def pack(bits: Bools) -> NDArray[np.uint8]:
    """Pack each row."""
    return np.packbits(bits, axis=1, bitorder="little")


def unpack(packed: Array, size: int) -> NDArray[np.uint8]:
    """The first `size` bits of each row."""
    return np.unpackbits(packed, axis=1, count=size, bitorder="little")


def every_row(size: int) -> NDArray[np.uint8]:
    """All 2^size rows of `size` bits, packed."""
    return pack((np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(bool))
