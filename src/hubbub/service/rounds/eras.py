"""How a question's protocol starts: resumed from the store, taken over from an earlier version, or begun.

An era is one unbroken run of a protocol. All that is stored of an era can be replayed with the arithmetic that it was
begun with. No step is asked by two eras.

A new version of a collection continues the streams of the questions that it does not change. The open asks of the
earlier version are closed with the reports they have, and the step is released. The new version starts the next step,
which was never asked, from the state that the protocol then has: a window stream keeps its place on the circle and its
account, and devices that enrolled in a stream of changes need not enrol again.

Studies are protocols that end. Each run of a study begins at most once, at the time that the signed schedule says. A
run that cannot go on ends with a release that gives the reason, and never begins again: devices have paid for the whole
run. The next run of the schedule begins on its own time.
"""

import json
import logging
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeAlias

from hubbub.collection.sealing import COLLECTION
from hubbub.core.errors import HubbubError
from hubbub.core.plugins import PluginFailed
from hubbub.core.reports import Sketch
from hubbub.core.spec import Json, integer
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, Release
from hubbub.questions import read_collection
from hubbub.questions.collection import Collection, Schedule
from hubbub.service.base.logs import log
from hubbub.service.kept.archive import Archive
from hubbub.service.rounds.question_run import QuestionRun
from hubbub.service.rounds.releases import make_count, read_count, release_row
from hubbub.service.store.base import AskRow, CollectionRow, EraRow, ReleaseRow, SnapshotRow, StoreChanges
from hubbub.service.store.sql import Store

_MAY_CHANGE = ("title", "keep_reports", "consistency")
"""Keys of a question that neither devices nor the protocol read: with another value it is still the same question."""


Document: TypeAlias = dict[str, Any]
"""A signed collection as JSON, in the present format."""


class KnownVersions:
    """The versions of all collections, those included that the next commit stores.

    A document is as long as its questions are many, so each is read once, and not once for each question.
    """

    def __init__(self, rows: Iterable[CollectionRow]) -> None:
        self.rows = sorted(rows, key=lambda row: row.version)
        self._of: dict[str, list[CollectionRow]] = {}
        for row in self.rows:
            self._of.setdefault(row.name, []).append(row)
        self._documents: dict[str, Document] = {}
        self._read: dict[str, Collection | HubbubError] = {}

    def of(self, name: str) -> list[CollectionRow]:
        """The versions of a collection, oldest first."""
        return self._of.get(name, [])

    def document(self, row: CollectionRow) -> Document:
        if row.id not in self._documents:
            self._documents[row.id] = COLLECTION.upgrade(json.loads(row.spec))
        return self._documents[row.id]

    def grid(self, row: CollectionRow) -> tuple[int, int]:
        """The length and the origin of the steps of a version."""
        spec = self.document(row)
        return integer("step_seconds", spec["step_seconds"]), integer("origin", spec["origin"])

    def read(self, row: CollectionRow) -> Collection:
        """A version with the kinds of its questions; `HubbubError`, each time, if this code cannot read it."""
        if row.id not in self._read:
            try:
                self._read[row.id] = read_collection(json.loads(row.spec))
            except HubbubError as error:
                self._read[row.id] = error
        read = self._read[row.id]
        if isinstance(read, HubbubError):
            raise read
        return read


class TakenOver(NamedTuple):
    """A stream of an earlier version, ready to continue: its last releases, its era, and the state to start from."""

    version: int
    releases: list[Release]
    rows: list[ReleaseRow]
    era: EraRow
    snapshot: SnapshotRow


def take_over(
    store: Store, archive: Archive | None, versions: KnownVersions, collection: Collection, question: str, now: float
) -> TakenOver | str | None:
    """End the stream of a question in the latest earlier version that asked it, so that `collection` can continue it.

    Returns why the stream cannot continue, if it cannot, or None if no earlier version asked the question. Raises
    `PluginFailed` if another package fails: once it is repaired, the stream can continue. Nothing is stored: the caller
    stores the rows, the era and the snapshot in one transaction.
    """
    for row in reversed(versions.of(collection.name)):
        if row.version >= collection.version or store.last_step(row.id, question) is None:
            continue
        try:
            earlier = versions.read(row)
            changed = difference(earlier, collection, question)
            if changed is not None:
                return f"version {row.version} asked it with another {changed}"
            era = store.era(row.id, question)
            if era is None or era.arithmetic != collection.questions[question].arithmetic:
                return f"the era of version {row.version} cannot be continued"
            return _end(store, archive, earlier, era, collection, now)
        except PluginFailed:
            raise
        except HubbubError as error:  # this code cannot read or reproduce what is stored
            return f"the era of version {row.version} is not reproduced: {error}"
    return None


def first_unasked(store: Store, versions: KnownVersions, collection: Collection, question: str, step: int) -> int:
    """The first step, at `step` or later, that no version of the collection asked or released.

    A device answers a question once in a step, whatever the version: no step is asked twice.
    """
    lateness, before = float(collection.lateness_seconds), -1
    while step != before:
        before = step
        for row in versions.of(collection.name):
            step = store.first_unasked(row.id, question, step, lateness=lateness)
            step += store.was_asked(row.id, question, step)
    return step


def last_asked(store: Store, versions: KnownVersions, collection: Collection, question: str, before: int) -> int | None:
    """The last step before `before` that any version of the collection with the same grid of steps asked; else None."""
    grid = collection.step_seconds, collection.origin
    same = [row for row in versions.of(collection.name) if versions.grid(row) == grid]
    steps = [store.last_step(row.id, question, before) for row in same]
    return max((step for step in steps if step is not None), default=None)


def difference(earlier: Collection, collection: Collection, question: str) -> str | None:
    """What differs between two versions of a question, if devices or the protocol read it; None if nothing does."""
    if (earlier.step_seconds, earlier.origin) != (collection.step_seconds, collection.origin):
        return "grid of steps"
    before: dict[str, Json] = earlier.questions[question].spec()
    after: dict[str, Json] = collection.questions[question].spec()
    for key in sorted(before.keys() | after.keys()):
        if key not in _MAY_CHANGE and before.get(key) != after.get(key):
            return key
    same = earlier.questions[question].setting == collection.questions[question].setting
    return None if same else "domain of the field"


def _end(
    store: Store, archive: Archive | None, earlier: Collection, era: EraRow, collection: Collection, now: float
) -> TakenOver:
    """Close what the earlier version has open with what came in, and release it."""
    run = QuestionRun(earlier, era, store.snapshots(era), snapshot_every=1)
    waiting = {(row.step, row.round, row.part): row for row, _ in run.replay(store) if not row.final}
    releases, rows = [], []
    snapshot = None
    while (message := run.message) is not None:
        if isinstance(message, Release):
            if run.is_unanswered and now < run.schedule.opens(run.number):  # a release without asks, of a later step
                snapshot = run.previous_snapshot
                break
            releases.append(message)
            rows.append(run.release(time=now))
        elif isinstance(message, Count):
            counted = make_count(store, archive, message, era, step=run.number, number=run.counts_made)
            run.answer_count(read_count(counted))
        elif (run.number, run.round, 0) in waiting:
            places = [(run.number, run.round, part) for part in range(len(message))]
            run.answer([Sketch.from_bytes(waiting[place].sketch) for place in places])
        elif not run.is_unanswered:  # a later round of a step that was asked: it is never published
            run.answer([ask.mechanism.empty() for ask in message])
        else:
            break
    step, state = snapshot or run.latest_snapshot
    arithmetic = collection.questions[era.question].arithmetic
    continued = EraRow(collection.collection_id, era.question, era.first, arithmetic)
    return TakenOver(earlier.version, releases, rows, continued, SnapshotRow(*continued.key, step, state))


OnRelease: TypeAlias = Callable[[Collection, str, Release, StoreChanges], None]
OnClose: TypeAlias = Callable[[Collection, str, int, Sequence[tuple[ReportFormat, Sketch]], StoreChanges], None]
"""Is told the question, the step or run, and what the asks of a round that is over were answered with."""
"""Called once with each release, by collection and question; what follows from it is added to the same changes."""


def resume(store: Store, collection: Collection, era: EraRow) -> tuple[QuestionRun, list[tuple[AskRow, Ask]]] | str:
    """Replay an era from the store. Returns the run and the asks whose ids are still held, or why the era has ended.

    An era ends if it was begun with another arithmetic.
    """
    arithmetic = collection.questions[era.question].arithmetic
    if era.arithmetic != arithmetic:
        return f"arithmetic {arithmetic}, and it was begun with {era.arithmetic}"
    run = QuestionRun(collection, era, store.snapshots(era))
    return run, run.replay(store)


class EraStarter:
    """Starts questions that cannot be resumed from their own era."""

    def __init__(self, store: Store, archive: Archive | None, on_release: OnRelease, versions: KnownVersions) -> None:
        self._store, self._archive, self._on_release, self._versions = store, archive, on_release, versions

    def take_over_or_begin(
        self, collection: Collection, question: str, now: float, changes: StoreChanges
    ) -> QuestionRun:
        """Go on with the protocol of an earlier version of the collection, or begin a new era if that is impossible."""
        taken = take_over(self._store, self._archive, self._versions, collection, question, now)
        if not isinstance(taken, TakenOver):
            return self.begin(collection, question, now, changes, why=taken)
        log(
            "version goes on",
            collection=collection.name,
            question=question,
            earlier=taken.version,
            version=collection.version,
            step=taken.snapshot.step,
        )
        changes.releases += taken.rows
        for release in taken.releases:
            self._on_release(collection, question, release, changes)
        changes.eras.append(taken.era)
        changes.snapshots.append((taken.snapshot, taken.snapshot.step))
        return QuestionRun(collection, taken.era, [taken.snapshot])

    def begin(
        self, collection: Collection, question: str, now: float, changes: StoreChanges, *, why: str | None
    ) -> QuestionRun:
        """Begin a new era at the first step that no era asked and whose first round has not closed.

        `why` says what ended the era before, if there was one.
        """
        schedule = Schedule(collection, question)
        step = max(schedule.at(now), 0)
        step += now >= schedule.times(step, 1)[1]
        step = first_unasked(self._store, self._versions, collection, question, step)
        return self.begin_at(collection, question, step, changes, why=why)

    def begin_at(
        self, collection: Collection, question: str, step: int, changes: StoreChanges, *, why: str | None
    ) -> QuestionRun:
        """Begin a new era at a step, or at the next horizon if devices enrolled in the horizon of that step."""
        spec = collection.questions[question]
        last = last_asked(self._store, self._versions, collection, question, step) if spec.horizon else None
        if last is not None and last // spec.horizon == step // spec.horizon:
            # A device enrols once in a horizon: an era that began later in it would not hear who is enrolled.
            step = (step // spec.horizon + 1) * spec.horizon
        if why is not None:
            log("new era", level=logging.WARNING, collection=collection.name, question=question, first=step, why=why)
        era = EraRow(collection.collection_id, question, step, spec.arithmetic)
        changes.eras.append(era)
        changes.snapshots.append((SnapshotRow(*era.key, step, "null"), step))
        return QuestionRun(collection, era)


_NOT_THERE = "nobody was asked: the collector was not there in the first round"
_NEWER = "a newer version of the collection is served"
_ALL = 1 << 20
"""More releases than a run has."""


class Studies:
    """The studies of the collections that are served: begins their runs, and stops runs that cannot go on.

    Parameters
    ----------
    store, versions
        The store, which knows every run that was ever begun, and the versions of all collections.
    outdated
        The ids of earlier versions: their runs are stopped.
    running
        Entered with a collection and the name of a study around each call of the study's code.
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        store: Store,
        versions: KnownVersions,
        outdated: Iterable[str] = (),
        running: Callable[[Collection, str], AbstractContextManager[object]] = lambda *study: nullcontext(),
    ) -> None:
        self._store, self._versions, self._running = store, versions, running
        self.schedules = {
            (collection.collection_id, question): Schedule(collection, question)
            for collection in collections
            for question in collection.questions
            if Schedule(collection, question).is_study
        }
        self.lost = [(era, _NEWER) for version in outdated for era in store.running_studies(version)]
        """Runs that cannot go on, and why."""
        self._begun: dict[tuple[str, str], int] = {}

    def begin(self, now: float, changes: StoreChanges, without: Container[tuple[str, str]] = ()) -> list[QuestionRun]:
        """Stop the lost runs. Returns the runs that begin now, of all studies but those in `without`."""
        for era, why in self.lost:
            self._stop(era, why, now, changes)
        self.lost = []
        due = {place: schedule for place, schedule in self.schedules.items() if place not in without}
        return [run for place, schedule in due.items() for run in self._begin(place, schedule, now, changes)]

    def next_begins(self, now: float) -> list[tuple[str, float]]:
        """When the next run of each study begins, with the id of its collection."""
        return [(place[0], schedule.opens(schedule.at(now) + 1)) for place, schedule in self.schedules.items()]

    def _begin(
        self, place: tuple[str, str], schedule: Schedule, now: float, changes: StoreChanges
    ) -> Iterable[QuestionRun]:
        collection, question, number = schedule.collection, schedule.question, schedule.at(now)
        if number < 0 or self._begun.get(place) == number:
            return
        self._begun[place] = number
        if any(self._store.has_begun(row.id, question, number) for row in self._versions.of(collection.name)):
            return
        era = EraRow(*place, number, collection.questions[question].arithmetic)
        changes.begun_runs.append(era)
        if now >= schedule.times(number, 1)[1]:
            self._stop(era, _NOT_THERE, now, changes)
            return
        log("study begins", collection=collection.name, question=question, run=number)
        try:
            with self._running(collection, question):
                run = QuestionRun(collection, era)
        except HubbubError as error:
            self._stop(era, str(error), now, changes)
        else:
            yield run

    def _stop(self, era: EraRow, why: str, now: float, changes: StoreChanges) -> None:
        """End a run that is only in the store."""
        log("study stopped", level=logging.WARNING, question=era.question, run=era.first, why=why)
        earlier = self._store.releases(era.collection, era.question, era.first, era.first, _ALL)
        release = Release(step=era.first, estimates={}, published=False, spent=0.0, n=0.0, stopped=why)
        place = {"collection": era.collection, "question": era.question}
        changes.releases.append(release_row(release, **place, time=now, minimum_batch=0, number=len(earlier)))
        changes.ended_runs.append(era)
