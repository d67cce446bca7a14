"""A small index in memory of the ids in the store: the pages that may hold an id, for nearly every new id none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.service.ids import Ids

_WIDTH = 16  # entries of a bucket
_LOAD = 12  # entries a bucket, on average, at which a table takes no more
_SMALLEST, _LARGEST = 12, 20  # bits of the number of buckets
# While the two largest tables fill, 25 million ids are added: fewer than 2^16 pages of 512.

Rows = NDArray[np.int64]
Short = NDArray[np.uint16]


class IdFilter:
    """A hash table with four bytes an entry: 16 bits of a hash of the id, and the number of its page.

    An id that was added is always found; any other id with a probability of 12 * 2^-16 a table. A full table is
    followed by another of twice the size, up to 67 MB. Entries are never moved, so that no request waits. The hashes
    are strongly universal under secret keys of the process: nobody can send ids that collide.

    Memory: 5.4 bytes an id, and the free entries of the last two tables (at most 140 MB, however many ids there are).

    References
    ----------
    Lemire and Kaser, "Strongly universal string hashing is fast", 2014: the multilinear family.
    """

    def __init__(self, rng: Random) -> None:
        self._keys = rng.uint64(10).reshape(5, 2, 1)  # of two hashes
        self._tables = [_Table(_SMALLEST)]
        self._current = 0

    def find(self, ids: Ids) -> tuple[Rows, Rows]:
        """The rows of ids that may have been added, each with a page that may hold the id. Rows may be repeated."""
        places, marks = self._hashes(ids)
        hits = [table.find(places, marks) for table in self._tables]
        rows, pages = (np.concatenate(parts) for parts in zip(*hits, strict=True))
        return rows, pages

    def add(self, ids: Ids, pages: Rows) -> None:
        """Add ids, each with the number of its page, in ascending order of pages."""
        places, marks = self._hashes(ids)
        number = self._current
        while len(places):
            left = self._table(number).put(places, marks, pages)
            places, marks, pages = places[left], marks[left], pages[left]
            number += 1
        while not self._table(self._current).room:
            self._current += 1

    @property
    def memory(self) -> int:
        """Bytes that the tables take."""
        return sum(table.memory for table in self._tables)

    def _table(self, number: int) -> _Table:
        if number == len(self._tables):
            self._tables.append(_Table(min(_SMALLEST + number, _LARGEST)))
        return self._tables[number]

    def _hashes(self, ids: Ids) -> tuple[NDArray[np.uint32], Short]:
        """For each id a place in the table, and a mark of 16 bits that is never 0: an entry with mark 0 is free."""
        low, half, keys = np.uint64(0xFFFFFFFF), np.uint64(32), self._keys
        total = keys[1] * (ids.a & low)
        total += keys[2] * (ids.a >> half)
        total += keys[3] * (ids.b & low)
        total += keys[4] * (ids.b >> half)
        total += keys[0]
        place, mark = (total >> half).astype(np.uint32)
        return place, np.maximum(mark >> np.uint32(16), np.uint32(1)).astype(np.uint16)


class _Table:
    """Buckets of 16 entries; an id whose bucket is full goes to the next table."""

    def __init__(self, bits: int) -> None:
        self.room = _LOAD << bits
        self._shift = np.uint32(32 - bits)
        self._marks: Short = np.zeros((1 << bits, _WIDTH), dtype=np.uint16)
        self._pages: Short = np.zeros(_WIDTH << bits, dtype=np.uint16)  # less the first one
        self._fill: NDArray[np.uint8] = np.zeros(1 << bits, dtype=np.uint8)
        self._first, self._empty = 0, True

    @property
    def memory(self) -> int:
        return self._marks.nbytes + self._pages.nbytes + self._fill.nbytes

    def find(self, places: NDArray[np.uint32], marks: Short) -> tuple[Rows, Rows]:
        buckets = places >> self._shift
        same = np.flatnonzero(self._marks.take(buckets, axis=0) == marks[:, None])
        rows = same // _WIDTH
        at = buckets[rows].astype(np.int64) * _WIDTH + same % _WIDTH
        return rows, self._first + self._pages[at].astype(np.int64)

    def put(self, places: NDArray[np.uint32], marks: Short, pages: Rows) -> Rows:
        """Add the ids that there is room for. Returns the rows that are left over."""
        if self._empty:
            self._first, self._empty = int(pages.min()), False
        count = min(len(places), self.room)
        order, buckets, columns = self._spread(places[:count])
        left = np.arange(count, len(places))
        fits = columns < _WIDTH
        if not fits.all():
            left = np.concatenate([order[~fits], left])
            order, buckets, columns = order[fits], buckets[fits], columns[fits]
        offsets = pages[order] - self._first
        if len(offsets) and not 0 <= offsets.min() <= offsets.max() < 1 << 16:
            raise OverflowError("pages that are too far apart")  # never: ids would be forgotten
        at = buckets * _WIDTH + columns
        self._marks.reshape(-1)[at] = marks[order]
        self._pages[at] = offsets
        self._fill[buckets] = columns + 1  # of several in one bucket, the last is written last
        self.room -= len(order)
        return left

    def _spread(self, places: NDArray[np.uint32]) -> tuple[Rows, Rows, Rows]:
        """The rows in the order of their buckets, their buckets, and the next free columns there."""
        rows = np.arange(len(places))
        packed = ((places >> self._shift).astype(np.int64) << 32) | rows
        packed.sort()  # several times as fast as argsort
        buckets = packed >> 32
        starts = rows.copy()
        starts[1:][buckets[1:] == buckets[:-1]] = 0
        rank = rows - np.maximum.accumulate(starts)
        return packed & 0xFFFFFFFF, buckets, self._fill[buckets] + rank
