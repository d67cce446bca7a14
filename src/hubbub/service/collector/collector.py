"""The collector: store, rounds and ingest together. One thread changes it; any thread may read what it published."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from hubbub.alarms.plan import AlarmPlan
from hubbub.collection import Clock, Keys
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import ObliviousRoute
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.plugins import PluginFailed, PluginRefused
from hubbub.questions.collection import Collection, Schedule
from hubbub.random.source import Random
from hubbub.service.alarms import Alarms
from hubbub.service.base.limits import Limits, Receipt, RefusedRequest
from hubbub.service.base.logs import log, log_error
from hubbub.service.base.trusted_clock import TrustedClock
from hubbub.service.ingest.frames import Admission, Frame, Served
from hubbub.service.ingest.ingest import draft, refusal
from hubbub.service.ingest.open_asks import (
    AnswerPlace,
    Board,
    OpenAsk,
    SignedDocument,
    signed_asks,
    signed_collection,
)
from hubbub.service.ingest.shared import check_homomorphic_key, make_share_checks
from hubbub.service.ingest.shuffled import MOST_CHECKS, check_onion_key, make_checks
from hubbub.service.ingest.warm_up import warm_up
from hubbub.service.kept.archive import SET_ASIDE, Archive, move_reports
from hubbub.service.rounds.eras import KnownVersions
from hubbub.service.rounds.rounds import Rounds
from hubbub.service.rounds.versions import VersionHistory, register
from hubbub.service.rounds.watchdog import Watchdog
from hubbub.service.store.base import AskKey, Expiry, ReleaseRow, StoreChanges, StoreFailed
from hubbub.service.store.sql import Store
from hubbub.shuffle.onion import OnionKey

if TYPE_CHECKING:
    from hubbub.shuffle.dgk import DGKPrivate

__all__ = ["Collector", "Limits", "example_collector"]

_MOST_LOGGED = 20


class Standing(NamedTuple):
    """What a process is among others: "leader" or "ingest", the leader's epoch, and how many seconds it is behind."""

    role: str
    epoch: int
    lag: float


class Collector:
    """The collector without its network. `admit` reads a request, `ingest` counts requests, `tick` does what is due.

    Parameters
    ----------
    collections
        The collections to serve. A version never changes: a changed collection has a higher version.
    clock
        The time. What a `TrustedClock` believes is stored, and nothing is deleted by a time that it doubts.
    rng
        Randomness for the secret order of ids in memory.
    archive
        The folder that single reports are moved to once their ask is closed, if a question keeps them; without it they
        stay in the store.
    onion_key
        The key that decrypts the innermost layer of shuffled reports; needed if a collection has shufflers.
    homomorphic_key
        The key that decrypts shares; needed if the trust of a collection is "oblivious".
    watchdog
        Is told which question's code runs. The caller enters it.
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
        homomorphic_key: DGKPrivate | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        self.store = store
        self.watchdog = watchdog or Watchdog()
        self.archive = archive
        self.clock = clock
        self.trusted = clock if isinstance(clock, TrustedClock) else None
        self.limits = limits or Limits()
        self.listeners: list[Callable[[StoreChanges], None]] = []
        self._keys = keys
        for collection in collections:
            check_onion_key(collection, onion_key)
            check_homomorphic_key(collection, homomorphic_key)
        self._lock = threading.Lock()
        self._refused: Counter[tuple[str, str]] = Counter()
        self._pending: Counter[tuple[str, str]] = Counter()
        self._delivered: dict[tuple[str, str], int] = {}
        self.deleted: Counter[tuple[str, str]] = Counter()
        """How much was deleted since the start, by collection id and kind."""
        self.missing: list[str] = []
        """The files of single reports that the store names and that do not exist."""
        self.collections: Mapping[str, Collection] = MappingProxyType(
            {collection.name: collection for collection in collections}
        )
        self._given = tuple(collections)
        self._read_versions()
        self.specs = {collection.name: signed_collection(collection, keys.private) for collection in collections}
        self.asks: dict[str, SignedDocument] = {}
        self._counts = store.counts()
        self._published: dict[str, tuple[object, ...]] = {}
        self.alarms = Alarms(collections, store, alarms or {})
        self._rng = rng or Random()
        self._shuffle_keys: dict[str, Any] = {"onion_key": onion_key, "homomorphic_key": homomorphic_key}
        self._begin()

    def _read_versions(self) -> None:
        """Read which versions are stored, and refuse to serve what they do not allow."""
        self._added, self._outdated = register(self._given, self.store)
        self._versions = KnownVersions([*self.store.collections(), *self._added])
        self.history = VersionHistory(self.collections, self.store, self._versions)
        over = {(row.name, row.version): row.id for row in self._versions.rows if row.id in self._outdated}
        self.served = Served(self.collections, over)

    def _begin(self) -> None:
        """Ask what is due, before anyone sends a report."""
        self._lead(Board(self.store, self._rng, self.limits.ceilings))
        self.tick()
        self._archive_closed()

    def _lead(self, board: Board) -> None:
        """Resume what is stored, and drive the rounds from now on."""
        board.screened = self.alarms.screened
        first = StoreChanges(collections=self._added)
        self.alarms.clear_removed(first)
        self._rounds = Rounds(
            self._given,
            self.store,
            self._rng,
            self._versions,
            outdated=self._outdated,
            archive=self.archive,
            on_release=self.alarms.judge,
            on_close=self.alarms.judge_reports,
            watchdog=self.watchdog,
            first=first,
            board=board,
        )
        self.failed = self._rounds.failed
        """The questions that were set aside, by collection id and name, and why."""
        self._running = self._rounds.running
        self._use(board)

    def _use(self, board: Board) -> None:
        """Take reports to the asks of a board."""
        self.board = board
        board.screened = self.alarms.screened
        self._admission = Admission(
            self.served, self.store, board, clock=self.clock, limits=self.limits, **self._shuffle_keys
        )

    def standing(self) -> Standing | None:
        """What this process is among several over one store; None if it is alone."""
        return None

    @property
    def leads(self) -> bool:
        """Whether this process drives the rounds."""
        return True

    @property
    def processes(self) -> int:
        """How many processes take reports."""
        return 1

    def resign(self) -> None:
        """Let another process lead at once: this one stops."""

    def taken(self, asks: Sequence[OpenAsk]) -> dict[AskKey, int]:
        """How many reports were counted to each of some asks so far."""
        return {ask.key: ask.sketch.n for ask in asks}

    def admit(self, content_type: str, body: bytes) -> Frame:
        """Read an upload or a batch, or refuse it (`RefusedRequest`); refusals are counted."""
        with self._counting_refusals():
            return self._admission.read(content_type, body)

    def admit_shuffled(self, body: bytes) -> Frame:
        """Read and decrypt a batch from the last shuffler, or refuse it (`RefusedRequest`); refusals are counted."""
        with self._counting_refusals():
            return self._admission.read_shuffled(body)

    def spot_check(
        self, name: str, answer: AnswerName, count: int, rng: Random | None = None
    ) -> tuple[Frame, list[bytes]]:
        """Make uploads that are sent to shufflers as if by devices, and looked for in their batch.

        Returns the frame that records them, and the uploads: of each report one for every shuffler that devices send
        to, in their order. The frame must be ingested before any upload is sent. A shuffler should not be able to tell
        that the sender is the collector.
        """
        collection = self.collections[name]
        check_integer("count", count, 1, MOST_CHECKS)
        ask = self.board.find(AnswerPlace(collection.collection_id, answer))
        if collection.shuffle is None or ask is None or not ask.takes(self.clock.now()) or ask.shuffled:
            raise InvalidValue("answer", str(answer), "an open ask of a collection whose reports are shuffled")
        make = make_share_checks if isinstance(collection.shuffle, ObliviousRoute) else make_checks
        checks = make(collection, answer, ask.ask, count, rng or Random())
        recorded = tuple((ask.key, inner) for _, inner in checks)
        uploads = [upload for uploads, _ in checks for upload in uploads]
        return Frame(collection.collection_id, spot_checks=recorded), uploads

    def ask_of(self, name: str, answer: AnswerName) -> SignedDocument | None:
        """One signed ask, as long as reports to it may come. Shufflers read from it the form of a report."""
        collection = self.collections[name]
        ask = self.board.find(AnswerPlace(collection.collection_id, answer))
        if ask is None:
            return None
        step = max(collection.step_at(ask.opens), 0)
        return signed_asks(collection, [ask], step=step, until=ask.until, private=self._keys.private)

    def model(self, name: str, model: str) -> bytes | None:
        """The bytes of a public model, by their hash, as long as reports about it may come."""
        asks = self.board.of_collection(self.collections[name].collection_id)
        views = (ask.ask.view for ask in asks if ask.ask.view.content is not None)
        return next((view.content for view in views if view.spec()["model"] == model), None)

    @contextmanager
    def _counting_refusals(self) -> Iterator[None]:
        try:
            yield
        except RefusedRequest as refusal:
            self.refuse(refusal)
            raise

    def refuse(self, refusal: RefusedRequest) -> None:
        """Count a refused request; the next commit stores the count."""
        with self._lock:
            self._refused[refusal.collection, refusal.reason] += refusal.count

    def delivered(self, webhook: str, collection: str, number: int) -> None:
        """Note that a webhook took all events of a collection up to `number`; the next commit stores it."""
        with self._lock:
            self._delivered[webhook, collection] = number

    def ingest(self, frames: Sequence[Frame]) -> list[Receipt]:
        """Count a group of requests in one transaction. When this returns the receipts, all of it is on the disk."""
        self.board.counting = None
        try:
            with self.watchdog.call(lambda: self.board.counting, "counting reports to"):
                drafted = draft(frames, self.board, self.clock.now(), self.store.knows)
        except StoreFailed:
            raise
        except Exception as error:  # nothing was changed: without the request that fails, the others are counted
            if len(frames) > 1:
                return [receipt for frame in frames for receipt in self.ingest([frame])]
            log_error("undecided", error)
            drafted = refusal(frames[0])
        self._commit(drafted.changes)
        drafted.apply(self.board)
        return drafted.receipts

    def warm_up(self) -> None:
        """Compile the kernels that reports will need."""
        warm_up(self.collections.values(), self._running, without=self.failed)

    def tick(self) -> float:
        """Do what is due by the clock. Returns when something will be due next."""
        now = self.clock.now()
        self._commit(self._rounds.turn_back(now))
        changes = self._rounds.tick(now, None if self.trusted is None else self.trusted.settled())
        self._commit(changes)
        if changes.finals:
            self._archive_closed()
        if changes.expired:
            self._tidy(changes.expired)
        events = self._rounds.next_events(now)
        for name, collection in self.collections.items():
            self._publish(name, collection, now, events[collection.collection_id])
        return min(events.values())

    def releases(
        self, name: str, question: str, *, first: int, last: int, most: int, version: int | None = None
    ) -> list[ReleaseRow]:
        """The latest releases of a question from step or run `first` to `last`, oldest first; at most `most`.

        They are those of all versions through which the question went on to the served one, or to `version`.
        """
        rows: list[ReleaseRow] = []
        for collection in reversed(self.history.series(name, question, version)):
            present = Schedule(collection, question).at(self.clock.now())
            until = min(last, present)  # a clock that was wrong may have left releases of future steps
            rows += self.store.releases(collection.collection_id, question, first, until, most)
            if len(rows) >= most:
                break
        return sorted(rows, key=lambda row: (row.step, row.number))[-most:]

    def counts(self) -> Counter[tuple[str, str]]:
        """How many reports had which outcome ("accepted", "duplicate", "cover" or a reason), by collection id."""
        with self._lock:
            return self._counts + self._pending + self._refused

    def _archive_closed(self) -> None:
        """Move the single reports of closed asks into files, one ask at a time."""
        if self.archive is not None:
            for ask in self.store.asks_to_archive():
                try:
                    row = move_reports(self.store, self.archive, ask)
                except (InvalidValue, PluginRefused, PluginFailed):
                    continue  # a mechanism of another package is missing: its reports stay in the store
                self._commit(StoreChanges(archives=[row]))

    def _tidy(self, expired: Sequence[Expiry]) -> None:
        """Delete files whose retention is over, set aside files that the store does not name, and log missing files."""
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
        """Sign the open asks of a collection, unless they are already published."""
        asks = self.board.open(collection.collection_id, now)
        step = max(collection.step_at(now), 0)
        content = (step, until, *(ask.key for ask in asks))
        if self._published.get(name) == content:
            return
        self._published[name] = content
        self.asks[name] = signed_asks(collection, asks, step=step, until=until, private=self._keys.private)

    def _commit(self, changes: StoreChanges) -> None:
        self.store.refuse_damaged()
        with self._lock:
            self._pending, self._refused = self._refused, Counter()
            changes.delivered, self._delivered = self._delivered, {}
        changes.counts.update(self._pending)
        changes.minute = int(self.clock.now() // 60)
        self.watchdog.unmark(changes)
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
                except Exception as error:  # what is committed stays committed
                    log_error("listener failed", error)


def example_collector(now: float = 7200.0) -> Collector:
    """A small collector for examples: one collection, a store in memory, a clock that stands still."""
    from hubbub.authoring import load_collection
    from hubbub.authoring.toml import EXAMPLE
    from hubbub.collection import Keys, ManualClock
    from hubbub.service.store.sqlite import SqliteStore

    store = SqliteStore(":memory:")
    return Collector([load_collection(EXAMPLE)], store, clock=ManualClock(now), keys=Keys.new())
