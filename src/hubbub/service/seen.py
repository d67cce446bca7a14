"""The ids of one ask's reports, held so that a thousand are looked up at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.service.ids import Ids

__all__ = ["DUPLICATE", "FRESH", "REPLAY", "Seen"]

FRESH, DUPLICATE, REPLAY = 0, 1, 2

_LEAST = 1 << 10


class Seen:
    """A set of ids, each with its digest: a table with open addressing, at most half full, 48 to 96 bytes an id.

    Places are the highest bits of a hash that is secret to the process: nobody can send ids that fall together.

    Example:
        >>> seen = Seen(Random(seed=1))
        >>> batch = Ids.of(bytes(range(32)), np.uint64([7, 9]))
        >>> seen.add(batch.take(slice(1)))
        >>> seen.look(batch).tolist(), len(seen)
        ([1, 0], 1)
    """

    def __init__(self, rng: Random) -> None:
        self._secret = rng.uint64(2) | np.uint64(1)  # odd: no bit of the id is lost
        self._table = _empty(_LEAST)
        self._held = 0

    def __len__(self) -> int:
        return self._held

    def look(self, ids: Ids) -> NDArray[np.int8]:
        """For each id: FRESH, DUPLICATE (held with this digest), or REPLAY (held with another)."""
        found = np.full(len(ids), FRESH, dtype=np.int8)
        table, rows, places = self._table, np.arange(len(ids)), self._places(ids)
        while True:
            there = table.digest[places]
            taken = np.flatnonzero(there)
            if not taken.size:
                return found
            rows, places, there = rows[taken], places[taken], there[taken]
            same = (table.a[places] == ids.a[rows]) & (table.b[places] == ids.b[rows])
            found[rows[same]] = np.where(there[same] == ids.digest[rows[same]], DUPLICATE, REPLAY)
            rows, places = rows[~same], self._after(places[~same])

    def add(self, ids: Ids) -> None:
        """Hold more ids: all different, none of them held yet."""
        self._held += len(ids)
        if 2 * self._held > len(self._table):
            self._grow(ids)
        else:
            self._insert(ids, self._places(ids))

    def _insert(self, ids: Ids, places: NDArray[np.int64]) -> None:
        table = self._table
        while len(ids):
            free = np.flatnonzero(table.digest[places] == 0)
            for column, values in zip(table.columns, ids.columns, strict=True):
                column[places[free]] = values[free]
            # Where two wanted one place the later has it; the other goes on, like those that found it taken.
            on = np.flatnonzero((table.a[places] != ids.a) | (table.b[places] != ids.b))
            ids, places = ids.take(on), self._after(places[on])

    def _grow(self, more: Ids) -> None:
        """Move everything to a table with room, in one pass: in the order of the hash, each takes the first place
        that is neither before its own nor before its predecessor's."""
        ids = Ids.concat([self._table.take(np.flatnonzero(self._table.digest)), more])
        self._table = _empty(1 << (2 * self._held - 1).bit_length())
        wanted = self._places(ids)
        order = np.argsort(wanted, kind="stable")
        rank = np.arange(len(ids))
        places = rank + np.maximum.accumulate(wanted[order] - rank)
        inside = int(np.searchsorted(places, len(self._table)))  # the last few may have to begin again at 0
        for column, values in zip(self._table.columns, ids.columns, strict=True):
            column[places[:inside]] = values[order[:inside]]
        beyond = ids.take(order[inside:])
        self._insert(beyond, np.zeros(len(beyond), dtype=np.int64))

    def _places(self, ids: Ids) -> NDArray[np.int64]:
        mixed = ids.a * self._secret[0] + ids.b * self._secret[1]
        places: NDArray[np.int64] = (mixed >> np.uint64(65 - len(self._table).bit_length())).astype(np.int64)
        return places

    def _after(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return (places + 1) & (len(self._table) - 1)


def _empty(size: int) -> Ids:
    return Ids(*(np.zeros(size, dtype=np.uint64) for _ in range(3)))
