"""Sets of items, one a person: shopping baskets."""

from __future__ import annotations

import csv
import io
import os
import tarfile
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.data.fetch import fetch

__all__ = ["Baskets", "online_retail", "retail"]


@dataclass(frozen=True, eq=False)
class Baskets:
    """Sets of item codes in two arrays: person i holds `items[offsets[i]:offsets[i + 1]]`, which is also `baskets[i]`.

    Parameters
    ----------
    offsets
        Where each basket begins, and the end: one more number than there are baskets.
    items
        The item codes of all baskets, one basket after the other; no item is twice in one.
    domain
        How many items there are: codes run from 0 to domain-1.
    labels
        What each item is called, where the items have names.

    Example:
        >>> three = Baskets([0, 2, 2, 3], [4, 0, 4], domain=5)
        >>> three.n, three[0].tolist(), three.sizes.tolist(), three.support().tolist()
        (3, [4, 0], [2, 0, 1], [1, 0, 0, 0, 2])
    """

    offsets: NDArray[np.int64]
    items: NDArray[np.int64]
    domain: int
    labels: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        for field in ("offsets", "items"):
            given = np.asarray(getattr(self, field))
            if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
                raise InvalidValue(field, getattr(self, field), "a list of integers")
            kept = given.astype(np.int64)
            kept.flags.writeable = False
            object.__setattr__(self, field, kept)
        if isinstance(self.domain, bool) or not isinstance(self.domain, int) or not 1 <= self.domain <= 1 << 32:
            raise InvalidValue("domain", self.domain, "an integer from 1 to 2^32")
        if self.labels is not None:
            labels = np.array(self.labels)
            if labels.shape != (self.domain,) or labels.dtype.kind != "U":
                raise InvalidValue("labels", self.labels, f"{self.domain} strings, one an item")
            labels.flags.writeable = False
            object.__setattr__(self, "labels", labels)
        offsets, items = self.offsets, self.items
        if not offsets.size or offsets[0] or offsets[-1] != items.size or (np.diff(offsets) < 0).any():
            raise InvalidValue("offsets", offsets, f"numbers rising from 0 to {items.size}, how many items are held")
        if items.size and not 0 <= items.min() <= items.max() < self.domain:
            raise InvalidValue("items", items, f"codes from 0 to {self.domain - 1}")
        pairs = np.sort(self.owners * self.domain + items)
        if (pairs[1:] == pairs[:-1]).any():
            raise InvalidValue("items", items, "no item twice in a basket")

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, person: int) -> NDArray[np.int64]:
        if not 0 <= person < self.n:
            raise IndexError(f"there are {self.n} baskets")
        return self.items[self.offsets[person] : self.offsets[person + 1]]

    @property
    def n(self) -> int:
        """How many baskets there are."""
        return len(self)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many items each basket holds."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> NDArray[np.int64]:
        """Whose each entry of `items` is.

        Example:
            >>> Baskets([0, 2, 2, 3], [4, 0, 4], domain=5).owners.tolist()
            [0, 0, 2]
        """
        return np.repeat(np.arange(self.n), self.sizes)

    def support(self) -> NDArray[np.int64]:
        """How many baskets hold each item."""
        return np.bincount(self.items, minlength=self.domain)

    def of(self, people: ArrayLike) -> Baskets:
        """The baskets of these people, in this order; someone named twice has two.

        Example:
            >>> Baskets([0, 2, 2, 3], [4, 0, 4], domain=5).of([2, 0]).items.tolist()
            [4, 4, 0]
        """
        chosen = np.asarray(people, dtype=np.int64)
        if chosen.ndim != 1 or (chosen.size and not 0 <= chosen.min() <= chosen.max() < self.n):
            raise InvalidValue("people", people, f"numbers from 0 to {self.n - 1}")
        sizes = self.sizes[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        # Where an entry stands: the beginning of its basket here, and as far from it as in the new one.
        places = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return self._part(offsets, self.items[places], self.domain)

    def among(self, candidates: ArrayLike) -> Baskets:
        """What each basket holds of these items, as places in the list of them.

        Example:
            >>> Baskets([0, 2, 2, 3], [4, 0, 4], domain=5).among([3, 4]).items.tolist()
            [1, 1]
        """
        codes = np.asarray(candidates, dtype=np.int64)
        if codes.ndim != 1 or not codes.size or not 0 <= codes.min() <= codes.max() < self.domain:
            raise InvalidValue("candidates", candidates, f"codes from 0 to {self.domain - 1}")
        if np.unique(codes).size < codes.size:
            raise InvalidValue("candidates", candidates, "codes that differ from each other")
        places = np.full(self.domain, -1)
        places[codes] = np.arange(codes.size)
        found = places[self.items]
        kept = found >= 0
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        return self._part(offsets, found[kept], codes.size)

    @classmethod
    def _part(cls, offsets: NDArray[np.int64], items: NDArray[np.int64], domain: int) -> Baskets:
        """Parts of baskets that were checked: looking for an item twice would take longer than making them."""
        part = object.__new__(cls)
        for field, array in (("offsets", offsets), ("items", items)):
            array.flags.writeable = False
            object.__setattr__(part, field, array)
        object.__setattr__(part, "domain", domain)
        return part

    def padded(self) -> NDArray[np.int64]:
        """A row a basket, as wide as the largest: its items, and -1 after them, as `Sets.encode` has them.

        Example:
            >>> Baskets([0, 2, 2, 3], [4, 0, 4], domain=5).padded().tolist()
            [[4, 0], [-1, -1], [4, -1]]
        """
        rows = np.full((self.n, max(1, int(self.sizes.max(initial=0)))), -1, dtype=np.int64)
        rows[self.owners, np.arange(self.items.size) - np.repeat(self.offsets[:-1], self.sizes)] = self.items
        return rows


def retail(*, cache: str | os.PathLike[str] | None = None) -> Baskets:
    """Purchases in a Belgian supermarket: 88,162 baskets over 16,470 items, 1 to 76 of them in each.

    Parameters
    ----------
    cache
        As of `fetch`.
    """
    text = (fetch("retail", cache=cache) / "belgian_retail_baskets.dat").read_text(encoding="ascii")
    sizes = [len(line.split()) for line in text.splitlines()]
    items = np.fromstring(text, dtype=np.int64, sep=" ")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Baskets(offsets, items, domain=int(items.max()) + 1)


def online_retail(*, cache: str | os.PathLike[str] | None = None) -> Baskets:
    """All that each of 4,372 customers of a British gift shop bought in a year: 1 to 1,823 of 3,885 articles.

    A basket is a customer's whole history, so that the longest are very long. Articles stand in alphabetical order;
    names that differ in spaces at their ends only are the same.

    Parameters
    ----------
    cache
        As of `fetch`.
    """
    with tarfile.open(fetch("online_retail", cache=cache) / "Online_Retail_Grouped.tar.xz", "r:xz") as archive:
        content = archive.extractfile("Online_Retail_Grouped.csv")
        assert content is not None
        rows = list(csv.reader(io.TextIOWrapper(content, encoding="utf-8", newline="")))
    baskets = [sorted({name.strip() for name in row} - {""}) for row in rows]
    labels, items = np.unique([name for basket in baskets for name in basket], return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum([len(basket) for basket in baskets])])
    return Baskets(offsets, items, domain=labels.size, labels=labels)
