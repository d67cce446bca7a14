"""The collector: store, rounds and ingest together. One thread changes it; any may read what it has published."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from hubbub.alarms.plan import AlarmPlan
from hubbub.collection import Clock, Collection, Keys
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffled_batch import decode_shuffled
from hubbub.core.errors import DecodeError, InvalidValue, check_integer
from hubbub.core.random import Random
from hubbub.service.alarms.alarms import Alarms
from hubbub.service.archive import Archive
from hubbub.service.bulletin import Bulletin, asks_bulletin, collection_bulletin
from hubbub.service.frames import Frame, RefusedRequest, Served, read_frame
from hubbub.service.ingest import draft, refusal
from hubbub.service.limits import Limits
from hubbub.service.logs import log
from hubbub.service.open_asks import AnswerPlace
from hubbub.service.quarantine import SET_ASIDE
from hubbub.service.quota import Quota
from hubbub.service.raw_reports import moved
from hubbub.service.receipt import Receipt
from hubbub.service.rounds import Rounds
from hubbub.service.schedule import Schedule
from hubbub.service.shuffled import MOST_CHECKS, check_onion_key, make_checks, open_shuffled
from hubbub.service.store.base import Expiry, ReleaseRow, StoreChanges, StoreFailed
from hubbub.service.store.sql import Store
from hubbub.service.trusted_clock import TrustedClock
from hubbub.service.versions import as_served, register
from hubbub.shuffle.onion import OnionKey

__all__ = ["Collector", "Limits"]

_MOST_LOGGED = 20


class Collector:
    """Everything but the network. `admit` reads a request, `ingest` counts a group of them, `tick` lets time pass.

    Parameters
    ----------
    collections
        What is served. A version is never changed: a changed collection has a higher one.
    store
        Where the state is.
    clock
        The time. What a `TrustedClock` believes is stored, and nothing is deleted by a time that it doubts.
    keys
        What documents are signed with.
    limits
        What is taken.
    rng
        For the secret order of ids in memory.
    archive
        Where single reports are moved to once their ask is closed, if a question keeps any; without it they stay in
        the store.
    alarms
        The alarms of each collection, by its name.
    onion_key
        What the innermost layers of shuffled reports are encrypted to; needed where a collection has shufflers.

    Example:
        >>> from hubbub.collection import ManualClock
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.service.store import open_store
        >>> store = open_store("sqlite:///:memory:")
        >>> collector = Collector([load_collection(EXAMPLE)], store, clock=ManualClock(7200.0), keys=Keys.new())
        >>> len(collector.board.asks), collector.asks["themes"].until
        (1, 10800.0)
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        store: Store,
        *,
        clock: Clock,
        keys: Keys,
        limits: Limits | None = None,
        rng: Random | None = None,
        archive: Archive | None = None,
        alarms: Mapping[str, AlarmPlan] | None = None,
        onion_key: OnionKey | None = None,
    ) -> None:
        self.store = store
        self.archive = archive
        self.clock = clock
        self.trusted = clock if isinstance(clock, TrustedClock) else None
        self.limits = limits or Limits()
        self.listeners: list[Callable[[StoreChanges], None]] = []
        self._keys = keys
        self._onion_key = onion_key
        for collection in collections:
            check_onion_key(collection, onion_key)
        self._lock = threading.Lock()
        self._refused: Counter[tuple[str, str]] = Counter()
        self._pending: Counter[tuple[str, str]] = Counter()
        self._delivered: dict[tuple[str, str], int] = {}
        self.deleted: Counter[tuple[str, str]] = Counter()
        """What was deleted since the start, by collection id and kind."""
        self.missing: list[str] = []
        """The files of single reports that the store names and that are not there."""
        self._quota = Quota(rate=self.limits.rate, burst=self.limits.burst, clock=clock)
        collections = as_served(collections, store)
        added, outdated = register(collections, store)
        self.collections: Mapping[str, Collection] = MappingProxyType(
            {collection.name: collection for collection in collections}
        )
        over = {(row.name, row.version): row.id for row in store.collections() if row.id in outdated}
        self.served = Served(self.collections, over)
        self.specs = {collection.name: collection_bulletin(collection, keys.private) for collection in collections}
        self.asks: dict[str, Bulletin] = {}
        self._counts = store.counts()
        self._posted: dict[str, tuple[object, ...]] = {}
        self.alarms = Alarms(collections, store, alarms or {})
        self._rounds = Rounds(
            collections,
            store,
            rng or Random(),
            outdated=outdated,
            ceilings=self.limits.ceilings,
            archive=archive,
            hear=self.alarms.hear,
        )
        self.board = self._rounds.board
        self.failed = self._rounds.failed
        """The questions that another package's error stopped, by collection id and name, and the error."""
        changes = StoreChanges(collections=added)
        self.alarms.end_others(changes)
        self._commit(changes)
        self._move()
        self.tick()

    def admit(self, kind: str, body: bytes) -> Frame:
        """Read a request, or refuse it (`RefusedRequest`); refusals are counted."""
        try:
            if len(body) > self.limits.most_bytes:
                raise RefusedRequest("too_large", f"{len(body):,} bytes; at most {self.limits.most_bytes:,}")
            frame = read_frame(kind, body, self.served)
            self._check_direct(frame)
            self._check_ceiling(frame)
            self._check_quota(frame)
        except RefusedRequest as refusal:
            self.refuse(refusal)
            raise
        return frame

    def admit_shuffled(self, body: bytes) -> Frame:
        """Read what the last shuffler handed on, and open its reports; or refuse it (`RefusedRequest`)."""
        try:
            if len(body) > self.limits.shuffled_bytes:
                raise RefusedRequest("too_large", f"{len(body):,} bytes; at most {self.limits.shuffled_bytes:,}")
            batch = decode_shuffled(body)
            collection = self.served.find(batch.collection, batch.version, len(batch.onions))
            if collection.shuffle is None or self._onion_key is None:
                raise RefusedRequest("malformed", f"reports of {collection.name} are not shuffled")
            opened = self.board.find(AnswerPlace(collection.collection_id, batch.answer))
            if opened is None:
                known = self.store.knows(collection.collection_id, batch.answer)
                raise RefusedRequest("late" if known else "unknown_ask", batch.name, count=max(len(batch.onions), 1))
            checks = self.store.spot_checks(opened.key)
            made = open_shuffled(batch, body, collection, opened, self._onion_key, checks)
            return Frame(collection.collection_id, shuffled=made)
        except DecodeError as error:
            refusal = RefusedRequest("malformed", str(error))
            self.refuse(refusal)
            raise refusal from None
        except RefusedRequest as refusal:
            self.refuse(refusal)
            raise

    def spot_check(
        self, name: str, answer: AnswerName, count: int, rng: Random | None = None
    ) -> tuple[Frame, list[bytes]]:
        """Uploads to send to the first shuffler as if from devices; the collector looks for them in the batch.

        The frame must be ingested before any of them is sent. Whoever sends them should not be known to the shuffler
        for the collector.
        """
        collection = self.collections[name]
        check_integer("count", count, 1, MOST_CHECKS)
        opened = self.board.find(AnswerPlace(collection.collection_id, answer))
        if collection.shuffle is None or opened is None or not opened.takes(self.clock.now()) or opened.shuffled:
            raise InvalidValue("answer", str(answer), "an open ask of a collection whose reports are shuffled")
        made = make_checks(collection, answer, opened.ask, count, rng or Random())
        looked_for = tuple((opened.key, inner) for _, inner in made)
        return Frame(collection.collection_id, spot_checks=looked_for), [upload for upload, _ in made]

    def ask_of(self, name: str, answer: AnswerName) -> Bulletin | None:
        """One ask, sealed, for as long as its reports may come: shufflers read from it what reports look like."""
        collection = self.collections[name]
        opened = self.board.find(AnswerPlace(collection.collection_id, answer))
        if opened is None:
            return None
        step = max(collection.step_at(opened.opens), 0)
        return asks_bulletin(collection, [opened], step=step, until=opened.until, private=self._keys.private)

    def _check_direct(self, frame: Frame) -> None:
        """Refuse reports that did not pass the shufflers of their collection."""
        shuffled = any(each.shuffle for each in self.collections.values() if each.collection_id == frame.collection)
        if shuffled:
            detail = "send to the first shuffler, whose address is in the signed collection"
            raise RefusedRequest("not_shuffled", detail, collection=frame.collection, count=max(frame.count, 1))

    def _check_quota(self, frame: Frame) -> None:
        wait = self._quota.take(frame.collection, max(frame.count, 1))
        if wait:
            reason = f"more than {self.limits.rate:g} reports a second; try again in {wait:.3g} seconds"
            raise RefusedRequest(
                "over_quota", reason, collection=frame.collection, count=max(frame.count, 1), wait=wait
            )

    def _check_ceiling(self, frame: Frame) -> None:
        """Refuse a batch to an ask that takes no more, before anyone looks at its reports one by one."""
        if frame.batch is None:
            return
        opened = self.board.find(AnswerPlace(frame.collection, frame.batch.name))
        if opened is not None and not self.board.room(opened):
            reason = f"{len(opened.ids):,} reports to this ask are all that is taken"
            raise RefusedRequest(
                "over_ceiling", reason, collection=frame.collection, count=max(frame.count, 1), wait=60.0
            )

    def refuse(self, refusal: RefusedRequest) -> None:
        """Count a request that was refused; with the next commit it is stored."""
        with self._lock:
            self._refused[refusal.collection, refusal.reason] += refusal.count

    def delivered(self, webhook: str, collection: str, number: int) -> None:
        """Note that a webhook has taken all events of a collection up to one; with the next commit it is stored."""
        with self._lock:
            self._delivered[webhook, collection] = number

    def ingest(self, frames: Sequence[Frame]) -> list[Receipt]:
        """Count a group of requests in one transaction; what is answered is on the disk."""
        try:
            made = draft(frames, self.board, self.clock.now(), self.store.knows)
        except StoreFailed:
            raise
        except Exception as error:  # nothing was changed: whoever it was, the others are still counted
            if len(frames) > 1:
                return [receipt for frame in frames for receipt in self.ingest([frame])]
            log("undecided", level=logging.ERROR, error=type(error).__name__)
            made = refusal(frames[0])
        self._commit(made.changes)
        made.apply()
        return made.receipts

    def tick(self) -> float:
        """Do what is due by the clock. When something will be due next."""
        now = self.clock.now()
        self._commit(self._rounds.turn_back(now))
        changes = self._rounds.tick(now, None if self.trusted is None else self.trusted.settled())
        self._commit(changes)
        if changes.finals:
            self._move()
        if changes.expired:
            self._tidy(changes.expired)
        until = self._rounds.next_event(now)
        for name, collection in self.collections.items():
            self._publish(name, collection, now, until)
        return until

    def releases(self, name: str, question: str, *, first: int, last: int, most: int) -> list[ReleaseRow]:
        """The latest releases of a question from one step, or run, to another, oldest first; none yet to come."""
        collection = self.collections[name]
        now = Schedule(collection, question).at(self.clock.now())
        last = min(last, now)  # a wrong clock may have left later ones behind
        return self.store.releases(collection.collection_id, question, first, last, most)

    def counts(self) -> Counter[tuple[str, str]]:
        """What became of reports, by collection id and outcome ("accepted", "duplicate", "cover" or a reason)."""
        with self._lock:
            return self._counts + self._pending + self._refused

    def _move(self) -> None:
        """Move the single reports of closed asks into files, one ask at a time."""
        if self.archive is not None:
            for key, question, step in self.store.to_archive():
                self._commit(StoreChanges(archives=[moved(self.store, self.archive, key, question, step)]))

    def _tidy(self, expired: Sequence[Expiry]) -> None:
        """Delete files whose retention is over, set aside those that the store does not name, see what is missing."""
        names = sorted(self.store.archive_names())
        missing = names if self.archive is None else self.archive.missing(names)
        if self.archive is not None:
            swept = self.archive.sweep(names, expired)
            if swept.set_aside:
                folder = str(self.archive.folder / SET_ASIDE)
                log("set aside", level=logging.WARNING, folder=folder, files=swept.set_aside)
        if missing and missing != self.missing:
            log("reports missing", level=logging.ERROR, count=len(missing), files=missing[:_MOST_LOGGED])
        self.missing = missing

    def _publish(self, name: str, collection: Collection, now: float, until: float) -> None:
        opened = self.board.open(collection.collection_id, now)
        step = max(collection.step_at(now), 0)
        published = (step, until, *(ask.key for ask in opened))
        if self._posted.get(name) == published:
            return
        self._posted[name] = published
        self.asks[name] = asks_bulletin(collection, opened, step=step, until=until, private=self._keys.private)

    def _commit(self, changes: StoreChanges) -> None:
        with self._lock:
            self._pending, self._refused = self._refused, Counter()
            changes.delivered, self._delivered = self._delivered, {}
        changes.counts.update(self._pending)
        changes.minute = int(self.clock.now() // 60)
        changes.clock = None if self.trusted is None else self.trusted.record()
        if changes:
            deleted = self.store.commit(changes)
            with self._lock:
                self.deleted = self.deleted + deleted
                self._counts.update(changes.counts)
                self._pending = Counter()
            self.alarms.committed(changes)
            for listener in self.listeners:
                try:
                    listener(changes)
                except Exception as error:  # what is committed stands, whoever fails to hear of it
                    log("listener failed", level=logging.ERROR, error=type(error).__name__)
