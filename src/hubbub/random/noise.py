"""Exact discrete noise: geometric, Laplace and Gaussian.

Geometric and discrete Laplace noise whose decay is exactly e^(-1/scale): P(k) in proportion to e^(-|k|/scale).

The scale is a whole number of cells. A query of integers that moves by at most `cells` then costs exactly cells/scale
of epsilon, a rational number.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Bools, Floats, Ints, Words
from hubbub.random.integers import ExactChoice, log_fraction
from hubbub.random.source import Random

MOST_SCALE = 1 << 28
"""Up to this scale nearly every draw is decided by its first 64 bits and a logarithm."""

_BLOCK = 1 << 14  # draws at a time, which stay in the cache
# The rounding error of a word's conversion, logarithm, difference and product, for a scale of 1.
_ROUNDING = 1e-13
_LOG_WORD = 64 * math.log(2.0)


def laplace_cells(count: int, scale: int, rng: Random) -> Ints:
    """Discrete Laplace noise in cells: the difference of two geometric numbers."""
    return geometric_cells(count, scale, rng) - geometric_cells(count, scale, rng)


def laplace_variance(scale: int) -> float:
    """The variance of `laplace_cells`, about 2 scale^2."""
    fail = -math.expm1(-1 / scale)
    return 2 * math.exp(-1 / scale) / fail**2


def geometric_cells(count: int, scale: int, rng: Random) -> Ints:
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
            numbers[start + place] = exact_floor(int(words[start + place]), scale, rng)
    return numbers


def surpasses(words: Words, exponents: Floats, exact: Callable[[int], Fraction], rng: Random) -> Bools:
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


def exact_floor(bits: int, scale: int, rng: Random) -> int:
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


def gaussian_cells(count: int, sigma: int, rng: Random) -> Ints:
    """Discrete Gaussian noise in cells, by rejection from the discrete Laplace distribution (Canonne, Kamath and
    Steinke 2020).

    A query of integers that moves by at most D in the L2 norm then costs exactly D^2/(2 sigma^2) of rho (zCDP).
    """
    if not 1 <= sigma < MOST_SCALE:
        raise InvalidValue("sigma", sigma, f"an integer from 1 to {MOST_SCALE - 1}")
    scale = sigma + 1
    parts: list[Ints] = []
    missing = count
    while missing > 0:
        candidates = laplace_cells(missing + missing // 2 + 16, scale, rng)
        words = rng.uint64(candidates.size)
        off = np.abs(candidates) - sigma**2 / scale
        accepts = surpasses(words, off * off / (2 * float(sigma) ** 2), partial(_exponent, candidates, sigma), rng)
        accepted = candidates[accepts]
        parts.append(accepted)
        missing -= accepted.size
    return np.concatenate(parts)[:count] if parts else np.empty(0, dtype=np.int64)


def _exponent(candidates: Ints, sigma: int, place: int) -> Fraction:
    """The exact exponent: a candidate y is accepted with probability e^-((|y| - sigma^2/t)^2 / (2 sigma^2)), t = sigma
    + 1."""
    off = abs(int(candidates[place])) - Fraction(sigma**2, sigma + 1)
    return off * off / (2 * sigma**2)


def discrete_laplace(words: Words, decay: int, unit: int, most: int, rng: Random) -> Ints:
    """Discrete Laplace noise from two random words each, cut at -most and most."""
    side = ExactChoice([decay, unit - decay, decay]).place(words[:, 0], rng) - 1
    return side * (1 + geometric(words[:, 1], decay, unit, most - 1, rng))


@lru_cache(maxsize=1024)  # long fractions, and the same ones for every report
def at_least(k: int, decay: int, unit: int) -> Fraction:
    """The exact chance that the noise is at least k."""
    if k > 0:
        return Fraction(decay, unit) ** k * Fraction(unit, unit + decay)
    return 1 - at_least(1 - k, decay, unit)


def geometric(words: Words, decay: int, unit: int, most: int, rng: Random) -> Ints:
    """The number of failures before the first success, each failing with probability decay/unit; cut at `most`.

    The number is k where a uniform U lies between decay^(k+1)/unit^(k+1) and decay^k/unit^k. Logarithms give k; where
    they, or the 64 bits of U, may be too inexact, integers decide, with more bits if needed.
    """
    step = log_fraction(Fraction(decay, unit))
    uniform = words.astype(np.float64) + 0.5
    count = (np.log(uniform) - 64 * np.log(2.0)) / step
    # The most that the bits not drawn and the rounding of logarithms below 64 can change.
    doubt = (1 / uniform + 1e-13) / -step
    number = np.floor(count).astype(np.int64)
    unsure = (count - number < doubt) | (count - number > 1 - doubt)
    for place in np.flatnonzero(unsure & (number <= most + doubt)):
        number[place] = _exact(int(words[place]), decay, unit, most, rng)
    return np.asarray(np.clip(number, 0, most))


def _exact(bits: int, decay: int, unit: int, most: int, rng: Random) -> int:
    length = 64
    while True:
        reached = partial(_reached, bits, length, decay, unit)
        number = bisect_left(range(1, most + 1), True, key=reached)
        if (bits + 1) * unit**number <= decay**number << length:  # whatever bits follow
            return number
        bits, length = bits << 64 | int.from_bytes(rng.bytes(8), "little"), length + 64


def _reached(bits: int, length: int, decay: int, unit: int, power: int) -> bool:
    """Whether bits/2^length is at least (decay/unit)^power."""
    return bool(bits * unit**power >= decay**power << length)
