"""Mechanisms that read sparse vectors over {-1, 0, 1}: how a vector becomes symbols, and reports in batches."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.core.ternary import MOST_DIMENSION, as_ternary
from hubbub.mechanisms.base import Mechanism

MOST_SPARSITY = 1 << 12
_CHUNK = 1 << 20  # words drawn at once


@dataclass(frozen=True, kw_only=True)
class SparseVectors(Mechanism):
    """Values are vectors of `dimension` entries, of which at most `sparsity` are not 0.

    A value is a row of -1, 0 and 1, a mapping of keys to numbers from -1 to 1, or a row of a `Ternary`. The device
    rounds real numbers without bias. Of a vector with more than `sparsity` entries it draws that many, which is biased
    (`Ternary.clipping` says by how much). The randomiser then reads symbols: 2 i for +1 at position i, 2 i + 1 for -1.
    """

    linkable = "never"
    dimension: int
    sparsity: int

    @property
    @abstractmethod
    def words(self) -> int:
        """How many 64-bit random words one report takes, whatever the value."""

    @abstractmethod
    def _respond(self, symbols: NDArray[np.int64], draws: NDArray[np.uint64], rng: Random) -> dict[str, NDArray[Any]]:
        """The columns of reports on rows of symbols (filled up with -1), from `words` random words a row."""

    def _resolve_shape(self) -> None:
        self._integer("dimension", 1, MOST_DIMENSION)
        self._integer("sparsity", 1, min(self.dimension, MOST_SPARSITY))

    @cached_property
    def size(self) -> int:
        """How many vectors there are with at most `sparsity` entries."""
        return sum(math.comb(self.dimension, entries) << entries for entries in range(self.sparsity + 1))

    def encode(self, values: Any) -> NDArray[np.int64]:
        return as_ternary(values, self.dimension).entries

    def symbols(self, values: Any) -> NDArray[np.int64]:
        """Rows of symbols of vectors that need no rounding and no clipping: what a probability is conditional on."""
        from hubbub.core.settling import settled

        return settled(self.encode(values), self.sparsity)

    def example_values(self, most: int) -> list[Any]:
        """Vectors of every number of entries in turn: the first few are short ones and full ones."""
        from hubbub.mechanisms.in_turn import in_turn  # a device needs no examples

        # The number of all vectors may take long to compute: pairs of positions alone are often too many.
        every = math.comb(self.dimension, min(self.sparsity, 2)) <= most and self.size <= most
        counts = [0, *range(self.sparsity, 0, -1)]
        if not every:
            counts = sorted(set(counts[:3] + counts[-1:]), key=counts.index)
        return in_turn([self._vectors(count, every=every) for count in counts], most)

    def _vectors(self, count: int, *, every: bool) -> Iterator[dict[int, int]]:
        """Every vector with so many entries; or runs of positions that wrap round, with alternating signs."""
        d = self.dimension
        if every:
            for positions, signs in product(combinations(range(d), count), product((1, -1), repeat=count)):
                yield dict(zip(positions, signs, strict=True))
            return
        for start, sign in product(range(d if count else 1), (1, -1) if count else (1,)):
            yield {(start + k) % d: sign * (1 - 2 * (k % 2)) for k in range(count)}

    def _randomize(self, codes: NDArray[Any], rng: Random) -> dict[str, NDArray[Any]]:
        from hubbub.core.settling import settle  # a device that is given its vector an entry at a time needs none of it

        width = 1 + self.words
        step = max(1, _CHUNK // width)
        parts = []
        for start in range(0, max(len(codes), 1), step):
            chunk = codes[start : start + step]
            draws = rng.uint64(len(chunk), width)
            parts.append(self._respond(settle(chunk, draws[:, 0], self.sparsity), draws[:, 1:], rng))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
