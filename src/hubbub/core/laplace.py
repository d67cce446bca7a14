"""Discrete Laplace noise of any reach, exact: P(k) in proportion to (decay/unit)^|k|."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from hubbub.core.categorical import ExactChoice
from hubbub.core.exact import log_fraction
from hubbub.core.random import Random


def discrete_laplace(words: NDArray[np.uint64], decay: int, unit: int, most: int, rng: Random) -> NDArray[np.int64]:
    """Discrete Laplace noise from two random words each, cut at -most and most."""
    side = ExactChoice([decay, unit - decay, decay]).place(words[:, 0], rng) - 1
    return side * (1 + geometric(words[:, 1], decay, unit, most - 1, rng))


@lru_cache(maxsize=1024)  # long fractions, and the same ones for every report
def at_least(k: int, decay: int, unit: int) -> Fraction:
    """The exact chance that the noise is at least k."""
    if k > 0:
        return Fraction(decay, unit) ** k * Fraction(unit, unit + decay)
    return 1 - at_least(1 - k, decay, unit)


def geometric(words: NDArray[np.uint64], decay: int, unit: int, most: int, rng: Random) -> NDArray[np.int64]:
    """The number of failures before the first success, each failing with probability decay/unit; cut at `most`.

    The number is k where a uniform U lies between decay^(k+1)/unit^(k+1) and decay^k/unit^k. Logarithms give k; where
    they, or the 64 bits of U, may be too inexact, integers decide, with more bits if needed.

    Example:
        >>> geometric(np.uint64([0, 2**62, 2**63, 2**64 - 1]), 1, 2, 100, Random(seed=1)).tolist()
        [64, 1, 0, 0]
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
