"""Rounds: every question's protocol, driven by the clock. Each tick decides what is due and returns it as one change.

A step has as many rounds as its terms say, of equal length. An ask closes at the end of its round. Reports still count
until the collection's lateness after the close. Then the sketch is final, the protocol is given the sketch, and its
next ask, count or release follows. A first ask that does not depend on earlier answers opens with its step; any other
ask opens as soon as the answers that it depends on are final. Studies (`eras.py`) have rounds of their own, and end.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from hubbub.core.errors import HubbubError
from hubbub.core.plugins import PluginFailed
from hubbub.core.reports import Sketch
from hubbub.core.spec import canonical
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, Release
from hubbub.questions.collection import Collection, Schedule
from hubbub.random.source import Random
from hubbub.service.base.limits import Ceilings
from hubbub.service.base.logs import log
from hubbub.service.ingest.open_asks import Board, OpenAsk
from hubbub.service.kept.archive import Archive
from hubbub.service.rounds.eras import EraStarter, KnownVersions, OnClose, OnRelease, Studies, resume
from hubbub.service.rounds.question_run import QuestionRun, ReplayMismatch
from hubbub.service.rounds.releases import AT_ONCE, LOOK, LongCounts, counted_ask, make_count, read_count
from hubbub.service.rounds.retention import SWEEP, IdDeletion, expired
from hubbub.service.rounds.turn_back import turn_back
from hubbub.service.rounds.watchdog import WHY, Place, Watchdog, runs_foreign_code
from hubbub.service.store.base import EraRow, StoreChanges, StoreFailed
from hubbub.service.store.sql import Store

LONGEST_GAP = 1000
"""After this many missed steps (or w, if that is more) a stream begins a new era instead of catching up."""

MARGIN = 60.0
"""Seconds that ids are held after an ask is final: a retry is then answered "duplicate" and not "late"."""


class Rounds:
    """The protocols of all questions of some collections, and the board with their open asks.

    Parameters
    ----------
    collections, store, rng, archive
        As of `Collector`.
    outdated
        The ids of earlier versions of the collections.
    ceilings
        How many reports the board takes.
    on_release
        Called once with each release, before it is stored.
    on_close
        Called once with the sketches of each round, before they are stored as final.
    first
        What the first tick's changes begin with: new versions are stored with what they ask first, or not at all.
    board
        An empty board to use, instead of one of a single process.
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        store: Store,
        rng: Random,
        versions: KnownVersions,
        *,
        outdated: frozenset[str] = frozenset(),
        ceilings: Ceilings | None = None,
        archive: Archive | None = None,
        on_release: OnRelease = lambda *release: None,
        on_close: OnClose = lambda *closed: None,
        watchdog: Watchdog | None = None,
        first: StoreChanges | None = None,
        board: Board | None = None,
    ) -> None:
        self.board = board or Board(store, rng, ceilings)
        self._watchdog = watchdog or Watchdog()
        stuck = self._watchdog.attach(store, {collection.collection_id: collection.name for collection in collections})
        self._store, self._archive, self._on_release, self._on_close = store, archive, on_release, on_close
        self._loaded = first or StoreChanges()
        """What loading the store found to be changed; part of the next tick's changes."""
        self._versions = versions
        self._starter = EraStarter(store, archive, on_release, versions)
        self._runs: list[QuestionRun] = []
        self.failed: dict[tuple[str, str], str] = {}
        """Questions that were set aside because a class of another package raised an error, or because their code did
        not return: by collection id and name, the reason. What is stored of them stays until its retention is over, and
        the next start goes on from it."""
        self._foreign: dict[tuple[str, str], bool] = {}
        self._not_started: list[tuple[Collection, str, str | None]] = []
        """Questions that the next tick starts: in a new era for the given reason, or taken over if there is none."""
        self._id_deletion = IdDeletion()
        self._long_counts = LongCounts()
        self._studies = Studies(collections, store, versions, outdated, self.running)
        self._served = {collection.collection_id: collection for collection in collections}
        self._swept: float | None = None
        self._resume_all(stuck)
        # Asks of earlier versions and eras are over. Asks of collections that are not served, and of questions that
        # were set aside, may go on later.
        for key, final in store.asks_with_ids(without=self.failed):
            if (key.collection in outdated or key.collection in self._served) and key not in self.board.asks:
                self._loaded.finals += [] if final else [key]
                self._id_deletion.add(key, store.count_id_pages(key))
        for place in stuck:
            if place in self._studies.schedules:
                self._set_aside(self._served[place[0]], place[1], WHY)

    def _resume_all(self, stuck: Sequence[Place]) -> None:
        """Resume what the store has begun, but for questions whose code did not return."""
        for collection in self._served.values():
            for question in collection.questions:
                if Schedule(collection, question).is_study:
                    continue
                if (collection.collection_id, question) in stuck:
                    self._set_aside(collection, question, WHY)
                    continue
                era = self._store.era(collection.collection_id, question)
                try:
                    why = None if era is None else self._resume(collection, era)
                except PluginFailed as error:
                    self._set_aside(collection, question, str(error))
                    continue
                if era is None or why is not None:
                    self._not_started.append((collection, question, why))
            for era in self._store.running_studies(collection.collection_id):
                try:
                    why = WHY if era.key[:2] in stuck else self._resume(collection, era)
                except PluginFailed as error:
                    why = str(error)
                if why is not None:
                    self._studies.lost.append((era, why))

    def turn_back(self, now: float) -> StoreChanges:
        """If the clock went back: end the runs that are ahead of the present, and begin new eras in the present."""
        present = all(run.number <= run.schedule.at(now) for run in self._runs)
        if present and all(ask.opens <= now for ask in self.board.asks.values()):
            return StoreChanges()
        steps, changes = turn_back(self._runs, self.board, self._store, now)
        for index, step in steps.items():
            run = self._runs[index]
            place = run.collection, run.era.question
            try:
                with self.running(*place):
                    self._runs[index] = self._starter.begin_at(*place, step, changes, why="time went back")
            except PluginFailed as error:
                self._set_aside(*place, str(error))
        self._runs = [run for run in self._runs if run.era.key[:2] not in self.failed]
        self._remove_ended(changes)
        return changes

    def tick(self, now: float, settled: float | None = None) -> StoreChanges:
        """Do all that is due by now. Memory is changed at once: if the changes are not stored, the collector must stop.

        Retention deletes by `settled`, the earliest that the time can be.
        """
        changes, self._loaded = self._loaded, StoreChanges()
        for collection, question, why in self._not_started:
            try:
                with self.running(collection, question):
                    if why is None:
                        run = self._starter.take_over_or_begin(collection, question, now, changes)
                    else:
                        run = self._starter.begin(collection, question, now, changes, why=why)
            except PluginFailed as error:
                self._set_aside(collection, question, str(error))
            else:
                self._runs.append(run)
        self._not_started = []
        self._runs += self._studies.begin(now, changes, without=self.failed)
        self.board.expected.clear()
        advanced = [self._advance(run, now, changes) for run in self._runs]
        self._runs = [run for run in advanced if run is not None]
        self._remove_ended(changes)
        for key, ask in list(self.board.asks.items()):
            if ask.final and now >= ask.until + MARGIN:
                self.board.drop(key)
                self._id_deletion.add(key, self.board.pages(ask))
        self._id_deletion.delete_some(changes)
        self._sweep(now if settled is None else settled, changes)
        return changes

    def next_events(self, now: float) -> dict[str, float]:
        """When something will be due next of each collection, by its id."""
        times = [(place.collection, opens) for place, opens in self.board.expected.items()]
        times += self._studies.next_begins(now)
        for key, ask in self.board.asks.items():
            times += [
                (key.collection, time) for time in ([ask.until + MARGIN] if ask.final else [ask.closes, ask.until])
            ]
        times += [(run.era.collection, run.schedule.opens(run.number)) for run in self._runs]
        times += [(collection, now + LOOK) for collection in self._served if self._long_counts.waits]
        events: dict[str, float] = {}
        for collection, time in times:
            if now < time < events.get(collection, math.inf):
                events[collection] = time
        return dict.fromkeys(self._served, now + SWEEP) | events

    def _resume(self, collection: Collection, era: EraRow) -> str | None:
        """Resume an era from the store; why it has ended, if it has."""
        with self.running(collection, era.question):
            resumed = resume(self._store, collection, era)
        if isinstance(resumed, str):
            return resumed
        run, asks = resumed
        for row, ask in asks:
            self.board.restore(collection, row, ask)
        self._runs.append(run)
        return None

    @contextmanager
    def running(self, collection: Collection, question: str, *, marked: bool = True) -> Iterator[None]:
        """Code of a question runs inside. If it is of another package, it is marked as running in the store."""
        place = collection.collection_id, question
        with self._watchdog.call(lambda: place, "the question"):
            if marked:
                self._mark(collection, question)
            yield

    def _mark(self, collection: Collection, question: str, *, closing: bool = False) -> None:
        place = collection.collection_id, question
        if place not in self._foreign:
            self._foreign[place] = runs_foreign_code(collection, question)
        self._watchdog.mark(place if self._foreign[place] else None, closing=closing)

    def _remove_ended(self, changes: StoreChanges) -> None:
        """Remove the runs of studies that have ended."""
        changes.ended_runs += [run.era for run in self._runs if run.message is None]
        self._runs = [run for run in self._runs if run.message is not None]

    def _sweep(self, now: float, changes: StoreChanges) -> None:
        """Delete what the retention says, once an hour, when no ids wait to be deleted."""
        if not self._id_deletion and (self._swept is None or not 0 <= now - self._swept < SWEEP):
            self._swept = now
            streams = self.failed.keys() - self._studies.schedules.keys()
            set_aside = {place: Schedule(self._served[place[0]], place[1]) for place in streams}
            outdated = [row for row in self._versions.rows if row.id not in self._served]
            unserved = {row: self._versions.document(row) for row in outdated if self._store.holds_any(row.id)}
            options: dict[str, Any] = {"set_aside": set_aside, "unserved": unserved, "now": now}
            changes.expired += expired(self._store, self.board, self._runs, self._studies.schedules, **options)

    def _advance(self, run: QuestionRun, now: float, changes: StoreChanges) -> QuestionRun | None:
        """Do everything that is due for a run. Returns the run, or that of a new era; None if it was set aside.

        A study that fails is stopped.
        """
        try:
            while True:
                with self.running(run.collection, run.era.question, marked=False):
                    next_run = self._advance_once(run, now, changes)
                    if next_run is None and run.message is not None:
                        self._publish_ahead(run, now, changes)
                if next_run is None:
                    break
                run = next_run
        except (ReplayMismatch, StoreFailed):
            raise
        except HubbubError as error:
            if run.is_study:
                self._stop(run, str(error), now, changes)
            elif isinstance(error, PluginFailed):
                self._set_aside(run.collection, run.era.question, str(error))
                return None
            else:
                raise
        return run

    def _set_aside(self, collection: Collection, question: str, why: str) -> None:
        """Go on without a question whose code failed or did not return: it must not stop the others."""
        log("question failed", level=logging.ERROR, collection=collection.name, question=question, why=why)
        self.failed[collection.collection_id, question] = why

    def _advance_once(self, run: QuestionRun, now: float, changes: StoreChanges) -> QuestionRun | None:
        """Do one thing that is due for a run. Returns the run to continue with; None if nothing is due."""
        message = run.message
        if message is None:
            return None
        open_asks = self.board.find_round(run.places(message)) if isinstance(message, tuple) else []
        if not open_asks:
            if self._is_too_far_behind(run, now):
                why = f"the last step was {run.number}, too long ago to catch up"
                return self._starter.begin(run.collection, run.era.question, now, changes, why=why)
            if now < run.schedule.opens(run.number):
                for place in run.places(message) if isinstance(message, tuple) else ():
                    self.board.expected[place] = run.schedule.opens(run.number)
                return None
        if isinstance(message, Release):
            self._mark(run.collection, run.era.question, closing=True)
            snapshot = run.new_snapshot
            self._on_release(run.collection, run.era.question, message, changes)
            changes.releases.append(run.take_release(time=now))
            if snapshot is not None:
                changes.snapshots.append((snapshot, run.snapshot_steps[0]))
            run.move_on()  # last: a protocol that raises here has released all the same
            return run
        if isinstance(message, Count):
            return run if self._count(run, message, changes) else None
        if not open_asks and run.is_unanswered and not run.is_study and self._was_asked(run, run.number):
            why = f"step {run.number} was asked while the clock was wrong"
            return self._starter.begin(run.collection, run.era.question, now, changes, why=why)
        for ask in open_asks:
            if ask.failure is not None:
                raise ask.failure
        open_asks = open_asks or self._publish(run, message, now, changes)
        if any(now < ask.until for ask in open_asks):
            return None
        self._mark(run.collection, run.era.question, closing=True)
        self.board.close(open_asks, changes)
        answered = [(ask.ask.mechanism, ask.sketch) for ask in open_asks]
        self._on_close(run.collection, run.era.question, run.number, answered, changes)
        run.answer([ask.sketch for ask in open_asks])
        return run

    def _stop(self, run: QuestionRun, why: str, now: float, changes: StoreChanges) -> None:
        """End a study that cannot go on."""
        log("study stopped", level=logging.WARNING, question=run.era.question, run=run.number, why=why)
        asks = self.board.of(run.collection.collection_id, run.era.question)
        self.board.close([ask for ask in asks if ask.number == run.number], changes)
        changes.releases.append(run.stop(why, time=now))

    def _count(self, run: QuestionRun, count: Count, changes: StoreChanges) -> bool:
        """Count among the kept reports of one of the run's asks. Returns whether it is done: a long count goes on."""
        place: dict[str, Any] = {"step": run.number, "missed": tuple(changes.asks)}
        n = Sketch.from_bytes(counted_ask(self._store, count, run.era, **place).sketch).n
        make = partial(make_count, self._store, self._archive, count, run.era, number=run.counts_made, **place)
        self._mark(run.collection, run.era.question, closing=True)
        key = run.era.key, run.number, run.counts_made, canonical(count.candidates_json())
        row = make() if count.work(n) <= AT_ONCE else self._long_counts.take(key, make)
        if row is None:
            return False
        changes.counted.append(row)
        run.answer_count(read_count(row))
        return True

    def _publish(self, run: QuestionRun, asks: Sequence[Ask], now: float, changes: StoreChanges) -> list[OpenAsk]:
        return self.board.publish(run.collection, run.ask_rows(asks, now), asks, changes)

    def _publish_ahead(self, run: QuestionRun, now: float, changes: StoreChanges) -> None:
        """Publish the next step's asks, if known, when that step opens. This step may still wait for late reports."""
        asks = run.next_asks
        if not asks or self.board.find_round(run.places(asks)):
            return
        opens = run.schedule.opens(run.number + 1)
        if now < opens:
            self.board.expected |= dict.fromkeys(run.places(asks), opens)
        elif not self._was_asked(run, run.number + 1):
            self._publish(run, asks, now, changes)

    def _was_asked(self, run: QuestionRun, step: int) -> bool:
        """Whether another era asked this step, while the clock was wrong."""
        return self._store.was_asked(run.collection.collection_id, run.era.question, step)

    def _is_too_far_behind(self, run: QuestionRun, now: float) -> bool:
        longest = max(LONGEST_GAP, run.collection.questions[run.era.question].lasts)
        return not run.is_study and run.is_unanswered and run.schedule.at(now) - run.number > longest
