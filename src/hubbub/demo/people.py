"""What the owners of simulated devices do in a live demonstration: the truth, step by step."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.reports import Array, Floats, Ints
from hubbub.random.source import Random
from hubbub.simulate.devices import Stream


@dataclass(frozen=True, kw_only=True)
class _Held(Stream):
    """People with a code each; the last code is "(none)". `seed` and `group` tell them from others."""

    n: int
    seed: int
    group: int

    steps = None

    @property
    @abstractmethod
    def symbols(self) -> int:
        """How many codes there are, the last of which is "(none)"."""

    @abstractmethod
    def codes(self, step: int) -> Ints:
        """The code of each person in a step."""

    def values(self, step: int, start: int, stop: int) -> Array:
        return self.codes(step)[start:stop]

    def truth(self, step: int) -> Floats:
        return np.bincount(self.codes(step), minlength=self.symbols) / self.n


@dataclass(frozen=True, kw_only=True)
class People(_Held):
    """People who hold, in every step, a value drawn anew, or none.

    `weights`: how common each value is: one row per step, the first again after the last. Where a row is 0, nobody
    holds any. `silent`: the part of them who hold none.

    Example:
        >>> people = People(weights=[[3.0, 1.0], [0.0, 1.0]], silent=0.0, n=5, seed=1, group=0)
        >>> people.codes(1).tolist(), people.truth(1).tolist()
        ([1, 1, 1, 1, 1], [0.0, 1.0, 0.0])
    """

    weights: Sequence[Sequence[float]]
    silent: float

    @property
    def symbols(self) -> int:
        return len(self.weights[0]) + 1

    def codes(self, step: int) -> Ints:
        rng = Random(seed=self.seed).child("values", self.group, step)
        weights = np.array(self.weights[step % len(self.weights)], dtype=float)
        uniform = (rng.uint32(self.n) + 0.5) / 2**32
        none = (rng.uint32(self.n) + 0.5) / 2**32 < self.silent
        if not weights.any():
            return np.full(self.n, weights.size)
        edges = np.cumsum(weights / weights.sum())
        codes = np.searchsorted(edges, uniform * edges[-1], side="right").clip(0, weights.size - 1)
        return np.where(none, weights.size, codes).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Owners(_Held):
    """People who keep what they hold from step to step: each has the history of a person of a table, drawn for them.

    `histories`: one row per step, the first again after the last; one column per person: a code, or -1 for nothing yet.
    """

    histories: Sequence[Sequence[int]]
    size: int

    @property
    def symbols(self) -> int:
        return self.size + 1

    def codes(self, step: int) -> Ints:
        row = np.asarray(self.histories[step % len(self.histories)], dtype=np.int64)
        codes = row[Random(seed=self.seed).child("owners", self.group).below(row.size, self.n)]
        return np.where(codes < 0, self.size, codes)


@dataclass(frozen=True, kw_only=True)
class Riders(_Held):
    """People who pay an amount in every step, drawn anew; the code of an amount is its cell.

    `amounts`, `weights`: what is paid, and how common each is. `low`, `high`, `size`: the range of the cells, and how
    many there are.

    Example:
        >>> riders = Riders(amounts=[1.0, 9.0], weights=[0.0, 1.0], low=0.0, high=10.0, size=5, n=2, seed=1, group=0)
        >>> riders.values(0, 0, 2).tolist(), riders.codes(0).tolist(), riders.truth(0).tolist()
        ([9.0, 9.0], [4, 4], [0.0, 0.0, 0.0, 0.0, 1.0])
    """

    amounts: Sequence[float]
    weights: Sequence[float]
    low: float
    high: float
    size: int

    @property
    def symbols(self) -> int:
        return self.size

    def _paid(self, step: int) -> Floats:
        uniform = (Random(seed=self.seed).child("fares", self.group, step).uint32(self.n) + 0.5) / 2**32
        edges = np.cumsum(self.weights)
        places = np.searchsorted(edges, uniform * edges[-1], side="right")
        paid: Floats = np.asarray(self.amounts, dtype=np.float64)[np.minimum(places, len(edges) - 1)]
        return paid

    def codes(self, step: int) -> Ints:
        part = (self._paid(step) - self.low) / (self.high - self.low)
        return np.clip((part * self.size).astype(np.int64), 0, self.size - 1)

    def values(self, step: int, start: int, stop: int) -> Array:
        return self._paid(step)[start:stop]


@dataclass(frozen=True, kw_only=True)
class Speakers(_Held):
    """People who say a word in every step, drawn anew; the code of a word is its place in the list.

    `texts`, `weights`: what is said, and how common each word is.

    Example:
        >>> speakers = Speakers(texts=["the", "of"], weights=[0.0, 1.0], n=3, seed=1, group=0)
        >>> speakers.values(0, 0, 2).tolist(), speakers.truth(0).tolist()
        (['of', 'of'], [0.0, 1.0, 0.0])
    """

    texts: Sequence[str]
    weights: Sequence[float]

    @property
    def symbols(self) -> int:
        return len(self.texts) + 1

    def codes(self, step: int) -> Ints:
        uniform = (Random(seed=self.seed).child("words", self.group, step).uint32(self.n) + 0.5) / 2**32
        edges = np.cumsum(self.weights)
        places = np.searchsorted(edges, uniform * edges[-1], side="right")
        return np.asarray(np.minimum(places, len(edges) - 1))

    def values(self, step: int, start: int, stop: int) -> Array:
        return np.array(self.texts, dtype=object)[self.codes(step)[start:stop]]
