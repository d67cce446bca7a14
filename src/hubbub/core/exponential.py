"""Geometric and discrete Laplace noise whose decay is exactly e^(-1/scale): P(k) in proportion to e^(-|k|/scale).

The scale is a whole number of cells. A query of integers that moves by at most `cells` then costs exactly cells/scale
of epsilon, a rational number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random

MOST_SCALE = 1 << 28
"""Up to this scale nearly every draw is decided by its first 64 bits and a logarithm."""

_BLOCK = 1 << 14  # draws at a time, which stay in the cache
# The rounding error of a word's conversion, logarithm, difference and product, for a scale of 1.
_ROUNDING = 1e-13
_LOG_WORD = 64 * math.log(2.0)


def laplace_cells(count: int, scale: int, rng: Random) -> NDArray[np.int64]:
    """Discrete Laplace noise in cells: the difference of two geometric numbers."""
    return geometric_cells(count, scale, rng) - geometric_cells(count, scale, rng)


def laplace_variance(scale: int) -> float:
    """The variance of `laplace_cells`, about 2 scale^2."""
    fail = -math.expm1(-1 / scale)
    return 2 * math.exp(-1 / scale) / fail**2


def geometric_cells(count: int, scale: int, rng: Random) -> NDArray[np.int64]:
    """Geometric numbers: how many trials of probability e^(-1/scale) succeed in a row, floor(-scale ln U)."""
    words = rng.uint64(count)
    numbers = np.empty(count, dtype=np.int64)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        uniform = words[part].astype(np.float64) + 0.5
        counts = (_LOG_WORD - np.log(uniform)) * scale
        floors = np.floor(counts)
        # The bits that were not drawn move ln U by less than 1/uniform.
        doubt = (1 / uniform + _ROUNDING) * scale
        rest = counts - floors
        numbers[part] = floors
        for place in np.flatnonzero((rest < doubt) | (rest > 1 - doubt)):
            numbers[start + place] = _settle(int(words[start + place]), scale, rng)
    return numbers


def surpasses(
    words: NDArray[np.uint64], exponents: NDArray[np.float64], exact: Callable[[int], Fraction], rng: Random
) -> NDArray[np.bool_]:
    """Whether -ln U is at least each exponent, which has probability e^-exponent.

    Where floats cannot decide, `exact` gives the exponent at a position as a fraction.
    """
    uniform = words.astype(np.float64) + 0.5
    margin = _LOG_WORD - np.log(uniform) - exponents
    doubt = 1 / uniform + _ROUNDING * (1 + exponents)
    passes = np.asarray(margin > 0)
    for place in np.flatnonzero(np.abs(margin) <= doubt):
        passes[place] = _settle_against(int(words[place]), exact(int(place)), rng)
    return passes


def _settle_against(bits: int, exponent: Fraction, rng: Random) -> bool:
    length = 64
    while True:
        if Fraction(_times_log(bits + 1, length, 1, ROUND_FLOOR)) >= exponent:
            return True
        if bits and Fraction(_times_log(bits, length, 1, ROUND_CEILING)) < exponent:
            return False
        bits, length = bits << 64 | int.from_bytes(rng.bytes(8), "little"), length + 64


def _settle(bits: int, scale: int, rng: Random) -> int:
    """The same number by interval arithmetic, with more bits as long as those drawn cannot decide."""
    length = 64
    while True:
        least = _times_log(bits + 1, length, scale, ROUND_FLOOR)
        if bits:
            most = _times_log(bits, length, scale, ROUND_CEILING)
            if math.floor(least) == math.floor(most):
                return math.floor(least)
        bits, length = bits << 64 | int.from_bytes(rng.bytes(8), "little"), length + 64


def _times_log(bits: int, length: int, scale: int, rounding: str) -> Decimal:
    """scale ln(2^length/bits): a lower bound (floor) or an upper bound (ceiling), at least 0."""
    context = Context(prec=60 + length // 3, rounding=rounding)
    logarithm = context.subtract(context.ln(Decimal(1 << length)), context.ln(Decimal(bits)))
    # `ln` is correctly rounded: an ulp of each term, at most length ln 2 < length, is less than this.
    slack = Decimal(length).scaleb(3 - context.prec)
    end = context.add(logarithm, -slack if rounding == ROUND_FLOOR else slack)
    return max(Decimal(0), context.multiply(end, Decimal(scale)))
