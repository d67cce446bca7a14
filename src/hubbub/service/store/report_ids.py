"""Report ids in columns, each with a digest of the report it came with, and which of them an ask already has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import spread_seeds
from hubbub.core.reports import Array, Ints, Reports, Words
from hubbub.random.source import Random
from hubbub.service.store.base import StoreFailed

ENTRY_BYTES = 24
"""Bytes of an id and its digest in the store."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Ids:
    """A batch of ids: the two words of each, and a digest that is never 0. 24 bytes per report in the store."""

    a: Words
    b: Words
    digest: Words

    @staticmethod
    def of(ids: bytes, digests: Words) -> Ids:
        """Ids of 16 bytes each, with their digests."""
        if len(ids) != 16 * len(digests):
            raise InvalidValue("ids", f"{len(ids)} bytes", f"16 bytes for each of {len(digests)} reports")
        words = np.frombuffer(ids, dtype="<u8").astype(np.uint64, copy=False).reshape(-1, 2)
        return Ids(words[:, 0].copy(), words[:, 1].copy(), digests | np.uint64(1))

    @staticmethod
    def concat(batches: Iterable[Ids]) -> Ids:
        """Join batches."""
        columns = zip(_none(), *(batch.columns for batch in batches), strict=True)
        return Ids(*(np.concatenate(parts) for parts in columns))

    @property
    def columns(self) -> tuple[Words, Words, Words]:
        """The two words and the digests."""
        return self.a, self.b, self.digest

    def __len__(self) -> int:
        return len(self.a)

    def take(self, rows: Array | slice) -> Ids:
        """The ids of some rows."""
        return Ids(self.a[rows], self.b[rows], self.digest[rows])

    def hex(self, row: int) -> str:
        """An id as the wire's JSON spells it."""
        return np.array([self.a[row], self.b[row]], dtype="<u8").tobytes().hex()

    def first_of_each(self) -> Ints:
        """For each row, the first row with the same id."""
        words = np.sort(self.a)
        if (words[1:] != words[:-1]).all():  # as with random ids; to order the rows takes ten times as long
            return np.arange(len(words))
        order = np.lexsort((self.b, self.a))  # stable: of equal ids the earliest comes first
        a, b = self.a[order], self.b[order]
        begins = np.ones(len(order), dtype=bool)
        begins[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
        first = np.empty(len(order), dtype=np.int64)
        first[order] = order[np.flatnonzero(begins)][np.cumsum(begins) - 1]
        return first

    def to_bytes(self) -> bytes:
        """The columns one after another, little-endian."""
        return b"".join(np.asarray(column, dtype="<u8").tobytes() for column in self.columns)

    @staticmethod
    def from_bytes(data: bytes) -> Ids:
        """Read ids from the bytes of `to_bytes`."""
        if len(data) % ENTRY_BYTES:
            raise InvalidValue("segment", f"{len(data)} bytes", f"a multiple of {ENTRY_BYTES}")
        return Ids(*np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False).reshape(3, -1))


def _none() -> tuple[Words, Words, Words]:
    empty = np.empty(0, dtype=np.uint64)
    return empty, empty, empty


def digests_of(reports: Reports) -> Words:
    """A 64-bit digest of each report, the same whether it came alone or in a batch.

    The digest is the sum of the report's words times different odd multipliers, then mixed. It is not cryptographic:
    who makes two reports collide gets "duplicate" instead of "replay" as an answer, and neither is counted.
    """
    total = np.zeros(len(reports), dtype=np.uint64)
    place = 1
    for part in (reports.public, reports.private):
        for name in sorted(part):
            words = _words(part[name])
            words = words ^ (words >> np.uint64(32))  # floats have their bits at the top, where products lose them
            total += words @ _multipliers(place, words.shape[1])
            place += words.shape[1]
    total ^= total >> np.uint64(32)
    total *= _GOLDEN
    return total ^ (total >> np.uint64(29))


@lru_cache(maxsize=256)
def _multipliers(first: int, count: int) -> Words:
    """Odd numbers that look random; with multiples of one number, small entries of several columns would collide."""
    return np.asarray(spread_seeds(np.arange(first, first + count, dtype=np.uint64)) | np.uint64(1))


def _words(column: Array) -> Words:
    """The entries of a column as 64-bit words, padded with zeros."""
    flat = column.reshape(len(column), math.prod(column.shape[1:]))
    if flat.shape[1] == 1 and flat.dtype.kind != "f":
        return flat.astype(np.uint64)
    raw = np.ascontiguousarray(flat, dtype=flat.dtype.newbyteorder("<")).view(np.uint8)
    padded = np.zeros((len(raw), -(-raw.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.view("<u8").astype(np.uint64, copy=False)


_WIDTH = 16  # entries of a bucket
_LOAD = 12  # entries a bucket, on average, at which a table takes no more
SMALLEST_BITS, _LARGEST = 12, 20  # bits of the number of buckets
# While the two largest tables fill, 25 million ids are added: fewer than 2^16 pages of 512.

Short = NDArray[np.uint16]


class IdFilter:
    """A hash table with four bytes an entry: 16 bits of a hash of the id, and the number of its page.

    An id that was added is always found; any other id with a probability of 12 * 2^-16 a table. A full table is
    followed by another of twice the size, up to 67 MB. Entries are never moved, so that no request waits. The hashes
    are strongly universal under secret keys of the process: nobody can send ids that collide.

    Memory: 5.4 bytes an id, and the free entries of the last two tables (at most 140 MB, however many ids there are).

    References
    ----------
    Lemire and Kaser, 2014: the multilinear family.
    """

    def __init__(self, rng: Random) -> None:
        self._keys = rng.uint64(10).reshape(5, 2, 1)  # of two hashes
        self._tables = [_Table(SMALLEST_BITS)]
        self._current = 0

    def find(self, ids: Ids) -> tuple[Ints, Ints]:
        """The rows of ids that may have been added, each with a page that may hold the id. Rows may be repeated."""
        places, marks = self._hashes(ids)
        hits = [table.find(places, marks) for table in self._tables]
        rows, pages = (np.concatenate(parts) for parts in zip(*hits, strict=True))
        return rows, pages

    def add(self, ids: Ids, pages: Ints) -> None:
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
            self._tables.append(_Table(min(SMALLEST_BITS + number, _LARGEST)))
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

    def find(self, places: NDArray[np.uint32], marks: Short) -> tuple[Ints, Ints]:
        buckets = places >> self._shift
        same = np.flatnonzero(self._marks.take(buckets, axis=0) == marks[:, None])
        rows = same // _WIDTH
        at = buckets[rows].astype(np.int64) * _WIDTH + same % _WIDTH
        return rows, self._first + self._pages[at].astype(np.int64)

    def put(self, places: NDArray[np.uint32], marks: Short, pages: Ints) -> Ints:
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

    def _spread(self, places: NDArray[np.uint32]) -> tuple[Ints, Ints, Ints]:
        """The rows in the order of their buckets, their buckets, and the next free columns there."""
        rows = np.arange(len(places))
        packed = ((places >> self._shift).astype(np.int64) << 32) | rows
        packed.sort()  # several times as fast as argsort
        buckets = packed >> 32
        starts = rows.copy()
        starts[1:][buckets[1:] == buckets[:-1]] = 0
        rank = rows - np.maximum.accumulate(starts)
        return packed & 0xFFFFFFFF, buckets, self._fill[buckets] + rank


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
    read
        Reads full pages from the store by their numbers.
    """

    def __init__(self, rng: Random, read: ReadPages) -> None:
        self.index = IdFilter(rng)
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
    def full(self) -> int:
        """How many pages are full."""
        return self._full

    @property
    def tail(self) -> int:
        """How many ids are on the last page, which is not full."""
        return len(self._tail)

    @property
    def memory(self) -> int:
        """Bytes that the index takes."""
        return self.index.memory

    def look(self, ids: Ids) -> NDArray[np.int8]:
        """For each id: FRESH, DUPLICATE (held with the same digest), or REPLAY (held with another digest)."""
        outcomes = np.full(len(ids), FRESH, dtype=np.int8)
        rows, pages = self.index.find(ids)
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
        self.index.add(ids, self._full + (len(self._tail) + np.arange(len(ids))) // PAGE)
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

    def _columns(self, numbers: list[int]) -> Words:
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
