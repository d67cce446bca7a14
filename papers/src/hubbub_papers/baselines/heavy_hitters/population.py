"""People who hold a string of bits each: the populations in which the methods of chapter 4 find heavy hitters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator


@dataclass(frozen=True, eq=False)
class BitPopulation:
    """Strings of `bits` bits as integers, and which of them each person holds.

    Parameters
    ----------
    values
        Different integers below 2^bits, in rising order: 64-bit ones, or Python's if 64 bits are too few.
    people
        For each person, the index in `values` of the string that they hold.
    bits
        The length of the strings.
    """

    values: NDArray[Any]
    people: NDArray[np.int64]
    bits: int

    @classmethod
    def of(cls, held: Sequence[int] | NDArray[Any], bits: int) -> BitPopulation:
        """The population of people who hold these integers, one each."""
        values, people = np.unique(np.asarray(held, dtype=np.uint64 if bits <= 64 else object), return_inverse=True)
        return cls(values, people, bits)

    @classmethod
    def counted(cls, strings: Sequence[int], counts: NDArray[np.int64], bits: int) -> BitPopulation:
        """The population in which `counts` people hold each of these different integers."""
        values, places = np.unique(np.array(strings, dtype=np.uint64 if bits <= 64 else object), return_inverse=True)
        return cls(values, np.repeat(places, counts), bits)

    @property
    def n(self) -> int:
        """The number of people."""
        return self.people.size

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of people who hold each value."""
        return np.bincount(self.people, minlength=self.values.size)

    def ranked(self, k: int) -> list[int]:
        """The k most common values, the most common first."""
        order = np.argsort(-self.counts, kind="stable")[:k]
        return [int(self.values[place]) for place in order if self.counts[place]]

    def segment(self, start: int, stop: int) -> NDArray[Any]:
        """Bits `start` to `stop` of every value, as integers; `segment(0, s)` are the prefixes of length s."""
        shift, mask = self.bits - stop, (1 << (stop - start)) - 1
        if self.values.dtype == object:
            segments = (self.values >> shift) & mask
            return segments.astype(np.uint64) if stop - start <= 64 else segments
        return (self.values >> np.uint64(shift)) & np.uint64(mask) if stop > start else np.zeros_like(self.values)

    def split(self, sizes: Sequence[float], rng: Random) -> list[BitPopulation]:
        """The people divided at random into parts whose sizes are in proportion to `sizes`."""
        cuts = np.rint(np.cumsum(sizes) / np.sum(sizes) * self.n).astype(np.int64)[:-1]
        return [replace(self, people=part) for part in np.split(generator(rng).permutation(self.people), cuts)]
