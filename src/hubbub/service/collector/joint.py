"""A collector that is one of several processes over one store: all take reports, and one of them leads."""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hubbub.collection.names import AnswerName
from hubbub.questions.collection import Collection, Schedule
from hubbub.service.base.limits import Receipt
from hubbub.service.base.logs import log, log_error
from hubbub.service.collector.collector import Collector, Standing
from hubbub.service.collector.lease import Lease
from hubbub.service.ingest.frames import Frame, gather
from hubbub.service.ingest.ingest import Draft, decide, fold_groups, refusal
from hubbub.service.ingest.joint_board import JointBoard
from hubbub.service.ingest.open_asks import AnswerPlace, Board, OpenAsk
from hubbub.service.rounds.retention import SWEEP
from hubbub.service.store.base import AlarmEventRow, AskKey, Expiry, ReleaseRow, StoreChanges, StoreFailed
from hubbub.service.store.joint import NEWS_KEPT, JointStore
from hubbub.service.store.sharded_ids import ShardedIds

LOOK = 0.25
"""Seconds between two looks at what the leader did."""
_FIRST_LEADER = 10.0  # seconds that a start waits for somebody to lead
_SHARE = 2.0  # seconds between two looks at how many processes there are
_VALID = 60.0  # seconds that published asks are valid if nothing is due


class JointCollector(Collector):
    """A collector over a `JointStore`. It takes reports at any time, and drives the rounds while it leads.

    It never leads twice: a leader that another process has replaced stops (`StoreFailed`), and is started again.

    Parameters
    ----------
    collections, store
        As of `Collector`.
    url
        The URL of the store.
    may_lead
        Whether this process may lead.
    beats
        Whether a thread gives signs of life; without it, `tick` gives one.
    more
        As of `Collector`.
    """

    store: JointStore
    board: JointBoard

    def __init__(
        self,
        collections: Sequence[Collection],
        store: JointStore,
        *,
        url: str,
        may_lead: bool = True,
        beats: bool = True,
        **more: Any,
    ) -> None:
        self.lease = Lease(store, url, may_lead=may_lead)
        self._beats = beats
        self._leading = False
        self._news = -1
        self._looked = -math.inf
        self._shared = self._folded = -math.inf
        self._told = "[]"
        self._processes = 1
        super().__init__(collections, store, **more)

    @property
    def leads(self) -> bool:
        """Whether this process drives the rounds."""
        return self._leading

    @property
    def processes(self) -> int:
        """How many processes take reports."""
        return self._processes

    def standing(self) -> Standing:
        """The role of this process, the epoch of the leader, and seconds since this process heard of what it did."""
        role = "leader" if self._leading else "ingest"
        epoch = self.store.epoch if self._leading else self._epoch
        return Standing(role, epoch or 0, 0.0 if self._leading else time.monotonic() - self._looked)

    def _begin(self) -> None:
        self._epoch = 0
        self.failed: dict[tuple[str, str], str] = {}
        self._running = self._calling
        self._use(JointBoard(self.store, self._rng, self.limits.ceilings))
        self.lease.beat()
        if self._beats:
            self.lease.start()
        until = time.monotonic() + _FIRST_LEADER
        self.tick()
        while not self._leading and self.store.leadership().lag > 0 and time.monotonic() < until and self._beats:
            time.sleep(0.05)
            self.tick()

    @contextmanager
    def _calling(self, collection: Collection, question: str, *, marked: bool = True) -> Iterator[None]:
        place = collection.collection_id, question
        with self.watchdog.call(lambda: place, "the question"):
            yield

    # -- leading ----------------------------------------------------------------------------------------------

    def tick(self) -> float:
        """Do what is due: as the leader, by the clock; otherwise what the leader did. Returns when to do so again."""
        if not self._beats:
            self.lease.beat()
        self.lease.check()
        if self.lease.elected is not None and not self._leading:
            self._take_the_lead(self.lease.elected)
        self._share_quota()
        if not self._leading:
            self._follow()
            return self.clock.now() + LOOK
        due = super().tick()
        if self.board.has_closed:
            self.board.has_closed = False
            self._archive_closed()
        self._looked = time.monotonic()
        self.board.catch_up_all()
        if self._looked - self._folded > SWEEP:
            self._folded = self._looked
            self.store.fold_counts()
        return due

    def _take_the_lead(self, epoch: int) -> None:
        self.store.epoch = epoch
        self._read_versions()
        for outdated in sorted(self._outdated):
            keys = self.store.open_asks_of(outdated)
            if keys:
                self.store.close_asks(keys)
        self.alarms.reload()
        with self._lock:
            self._delivered = {}
        self._lead(JointBoard(self.store, self._rng, self.limits.ceilings, previous=self.board))
        self._leading = True
        log("leads", epoch=epoch, worker=self.store.worker, pid=os.getpid())
        self._archive_closed()

    def resign(self) -> None:
        """Let another process lead at once: this one stops."""
        self.lease.resign()

    def _commit(self, changes: StoreChanges) -> None:
        if not self._leading and self.store.epoch is None:
            raise StoreFailed("this process does not lead")
        places = [[place.collection, *place.name, opens] for place, opens in self.board.expected.items()]
        self.store.expected = json.dumps(sorted(places))
        super()._commit(changes)
        if self.store.expected != self._told:
            self.store.tell()
            self._told = self.store.expected

    def delivered(self, webhook: str, collection: str, number: int) -> None:
        """Note that a webhook took all events of a collection up to `number`: only a leader sends them."""
        if self._leading:
            super().delivered(webhook, collection, number)

    # -- following --------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        self._flush()
        self._hear()
        self.board.catch_up_all()
        now = self.clock.now()
        for name, collection in self.collections.items():
            self._publish(name, collection, now, self._valid_until(collection, now))

    def _flush(self) -> None:
        """Store the outcomes of refused requests."""
        with self._lock:
            pending, self._refused = self._refused, Counter()
        if pending:
            self.store.add_counts(StoreChanges(counts=pending, minute=int(self.clock.now() // 60)))

    def _hear(self) -> None:
        """Take over what the leader did since the last time."""
        leader = self.store.leadership()
        self._epoch = leader.epoch
        if leader.news != self._news:
            served = {collection.collection_id: collection for collection in self.collections.values()}
            self.board.refresh(served)
            expected = {
                AnswerPlace(collection, AnswerName(*name)): opens
                for collection, *name, opens in json.loads(leader.expected)
                if collection in served
            }
            self.board.expected.clear()
            self.board.expected |= expected
            if 0 <= self._news < leader.news - NEWS_KEPT:
                raise StoreFailed("this process was stopped for so long that it cannot know what it missed")
            news = self.store.news(self._news) if self._news >= 0 else []
            self._news = leader.news
            for _, text in news:
                self._pass_on(json.loads(text))
        self._looked = time.monotonic()

    def _pass_on(self, told: dict[str, Any]) -> None:
        if told["collections"]:
            self._refuse_newer()
        if told["releases"]:
            self.alarms.reload()
        changes = StoreChanges(
            releases=[ReleaseRow(name, question, step, 0.0, "", None) for name, question, step in told["releases"]],
            alarm_events=[AlarmEventRow(*row) for row in told["alarm_events"]],
            expired=[Expiry(*row) for row in told["expired"]],
        )
        for listener in self.listeners:
            try:
                listener(changes)
            except Exception as error:
                log_error("listener failed", error)

    def _refuse_newer(self) -> None:
        for row in self.store.collections():
            served = self.collections.get(row.name)
            if served is not None and row.version > served.version:
                raise StoreFailed(
                    f"version {row.version} of {row.name} is served now, and this process has {served.version}"
                )

    def _valid_until(self, collection: Collection, now: float) -> float:
        """Until when the asks that are open now are all: never beyond what may change them."""
        asks = self.board.of_collection(collection.collection_id)
        if any(not ask.final and ask.until <= now for ask in asks):
            return now + 1.0  # the leader closes it any moment
        times = [time for ask in asks for time in (ask.closes, ask.until) if not ask.final]
        times += [opens for place, opens in self.board.expected.items() if place.collection == collection.collection_id]
        for question in collection.questions:
            schedule = Schedule(collection, question)
            own = self.board.of(collection.collection_id, question)
            if own and all(ask.number < schedule.at(now) for ask in own):
                return now + 1.0  # the leader asks the next step any moment
            times.append(schedule.opens(schedule.at(now) + 1))
        return min((time for time in times if now < time < math.inf), default=(now // _VALID + 2) * _VALID)

    # -- reports ----------------------------------------------------------------------------------------------

    def ingest(self, frames: Sequence[Frame]) -> list[Receipt]:
        """Count a group of requests in one transaction. When this returns the receipts, all of it is on the disk."""
        self.board.counting = None
        try:
            with self.watchdog.call(lambda: self.board.counting, "counting reports to"):
                return self._count(frames)
        except StoreFailed:
            raise
        except Exception as error:  # nothing was changed: without the request that fails, the others are counted
            if len(frames) > 1:
                return [receipt for frame in frames for receipt in self.ingest([frame])]
            log_error("undecided", error)
            drafted = refusal(frames[0])
        with self.store.taking({}):
            self._store_draft(drafted)
        return drafted.receipts

    def _count(self, frames: Sequence[Frame]) -> list[Receipt]:
        if not self._leading and any(self.board.find(place) is None for place in _places(frames)):
            self._hear()  # it may be new
        board, receipts = self.board, [Receipt() for _ in frames]
        groups = gather(frames, receipts, board, self.store.knows)
        wanted = {key: set(_ids(board.asks[key]).touched(group.ids)) for key, group in groups.items()}
        whole = {ask.key for frame in frames if (ask := self._shuffled_ask(frame)) is not None}
        whole |= {key for frame in frames for key, _ in frame.spot_checks}
        for key in whole:
            wanted.setdefault(key, set()).add(0)
        unread = [key for key in groups if not _ids(board.asks[key]).versions]
        for key, versions in self.store.versions_of(unread).items():
            board.catch_up(board.asks[key], versions)  # before the locks: there may be many
        folded = fold_groups(groups, board)  # before the locks, too
        with self.store.taking(wanted) as held:
            for key, shards in held.items():
                ask = board.asks.get(key)
                if ask is None:
                    continue
                if not shards or any(closed for closed, _ in shards.values()):
                    ask.final = True  # decided by the store: the leader has the sums
                board.catch_up(ask, {shard: version for shard, (_, version) in shards.items()})
                if key in whole:
                    batch = self.store.shuffled_batch(key)
                    ask.shuffled = None if batch is None else batch.digest
            drafted = decide(frames, groups, receipts, board, self.clock.now(), folded)
            raised = self._store_draft(drafted)
        drafted.apply(board)
        for key, shard in raised:
            _ids(board.asks[key]).versions[shard] += 1
        return drafted.receipts

    def _store_draft(self, drafted: Draft) -> list[tuple[AskKey, int]]:
        changes = drafted.changes
        with self._lock:
            pending, self._refused = self._refused, Counter()
        changes.counts.update(pending)
        changes.minute = int(self.clock.now() // 60)
        raised = [(ask.key, shard) for ask, _, ids in drafted.counted for shard in _ids(ask).touched(ids)]
        self.store.take(changes, raised)
        return raised

    def _shuffled_ask(self, frame: Frame) -> OpenAsk | None:
        return None if frame.shuffled is None else self.board.find(AnswerPlace(frame.collection, frame.shuffled.answer))

    def counts(self) -> Counter[tuple[str, str]]:
        """How many reports had which outcome, of all processes."""
        with self._lock:
            pending = self._refused.copy()
        return self.store.counts() + pending

    def taken(self, asks: Sequence[OpenAsk]) -> dict[AskKey, int]:
        """How many reports all processes counted to each of some asks so far."""
        counted = self.store.taken_of([ask.key for ask in asks])
        return {ask.key: counted.get(ask.key, 0) for ask in asks}

    def _use(self, board: Board) -> None:
        super()._use(board)
        self._shared = -math.inf

    def _share_quota(self) -> None:
        """Take the share of the quota that is this process's: there are others."""
        if time.monotonic() - self._shared > _SHARE:
            self._shared = time.monotonic()
            self._processes = self.store.processes()
            self._admission.share(self._processes)


def _ids(ask: OpenAsk) -> ShardedIds:
    assert isinstance(ask.ids, ShardedIds)
    return ask.ids


def _places(frames: Sequence[Frame]) -> Iterator[AnswerPlace]:
    for frame in frames:
        for entry in frame.entries:
            yield AnswerPlace(frame.collection, entry.name)
        if frame.batch is not None:
            yield AnswerPlace(frame.collection, frame.batch.name)
