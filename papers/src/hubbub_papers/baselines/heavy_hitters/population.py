"""People who hold a string of bits each, candidates of a search for heavy hitters among them, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator


@dataclass(frozen=True, eq=False)
class BitPopulation:
    """Strings of `bits` bits as integers, and which of them each person holds.

    `values` are different integers below 2^bits, in rising order: 64-bit ones, or Python's if 64 bits are too few.
    `people` has, for each person, the index in `values` of the string that they hold.
    """

    values: NDArray[Any]
    people: NDArray[np.int64]
    bits: int

    @classmethod
    def of(cls, strings: Sequence[int] | NDArray[Any], bits: int) -> BitPopulation:
        """The population of people who hold these integers, one each."""
        values, people = np.unique(np.asarray(strings, dtype=np.uint64 if bits <= 64 else object), return_inverse=True)
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


class FoundValues(NamedTuple):
    """Values in falling order of their estimated shares, and the shares."""

    values: list[int]
    shares: NDArray[np.float64]

    def above(self, threshold: float | None) -> FoundValues:
        """The values whose estimated share is at least the threshold; all values if it is None."""
        if threshold is None:
            return self
        number = int((self.shares >= threshold).sum())
        return FoundValues(self.values[:number], self.shares[:number])


def best_values(values: Sequence[int] | NDArray[Any], shares: NDArray[np.float64], k: int) -> FoundValues:
    """The k values of the largest estimated shares."""
    order = np.argsort(-shares, kind="stable")[:k]
    return FoundValues([int(values[place]) for place in order], shares[order])


@dataclass(frozen=True, eq=False)
class Extensions:
    """All strings that are one of the prefixes, followed by `bits` more bits."""

    prefixes: NDArray[Any]
    bits: int

    @classmethod
    def everything(cls, bits: int) -> Extensions:
        """All strings of this many bits."""
        return cls(np.zeros(1, dtype=np.uint64), bits)

    def __post_init__(self) -> None:
        prefixes = np.asarray(self.prefixes)
        object.__setattr__(self, "prefixes", prefixes if prefixes.dtype == object else prefixes.astype(np.uint64))

    @property
    def size(self) -> int:
        """The number of strings."""
        return len(self.prefixes) << self.bits

    def rows(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """The index of the prefix that each code extends, -1 if it extends no prefix."""
        stems = self._stems(codes)
        order = np.argsort(self.prefixes, kind="stable")
        places = np.searchsorted(self.prefixes[order], stems)
        rows = order[np.minimum(places, len(order) - 1)]
        return np.where(self.prefixes[rows] == stems, rows, -1)

    def within(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether each code is among the candidates."""
        return np.asarray(self.rows(codes) >= 0)

    def extended(self, rows: NDArray[np.int64], more: NDArray[Any]) -> NDArray[Any]:
        """The codes of the prefixes at these indices, each followed by the bits `more`."""
        if self.prefixes.dtype == object:
            return np.asarray((self.prefixes[rows] << self.bits) | more.astype(object))
        return np.asarray((self.prefixes[rows] << np.uint64(self.bits)) | more.astype(np.uint64))

    def listed(self) -> NDArray[Any]:
        """All codes, prefix by prefix."""
        rows = np.repeat(np.arange(len(self.prefixes)), 1 << self.bits)
        return self.extended(rows, np.tile(np.arange(1 << self.bits), len(self.prefixes)))

    def drawn(self, number: int, held: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Different candidates at random, without the codes in `held`."""
        taken = set(held.tolist())
        chosen: list[int] = []
        while len(chosen) < number:
            rows = rng.integers(len(self.prefixes), size=2 * number)
            for code in self.extended(rows, rng.integers(1 << self.bits, size=2 * number, dtype=np.uint64)).tolist():
                if code not in taken and len(chosen) < number:
                    chosen.append(code)
                    taken.add(code)
        return np.array(chosen, dtype=self.prefixes.dtype)

    def _stems(self, codes: NDArray[Any]) -> NDArray[Any]:
        if codes.dtype == object:
            return codes >> self.bits
        return codes >> np.uint64(self.bits) if self.bits < 64 else np.zeros_like(codes)
