"""Report ids in columns, each with a digest of the report it came with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports

Words = NDArray[np.uint64]

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

    def take(self, rows: NDArray[Any] | slice) -> Ids:
        """The ids of some rows."""
        return Ids(self.a[rows], self.b[rows], self.digest[rows])

    def hex(self, row: int) -> str:
        """An id as the wire's JSON spells it."""
        return np.array([self.a[row], self.b[row]], dtype="<u8").tobytes().hex()

    def first_of_each(self) -> NDArray[np.int64]:
        """For each row, the first row with the same id."""
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
            multipliers = (np.arange(place, place + words.shape[1], dtype=np.uint64) * _GOLDEN) | np.uint64(1)
            total += words @ multipliers
            place += words.shape[1]
    total ^= total >> np.uint64(32)
    total *= _GOLDEN
    return total ^ (total >> np.uint64(29))


def _words(column: NDArray[Any]) -> Words:
    """The entries of a column as 64-bit words, padded with zeros."""
    flat = column.reshape(len(column), math.prod(column.shape[1:]))
    if flat.shape[1] == 1 and flat.dtype.kind != "f":
        return flat.astype(np.uint64)
    raw = np.ascontiguousarray(flat, dtype=flat.dtype.newbyteorder("<")).view(np.uint8)
    padded = np.zeros((len(raw), -(-raw.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.view("<u8").astype(np.uint64, copy=False)
