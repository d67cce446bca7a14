"""Views of sets, key-value pairs and on/off values, and of which candidate itemsets a set contains."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.protocols.views.basic import View

MOST_SETS = 1 << 16
MOST_ITEMS = 64
BLOCK_CELLS = 1 << 24


@dataclass(frozen=True)
class _Candidates:
    """Candidate itemsets. Each is given by the ascending codes of its items, and the candidates are in ascending order.

    The views are total: codes that are in no candidate are ignored.
    """

    sets: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.sets, list | tuple) or not 1 <= len(self.sets) <= MOST_SETS:
            raise InvalidValue("sets", self.sets, f"from 1 to {MOST_SETS} itemsets")
        for items in self.sets:
            if not isinstance(items, list | tuple) or not 1 <= len(items) <= MOST_ITEMS:
                raise InvalidValue("sets", items, f"itemsets of 1 to {MOST_ITEMS} codes")
            if any(type(item) is not int or not 0 <= item < 1 << 53 for item in items):
                raise InvalidValue("sets", items, "codes that are integers from 0 to 2^53-1")
            if any(low >= high for low, high in pairwise(items)):
                raise InvalidValue("sets", items, "codes in ascending order, all different")
        sets = tuple(tuple(items) for items in self.sets)
        if any(before >= after for before, after in pairwise(sets)):
            raise InvalidValue("sets", self.sets, "itemsets in ascending order, all different")
        object.__setattr__(self, "sets", sets)

    def spec(self) -> dict[str, Json]:
        return {"kind": type(self).__name__.lower(), "sets": [list(items) for items in self.sets]}

    @cached_property
    def _items(self) -> NDArray[np.int64]:
        return np.unique(np.concatenate([np.array(items, dtype=np.int64) for items in self.sets]))

    def _blocks(self, values: Values) -> Iterator[Any]:
        """The values in blocks, so that memory does not grow with their number."""
        size = max(1, BLOCK_CELLS // len(self.sets))
        for start in range(0, len(values), size):
            yield values[start : start + size]

    def contained(self, values: Values) -> NDArray[np.bool_]:
        """Whether each set (column) contains each candidate (row)."""
        n, owners, codes = _flat(values)
        places = np.minimum(np.searchsorted(self._items, codes), self._items.size - 1)
        known = self._items[places] == codes
        has_item = np.zeros((self._items.size, n), dtype=bool)
        has_item[places[known], owners[known]] = True
        return np.stack([has_item[np.searchsorted(self._items, items)].all(axis=0) for items in self.sets])


class Subsets(_Candidates, View):
    """The numbers of the candidates that a set contains.

    `sets`: the candidates, each as the ascending codes of its items, in ascending order.
    """

    sees_sets = True

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.sets)

    def __call__(self, values: Values) -> ItemSets:
        sizes, numbers = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for block in self._blocks(values):
            contained = self.contained(block).T
            sizes.append(contained.sum(axis=1))
            numbers.append(np.nonzero(contained)[1])
        return ItemSets(np.cumsum(np.concatenate(sizes)), np.concatenate(numbers), domain=self.size)


class SubsetCount(_Candidates, View):
    """How many of the candidates a set contains.

    `sets`: as of `Subsets`.
    """

    @property
    def size(self) -> int:
        """How many different counts there are: from 0 to the number of candidates."""
        return len(self.sets) + 1

    def __call__(self, values: Values) -> NDArray[np.int64]:
        counts = [self.contained(block).sum(axis=0) for block in self._blocks(values)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *counts])


def _flat(values: Values) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """How many sets there are; and for every item of every set, the number of the set and the item's code.

    Rows of an array are sets, filled up with -1.
    """
    if isinstance(values, ItemSets):
        return len(values), values.owners, values.items
    if isinstance(values, np.ndarray):
        owners, places = np.nonzero(values >= 0)
        return len(values), owners, values[owners, places].astype(np.int64)
    sizes = [len(codes) for codes in values]
    codes = np.fromiter((code for members in values for code in members), dtype=np.int64, count=sum(sizes))
    return len(sizes), np.repeat(np.arange(len(sizes)), sizes), codes


@dataclass(frozen=True)
class Size(View):
    """How many items a set holds, at most `most`."""

    most: int

    def __call__(self, values: Values) -> NDArray[np.int64]:
        return np.array([min(len(members), self.most) for members in values], dtype=np.int64)


@dataclass(frozen=True)
class Held(View):
    """The keys that a person holds, with their numbers scaled to -1..1; NaN counts as the lower end."""

    keys: int
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InvalidValue("high", self.high, f"a finite number above low = {self.low}")

    def __call__(self, values: Values) -> list[dict[int, float]]:
        return [{key: self._scaled(number) for key, number in pairs if 0 <= key < self.keys} for pairs in values]

    def _scaled(self, number: float) -> float:
        if math.isnan(number):
            return -1.0
        inside = min(max(number, self.low), self.high)
        return min(max((inside - self.low) / (self.high - self.low) * 2 - 1, -1.0), 1.0)


@dataclass(frozen=True)
class Members(View):
    """A row of 0 and 1 for each set: which of the items it holds."""

    items: int

    def __call__(self, values: Values) -> NDArray[np.int8]:
        rows = np.zeros((len(values), self.items), dtype=np.int8)
        for row, members in zip(rows, values, strict=True):
            row[[item for item in members if 0 <= item < self.items]] = 1
        return rows


@dataclass(frozen=True)
class On(View):
    """Whether a code is 1; nothing recorded counts as 0."""

    def __call__(self, values: Values) -> NDArray[np.int8]:
        on: NDArray[np.bool_] = np.atleast_1d(np.asarray(values)) == 1
        return on.astype(np.int8)[:, None]
