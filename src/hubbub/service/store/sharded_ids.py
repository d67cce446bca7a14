"""The ids of reports to an ask that several processes take: in shards by a hash, and read as others add to them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Ints
from hubbub.random.source import Random
from hubbub.service.store.report_ids import FRESH, Ids, ReadPages, ReportIds

MOST_SHARDS = 64
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class PagePart(NamedTuple):
    """A stored part of a page, with the number of the page in the store."""

    page: int
    part: int
    ids: bytes


def shards_of(ids: Ids, shards: int) -> Ints:
    """The shard of each id: the same in every process, and whoever chose the ids."""
    mixed = (ids.a ^ ids.b) * _GOLDEN
    return ((mixed >> np.uint64(32)) % np.uint64(shards)).astype(np.int64)


class ShardedIds(ReportIds):
    """A set of ids in shards; page k of shard s is page k * shards + s in the store.

    What other processes added is not here before `extend`. Each shard has a version in the store, which says whether
    there is more to read.

    Parameters
    ----------
    rng, read
        As of `ReportIds`.
    shards
        How many shards there are: fixed when the ask is published.
    """

    def __init__(self, rng: Random, read: ReadPages, shards: int) -> None:
        self._rng, self._read_stored, self.shards = rng, read, shards
        self.versions: dict[int, int] = {}
        """The version of each shard that was read last."""
        self._sets: dict[int, ReportIds] = {}

    def __len__(self) -> int:
        return sum(map(len, self._sets.values()))

    @property
    def pages(self) -> int:
        """How many pages the ids fill in the store."""
        return max((each.pages * self.shards for each in self._sets.values()), default=0)

    @property
    def memory(self) -> int:
        """Bytes that the indexes take."""
        return sum(each.memory for each in self._sets.values())

    def touched(self, ids: Ids) -> list[int]:
        """The shards that some ids are in, in ascending order."""
        if self.shards == 1:
            return [0] if len(ids) else []
        shards: list[int] = np.unique(shards_of(ids, self.shards)).tolist()
        return shards

    def look(self, ids: Ids) -> NDArray[np.int8]:
        """As of `ReportIds`."""
        outcomes = np.full(len(ids), FRESH, dtype=np.int8)
        for shard, rows in self._rows(ids).items():
            outcomes[rows] = self._set(shard).look(ids.take(rows))
        return outcomes

    def written(self, ids: Ids) -> list[tuple[int, int, bytes]]:
        """As of `ReportIds`."""
        return [
            (page * self.shards + shard, part, data)
            for shard, rows in self._rows(ids).items()
            for page, part, data in self._set(shard).written(ids.take(rows))
        ]

    def add(self, ids: Ids) -> None:
        """As of `ReportIds`."""
        for shard, rows in self._rows(ids).items():
            self._set(shard).add(ids.take(rows))

    def restore(self, pages: Iterable[bytes]) -> None:
        """Not needed: `extend` reads what is stored."""
        raise NotImplementedError

    def unread(self, shards: Iterable[int]) -> list[tuple[int, int, int]]:
        """Where the ids of some shards begin that were not read: as `JointStore.new_ids` takes it."""
        return [
            (self.shards, own.full * self.shards + shard, own.tail) for shard in shards for own in [self._set(shard)]
        ]

    def extend(self, parts: Iterable[PagePart]) -> None:
        """Add what the store has beyond what was read, page by page: parts, or pages that became whole meanwhile."""
        fresh: dict[int, list[Ids]] = {}
        for page, stored in groupby(parts, lambda part: part.page):
            number, shard = divmod(page, self.shards)
            own = self._set(shard)
            known = own.tail if number == own.full else 0
            for part in stored:
                ids = Ids.from_bytes(part.ids)
                if part.part < known:  # the whole page, which begins with what was read
                    ids = ids.take(slice(known - part.part, None))
                fresh.setdefault(shard, []).append(ids)
        for shard, batches in fresh.items():
            self._set(shard).add(Ids.concat(batches))

    def _rows(self, ids: Ids) -> dict[int, Ints | slice]:
        if self.shards == 1:
            return {0: slice(None)}
        shards = shards_of(ids, self.shards)
        return {shard: np.flatnonzero(shards == shard) for shard in np.unique(shards).tolist()}

    def _set(self, shard: int) -> ReportIds:
        if shard not in self._sets:
            self._sets[shard] = ReportIds(self._rng, partial(self._read_shard, shard))
        return self._sets[shard]

    def _read_shard(self, shard: int, numbers: list[int]) -> list[bytes]:
        return self._read_stored([number * self.shards + shard for number in numbers])
