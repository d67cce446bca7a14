"""The asks of a store that several processes use, as one of them knows them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial

from hubbub.core.errors import HubbubError
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection, Schedule
from hubbub.random.source import Random
from hubbub.service.base.limits import Ceilings
from hubbub.service.base.logs import log
from hubbub.service.ingest.open_asks import Board, OpenAsk
from hubbub.service.store.base import AskKey, AskRow, StoreChanges
from hubbub.service.store.joint import JointStore
from hubbub.service.store.sharded_ids import ShardedIds

_AT_ONCE = 4096
"""Pages of ids that are read at once: two million ids."""


class JointBoard(Board):
    """A board whose ids are read again as other processes add to them, and whose sketches are this process's part.

    Parameters
    ----------
    store, rng, ceilings
        As of `Board`.
    previous
        The board that this one takes the place of: what this process counted and read so far is kept.
    """

    def __init__(
        self, store: JointStore, rng: Random, ceilings: Ceilings | None = None, previous: JointBoard | None = None
    ) -> None:
        super().__init__(store, rng, ceilings)
        self._joint, self._previous = store, previous
        self._shards: dict[AskKey, int] = {held.key: held.shards for held in store.held_asks()}
        self._unreadable: set[AskKey] = set()
        self.has_closed = False
        """Whether asks were closed since this was last set: their single reports can be moved."""

    def _report_ids(self, key: AskKey) -> ShardedIds:
        before = None if self._previous is None else self._previous.asks.get(key)
        if before is not None and isinstance(before.ids, ShardedIds):
            return before.ids
        return ShardedIds(self._rng, partial(self._store.some_id_pages, key), self._shards.get(key, self._joint.shards))

    def restore(self, collection: Collection, row: AskRow, ask: Ask) -> None:
        """Add a stored ask. Its ids are read when they are needed."""
        restored = self._open(collection, row, ask, self._report_ids(row.key))
        before = None if self._previous is None else self._previous.asks.get(row.key)
        if not row.final:
            restored.sketch = ask.mechanism.empty() if before is None else before.sketch
        # It was published: whoever answers it is not too early, even if the clock here is a little behind the leader's.
        restored.opens = min(row.opens, Schedule(collection, row.question).opens(row.step))
        batch = self._store.shuffled_batch(row.key)
        restored.shuffled = None if batch is None else batch.digest
        self.add(restored)

    def close(self, asks: Sequence[OpenAsk], changes: StoreChanges) -> None:
        """Make asks final at once, with the reports of all processes; those that `changes` publish, with them."""
        published = {row.key for row in changes.asks}
        stored = [ask for ask in asks if not ask.final and ask.key not in published]
        super().close([ask for ask in asks if ask.key in published], changes)
        sketches = self._joint.close_asks([ask.key for ask in stored]) if stored else {}
        self.has_closed |= bool(stored)
        for ask in stored:
            ask.final, ask.sketch = True, sketches[ask.key]

    def pages(self, ask: OpenAsk) -> int:
        """How many pages the ids of an ask fill in the store."""
        return self._store.count_id_pages(ask.key)

    # -- of a process that does not lead ----------------------------------------------------------------------

    def refresh(self, served: Mapping[str, Collection]) -> list[OpenAsk]:
        """Take over what the leader published and closed. Returns the asks that are new."""
        held = {each.key: each for each in self._joint.held_asks() if each.key.collection in served}
        for key in [key for key in self.asks if key not in held]:
            self.drop(key)
        for key, each in held.items():
            if key in self.asks:
                self.asks[key].final |= each.final
        self._shards |= {key: each.shards for key, each in held.items()}
        unknown = [key for key in held if key not in self.asks and key not in self._unreadable]
        rows = self._joint.ask_rows(unknown) if unknown else []
        for row in rows:
            try:
                self.restore(served[row.collection], row, Ask.from_spec(json.loads(row.spec)))
            except HubbubError as error:  # a mechanism of another package is missing here
                self._unreadable.add(row.key)
                log("ask not read", level=logging.ERROR, question=row.question, detail=str(error))
        return [self.asks[row.key] for row in rows if row.key in self.asks]

    def catch_up(self, ask: OpenAsk, versions: Mapping[int, int]) -> None:
        """Read the ids that other processes added to some shards, whose versions in the store are given."""
        ids = ask.ids
        assert isinstance(ids, ShardedIds)
        behind = {shard: version for shard, version in versions.items() if ids.versions.get(shard) != version}
        if not behind:
            return
        before, places = len(ids), ids.unread(behind)
        until = min(page for _, page, _ in places) + _AT_ONCE
        while True:
            parts = self._joint.new_ids(ask.key, places, until=until)
            ids.extend(parts)
            last = max([page for _, page, _ in places] + [part.page for part in parts])
            if last < until - ids.shards:  # a shard with more pages would have one of the last that were looked at
                break
            places, until = ids.unread(behind), until + _AT_ONCE
        ids.versions.update(behind)
        if ask.key in self.asks:
            self._held += len(ids) - before

    def catch_up_all(self) -> None:
        """Read what other processes added to all asks that are not final: transactions then have less to read."""
        keys = [key for key, ask in self.asks.items() if not ask.final]
        for key, versions in self._joint.versions_of(keys).items():
            if key in self.asks:
                self.catch_up(self.asks[key], versions)
