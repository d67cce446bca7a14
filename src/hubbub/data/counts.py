"""Counts of values: a histogram from which a population can be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.random import Random


@dataclass(frozen=True, eq=False)
class Counts:
    """Labels, and the number of people who hold each. A label's position is its code.

    Parameters
    ----------
    labels
        The values, as strings.
    counts
        The number of people who hold each label, 0 or more.
    groups
        The category of each label, if there are categories.

    Example:
        >>> fruit = Counts(["apple", "fig", "pear"], [2, 0, 3], groups=["round", "soft", "round"])
        >>> fruit.n, fruit.frequencies.tolist()
        (5, [0.4, 0.0, 0.6])
    """

    labels: NDArray[np.str_]
    counts: NDArray[np.int64]
    groups: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        if counts.ndim != 1 or not counts.size or counts.dtype.kind not in "iu":
            raise InvalidValue("counts", self.counts, "a list of integers, one a label")
        if counts.min() < 0 or sum(counts.tolist()) >= 1 << 63:
            raise InvalidValue("counts", self.counts, "integers of at least 0 whose sum is below 2^63")
        object.__setattr__(self, "counts", _frozen(counts, np.int64))
        for field in ("labels", "groups"):
            value = getattr(self, field)
            if value is None and field == "groups":
                continue
            strings = np.asarray(value)
            if strings.shape != counts.shape or strings.dtype.kind != "U":
                raise InvalidValue(field, value, f"{counts.size} strings, one a count")
            object.__setattr__(self, field, _frozen(strings, strings.dtype))

    def __len__(self) -> int:
        return self.counts.size

    @property
    def n(self) -> int:
        """The number of people."""
        return int(self.counts.sum())

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """The share of the population that holds each label."""
        return self.counts / self.n

    def population(self, rng: Random, n: int | None = None) -> NDArray[np.int64]:
        """The code of each person, in random order.

        Parameters
        ----------
        rng
            The source of the order, and of the draws.
        n
            By default all people. Otherwise n people are drawn from them with replacement, without rounding: each by a
            uniform integer below the number of people.

        Example:
            >>> few = Counts(["a", "b"], [1, 3])
            >>> sorted(few.population(Random(seed=1)).tolist())
            [0, 1, 1, 1]
            >>> few.population(Random(seed=1), n=100).size
            100
        """
        if n is None:
            return np.repeat(np.arange(len(self)), self.counts)[rng.permutation(self.n)]
        check_integer("n", n, 0)
        if not self.n:
            raise InvalidValue("counts", self.counts, "at least one person to draw from")
        return np.searchsorted(np.cumsum(self.counts), rng.below(self.n, n), side="right").astype(np.int64)

    def by_group(self) -> Counts:
        """The counts of the groups, in alphabetical order.

        Example:
            >>> Counts(["a", "b", "c"], [1, 2, 3], groups=["y", "x", "y"]).by_group().counts.tolist()
            [2, 4]
        """
        if self.groups is None:
            raise InvalidValue("groups", None, "counts with groups")
        return _summed(self.groups, self.counts)

    def by_label(self) -> Counts:
        """The counts with equal labels of different groups added up, in alphabetical order.

        Example:
            >>> Counts(["Lee", "Ann", "Lee"], [5, 9, 6], groups=["F", "F", "M"]).by_label().counts.tolist()
            [9, 11]
        """
        return _summed(self.labels, self.counts)


def _summed(keys: NDArray[np.str_], counts: NDArray[np.int64]) -> Counts:
    labels, codes = np.unique(keys, return_inverse=True)
    total = np.zeros(labels.size, dtype=np.int64)
    np.add.at(total, codes, counts)
    return Counts(labels, total)


def _frozen(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    frozen = np.array(array, dtype=dtype)
    frozen.flags.writeable = False
    return frozen
