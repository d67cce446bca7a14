"""The ids of the reports to one ask: all of them in the store, in pages, with a small index in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.service.id_filter import IdFilter
from hubbub.service.ids import ENTRY_BYTES, Ids
from hubbub.service.store.base import StoreFailed

FRESH, DUPLICATE, REPLAY = 0, 1, 2

PAGE = 512
"""Ids on a page. All pages are full but the last, which is stored in parts until it is full."""

_AT_ONCE = 2048  # possible pages that are compared at a time: 25 MB
_RESTORED = 128  # pages, or parts, that are indexed at a time when the collector starts

ReadPages = Callable[[list[int]], list[bytes]]


class ReportIds:
    """A set of ids, each with its digest.

    The index names the pages that may hold an id; the ids on those pages are then compared, so that answers are exact.
    The store is read for a few in a thousand new ids, and for every repeated id. Memory is about 6 bytes an id.

    Parameters
    ----------
    rng
        Draws the secret keys of the index.
    read
        Reads full pages from the store by their numbers.
    """

    def __init__(self, rng: Random, read: ReadPages) -> None:
        self._index = IdFilter(rng)
        self._read = read
        self._full = 0  # pages
        self._tail = Ids.concat([])  # the ids of the last page, fewer than a page holds

    def __len__(self) -> int:
        return self._full * PAGE + len(self._tail)

    @property
    def pages(self) -> int:
        """How many pages the ids fill in the store."""
        return self._full + (len(self._tail) > 0)

    @property
    def memory(self) -> int:
        """Bytes that the index takes."""
        return self._index.memory

    def look(self, ids: Ids) -> NDArray[np.int8]:
        """For each id: FRESH, DUPLICATE (held with the same digest), or REPLAY (held with another digest)."""
        outcomes = np.full(len(ids), FRESH, dtype=np.int8)
        rows, pages = self._index.find(ids)
        order = np.argsort(pages, kind="stable")
        for start in range(0, len(order), _AT_ONCE):
            chunk = order[start : start + _AT_ONCE]
            row, (numbers, page) = rows[chunk], np.unique(pages[chunk], return_inverse=True)
            a, b, digest = self._columns(numbers.tolist()).transpose(1, 0, 2)
            same_id = (a[page] == ids.a[row, None]) & (b[page] == ids.b[row, None]) & (digest[page] != 0)
            hits, columns = np.nonzero(same_id)
            same_digest = digest[page[hits], columns] == ids.digest[row[hits]]
            outcomes[row[hits]] = np.where(same_digest, DUPLICATE, REPLAY)
        return outcomes

    def written(self, ids: Ids) -> list[tuple[int, int, bytes]]:
        """What to store for new ids, all different: for each page that changes, its number, part and ids."""
        if len(self._tail) + len(ids) < PAGE:
            return [(self._full, len(self._tail), ids.to_bytes())] if len(ids) else []
        joined = Ids.concat([self._tail, ids])
        starts = range(0, len(joined), PAGE)
        return [(self._full + at // PAGE, 0, joined.take(slice(at, at + PAGE)).to_bytes()) for at in starts]

    def add(self, ids: Ids) -> None:
        """Add new ids to the index, after what `written` returned for them is in the store."""
        self._index.add(ids, self._full + (len(self._tail) + np.arange(len(ids))) // PAGE)
        joined = Ids.concat([self._tail, ids])
        whole = len(joined) // PAGE
        self._full += whole
        self._tail = joined.take(np.arange(whole * PAGE, len(joined)))  # not a slice: that keeps the whole batch

    def restore(self, pages: Iterable[bytes]) -> None:
        """Read all ids of the store, in order: the full pages, then the parts of the last page."""
        waiting: list[Ids] = []
        parts = 0
        for page in pages:
            waiting.append(Ids.from_bytes(page))
            if parts or len(waiting[-1]) != PAGE:
                parts += len(waiting[-1])
                if parts >= PAGE:
                    raise StoreFailed("the store does not hold the ids that it should: a page is not whole")
            if len(waiting) == _RESTORED:
                self.add(Ids.concat(waiting))
                waiting.clear()
        self.add(Ids.concat(waiting))

    def _columns(self, numbers: list[int]) -> NDArray[np.uint64]:
        """Pages as an array of axes page, column and id. Where a page has no id, the digest is 0."""
        full = [number for number in numbers if number < self._full]
        pages = self._read(full) if full else []
        if len(pages) != len(full) or any(len(page) != PAGE * ENTRY_BYTES for page in pages):
            raise StoreFailed("the store does not hold the ids that it should")
        stored = np.frombuffer(b"".join(pages), dtype="<u8").astype(np.uint64, copy=False).reshape(-1, 3, PAGE)
        if len(full) == len(numbers):
            return stored
        last = np.zeros((1, 3, PAGE), dtype=np.uint64)
        last[0, :, : len(self._tail)] = self._tail.columns
        return np.concatenate([stored, last])
