"""The domain of sets of items, and a batch of sets in two arrays."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, ClassVar, Self, overload

import numpy as np

from hubbub.core.domain.base import Domain, Values, as_list
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Array, Ints
from hubbub.core.spec import Json


@dataclass(frozen=True)
class Sets(Domain):
    """Sets of at most `most` items of another domain. Each set is encoded as a row of item codes, padded with -1.

    Example:
        >>> from hubbub import Ordinal
        >>> Sets(Ordinal(9), most=3).encode([{1, 2}, set()]).tolist()
        [[1, 2, -1], [-1, -1, -1]]
    """

    kind: ClassVar[str] = "sets"
    items: Domain
    most: int
    size = None

    def __post_init__(self) -> None:
        if isinstance(self.items, Mapping):
            object.__setattr__(self, "items", Domain.from_spec(self.items))
        if not isinstance(self.items, Domain) or self.items.size is None:
            raise InvalidValue("items", self.items, "a domain with a size")
        check_integer("most", self.most, 1, self.items.size)

    def spec(self) -> dict[str, Json]:
        return {"kind": self.kind, "items": self.items.spec(), "most": self.most}

    @property
    def listed(self) -> tuple[str, ...]:
        return self.items.listed

    def describe(self) -> str:
        items = f" {self.items.size:,} names" if self.listed else f": {self.items.describe()}"
        return f"at most {self.most} of{items}"

    def code(self, value: object) -> tuple[int, ...]:
        return tuple(int(code) for code in self.encode([value])[0] if code >= 0)

    def missing(self) -> tuple[int, ...]:
        return ()

    def examples(self, most: int) -> list[set[object]]:
        items = self.items.examples(most)
        return [set(items[k : k + self.most]) for k in range(len(items))]

    def encode(self, values: Values) -> Ints:
        rows = [as_list(members) for members in as_list(values)]
        out = np.full((len(rows), self.most), -1, dtype=np.int64)
        for row, members in enumerate(rows):
            codes = np.unique(self.items.encode(members))
            if codes.size < len(members):
                raise InvalidValue("values", members, "sets without repeats")
            if codes.size > self.most:
                raise InvalidValue("values", members, f"sets of at most {self.most} items")
            out[row, : codes.size] = codes
        return out


@dataclass(frozen=True, eq=False)
class ItemSets:
    """Sets of item codes in two arrays: person i holds `items[offsets[i]:offsets[i + 1]]`, which is also `sets[i]`.

    Parameters
    ----------
    offsets
        Where each set begins, and the end: one more number than there are sets.
    items
        The item codes of all sets, one set after the other, without repeats in a set.
    domain
        How many items there are: codes run from 0 to domain-1.

    Example:
        >>> three = ItemSets([0, 2, 2, 3], [4, 0, 4], domain=5)
        >>> three.n, three[0].tolist(), three.sizes.tolist(), three.support().tolist()
        (3, [4, 0], [2, 0, 1], [1, 0, 0, 0, 2])
        >>> three[np.array([2, 0])].items.tolist()
        [4, 4, 0]
    """

    offsets: Ints
    items: Ints
    domain: int

    def __post_init__(self) -> None:
        for field in ("offsets", "items"):
            array = np.asarray(getattr(self, field))
            if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
                raise InvalidValue(field, getattr(self, field), "a list of integers")
            frozen = array.astype(np.int64)
            frozen.flags.writeable = False
            object.__setattr__(self, field, frozen)
        if isinstance(self.domain, bool) or not isinstance(self.domain, int) or not 1 <= self.domain <= 1 << 32:
            raise InvalidValue("domain", self.domain, "an integer from 1 to 2^32")
        offsets, items = self.offsets, self.items
        if not offsets.size or offsets[0] or offsets[-1] != items.size or (np.diff(offsets) < 0).any():
            raise InvalidValue("offsets", offsets, f"numbers rising from 0 to {items.size}, how many items are held")
        if items.size and not 0 <= items.min() <= items.max() < self.domain:
            raise InvalidValue("items", items, f"codes from 0 to {self.domain - 1}")
        pairs = np.sort(self.owners * self.domain + items)
        if (pairs[1:] == pairs[:-1]).any():
            raise InvalidValue("items", items, "no item twice in a set")

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __iter__(self) -> Iterator[Ints]:
        return (self[person] for person in range(self.n))

    @overload
    def __getitem__(self, people: int) -> Ints: ...
    @overload
    def __getitem__(self, people: slice | Array) -> Self: ...
    def __getitem__(self, people: int | slice | Array) -> Ints | Self:
        if isinstance(people, int | np.integer):
            if not 0 <= people < self.n:
                raise IndexError(f"there are {self.n} sets")
            return self.items[self.offsets[people] : self.offsets[people + 1]]
        begins, sizes = self.offsets[:-1][people], self.sizes[people]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        chosen = object.__new__(type(self))  # already checked
        items = self.items[np.repeat(begins - offsets[:-1], sizes) + np.arange(offsets[-1])]
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in {**values, "offsets": offsets, "items": items}.items():
            object.__setattr__(chosen, name, value)
        return chosen

    @property
    def n(self) -> int:
        return len(self)

    @property
    def sizes(self) -> Ints:
        """How many items each set holds."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Ints:
        """The person of each entry of `items`."""
        return np.repeat(np.arange(self.n), self.sizes)

    def support(self) -> Ints:
        """How many sets hold each item."""
        return np.bincount(self.items, minlength=self.domain)

    def padded(self, width: int | None = None) -> Ints:
        """A row of items for each set, filled up with -1."""
        sizes = self.sizes
        rows = np.full((self.n, int(sizes.max(initial=0)) if width is None else width), -1, dtype=np.int64)
        rows[self.owners, np.arange(self.items.size) - np.repeat(self.offsets[:-1], sizes)] = self.items
        return rows


def as_item_sets(values: Values, sets: Sets) -> ItemSets:
    """Read a batch in any of its forms: a list of sets, rows of codes padded with -1, or `ItemSets`."""
    size = sets.items.size
    assert size is not None
    if isinstance(values, ItemSets):
        batch: ItemSets = values
        if batch.domain != size:
            raise InvalidValue("values", f"sets of {batch.domain} items", f"sets of {size} items")
    elif isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "iu":
        present = values != -1
        batch = ItemSets(_offsets(present.sum(axis=1)), _checked(values[present], size), size)
    else:
        rows = [_members(members) for members in _members(values)]
        codes = _codes(list(chain.from_iterable(rows)), sets.items)
        batch = ItemSets(_offsets([len(row) for row in rows]), codes, size)
    if batch.sizes.max(initial=0) > sets.most:
        raise InvalidValue("values", f"a set of {batch.sizes.max()} items", f"sets of at most {sets.most} items")
    return batch


def _members(values: Values) -> list[Any]:
    plain = type(values) in (list, tuple, set, frozenset)
    if not plain and (isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable)):
        raise InvalidValue("values", values, "a list of sets, each a list or a set of items")
    return list(values)


def _codes(members: list[object], items: Domain) -> Ints:
    codes = items.encode(members)
    if codes.shape != (len(members),):
        raise InvalidValue("values", members, "sets of single items")
    return codes


def _checked(codes: Array, size: int) -> Ints:
    if codes.size and not 0 <= codes.min() <= codes.max() < size:
        raise InvalidValue("values", [int(codes.min()), int(codes.max())], f"codes from 0 to {size - 1}, then -1")
    return codes.astype(np.int64)


def _offsets(sizes: Any) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
