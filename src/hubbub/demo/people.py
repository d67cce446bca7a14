"""What the owners of simulated devices do in a live demonstration: the truth, step by step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.simulate.devices import Stream

__all__ = ["Owners", "People"]


@dataclass(frozen=True, kw_only=True)
class _Held(Stream):
    """So many people with a code each; the last code is "(none)". `seed` and `group` tell them from others."""

    n: int
    seed: int
    group: int

    steps = None

    @property
    @abstractmethod
    def symbols(self) -> int:
        """How many codes there are, the last of which is "(none)"."""

    @abstractmethod
    def codes(self, step: int) -> NDArray[np.int64]:
        """The code of each person in a step."""

    def values(self, step: int, start: int, stop: int) -> NDArray[np.int64]:
        return self.codes(step)[start:stop]

    def truth(self, step: int) -> NDArray[np.float64]:
        return np.bincount(self.codes(step), minlength=self.symbols) / self.n


@dataclass(frozen=True, kw_only=True)
class People(_Held):
    """People who hold, in every step, a value drawn anew, or none.

    Parameters
    ----------
    weights
        How common each value is: a row a step, the first again after the last. Where a row is 0, nobody holds any.
    silent
        The part of them who hold none.

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

    def codes(self, step: int) -> NDArray[np.int64]:
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

    Parameters
    ----------
    histories
        A row a step, the first again after the last; a column a person: a code, or -1 for nothing yet.
    size
        How many codes there are.

    Example:
        >>> owners = Owners(histories=[[-1, 0], [1, 0]], size=2, n=6, seed=1, group=0)
        >>> sorted(set(owners.codes(0).tolist())), sorted(set(owners.codes(3).tolist()))
        ([0, 2], [0, 1])
    """

    histories: Sequence[Sequence[int]]
    size: int

    @property
    def symbols(self) -> int:
        return self.size + 1

    def codes(self, step: int) -> NDArray[np.int64]:
        row = np.asarray(self.histories[step % len(self.histories)], dtype=np.int64)
        codes = row[Random(seed=self.seed).child("owners", self.group).below(row.size, self.n)]
        return np.where(codes < 0, self.size, codes)
