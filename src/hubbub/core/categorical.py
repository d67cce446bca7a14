"""Exact choices: an index drawn with probability weight/total, for integer weights of any size."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random


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

    def sample(self, rng: Random, *shape: int) -> NDArray[np.int64]:
        """Indices of the given shape."""
        return self.place(rng.uint64(*shape), rng)

    def place(self, bits: NDArray[np.uint64], rng: Random) -> NDArray[np.int64]:
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
