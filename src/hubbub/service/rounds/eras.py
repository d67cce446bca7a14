"""How a question's protocol starts: resumed, taken over, in a new era, or after the clock went back.

A new version of a collection continues the streams of the questions that it does not change.

The open asks of the earlier version are closed with the reports they have, and the step is released. The new version
starts the next step, which was never asked, from the state that the protocol then has: a window stream keeps its place
on the circle and its account, and devices that enrolled in a stream of changes need not enrol again.

How a question's protocol starts: resumed from the store, taken over from an earlier version, or in a new era.

An era is one unbroken run of a protocol. All that is stored of an era can be replayed with the arithmetic that it was
begun with. No step is asked by two eras.

When the clock goes back: a stream that is ahead of the present begins a new era in the present.

A clock that was wrong for a while may have led a stream years ahead. Its open asks of future steps are closed for good.
Steps that were only passed over were never asked: their records are removed. The new era begins at the first step, from
the present on, that was never asked. Future steps that were asked are skipped when their time comes, so that no step is
asked twice. A run of a study that lies in the future is stopped, and never begins again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from hubbub.collection import Collection, formats
from hubbub.core.errors import HubbubError
from hubbub.core.plugins import PluginFailed
from hubbub.core.reports import Sketch
from hubbub.core.spec import Json, integer
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, Release
from hubbub.questions import read_collection
from hubbub.service.base.logs import log
from hubbub.service.base.schedule import Schedule
from hubbub.service.ingest.open_asks import Board, OpenAsk
from hubbub.service.kept.archive import Archive
from hubbub.service.rounds.counts import make_count, read_count
from hubbub.service.rounds.question_run import QuestionRun
from hubbub.service.store.base import AskRow, CollectionRow, EraRow, PassedOver, ReleaseRow, SnapshotRow, StoreChanges
from hubbub.service.store.sql import Store

_MAY_CHANGE = ("title", "keep_reports")
"""Keys of a question that neither devices nor the protocol read: with another value it is still the same question."""


class TakenOver(NamedTuple):
    """A stream of an earlier version, ready to continue: its last releases, its era, and the state to start from."""

    version: int
    releases: list[Release]
    rows: list[ReleaseRow]
    era: EraRow
    snapshot: SnapshotRow


def take_over(
    store: Store, archive: Archive | None, collection: Collection, question: str, now: float
) -> TakenOver | str | None:
    """End the stream of a question in the latest earlier version that asked it, so that `collection` can continue it.

    Returns why the stream cannot continue, if it cannot, or None if no earlier version asked the question. Raises
    `PluginFailed` if another package fails: once it is repaired, the stream can continue. Nothing is stored: the caller
    stores the rows, the era and the snapshot in one transaction.
    """
    for row in _earlier(store, collection):
        if store.last_step(row.id, question) is None:
            continue
        try:
            earlier = read_collection(json.loads(row.spec))
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


def first_unasked(store: Store, collection: Collection, question: str, step: int) -> int:
    """The first step, at `step` or later, that no version of the collection asked or released.

    A device answers a question once in a step, whatever the version: no step is asked twice.
    """
    versions = [row.id for row in store.collections() if row.name == collection.name]
    lateness, before = float(collection.lateness_seconds), -1
    while step != before:
        before = step
        for version in versions:
            step = store.first_unasked(version, question, step, lateness=lateness)
            step += store.was_asked(version, question, step)
    return step


def last_asked(store: Store, collection: Collection, question: str, before: int) -> int | None:
    """The last step before `before` that any version of the collection with the same grid of steps asked; else None."""
    grid = collection.step_seconds, collection.origin
    versions = [row for row in store.collections() if row.name == collection.name and _grid(row) == grid]
    steps = [store.last_step(row.id, question, before) for row in versions]
    return max((step for step in steps if step is not None), default=None)


def _earlier(store: Store, collection: Collection) -> Iterator[CollectionRow]:
    """The earlier versions, newest first."""
    rows = [row for row in store.collections() if row.name == collection.name and row.version < collection.version]
    yield from sorted(rows, key=lambda row: -row.version)


def difference(earlier: Collection, collection: Collection, question: str) -> str | None:
    """What differs between two versions of a question, if devices or the protocol read it; None if nothing does."""
    if (earlier.step_seconds, earlier.origin) != (collection.step_seconds, collection.origin):
        return "grid of steps"
    before: dict[str, Json] = earlier.questions[question].spec()
    after: dict[str, Json] = collection.questions[question].spec()
    for key in sorted(before.keys() | after.keys()):
        if key not in _MAY_CHANGE and before.get(key) != after.get(key):
            return key
    same = earlier.setting(question) == collection.setting(question)
    return None if same else "domain of the field"


def _grid(row: CollectionRow) -> tuple[int, int]:
    spec = formats.COLLECTION.upgrade(json.loads(row.spec))
    return integer("step_seconds", spec["step_seconds"]), integer("origin", spec["origin"])


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

    def __init__(self, store: Store, archive: Archive | None, on_release: OnRelease) -> None:
        self._store, self._archive, self._on_release = store, archive, on_release

    def take_over_or_begin(
        self, collection: Collection, question: str, now: float, changes: StoreChanges
    ) -> QuestionRun:
        """Go on with the protocol of an earlier version of the collection, or begin a new era if that is impossible."""
        taken = take_over(self._store, self._archive, collection, question, now)
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
        step = first_unasked(self._store, collection, question, step)
        return self.begin_at(collection, question, step, changes, why=why)

    def begin_at(
        self, collection: Collection, question: str, step: int, changes: StoreChanges, *, why: str | None
    ) -> QuestionRun:
        """Begin a new era at a step, or at the next horizon if devices enrolled in the horizon of that step."""
        spec = collection.questions[question]
        last = last_asked(self._store, collection, question, step)
        if last is not None and spec.horizon and last // spec.horizon == step // spec.horizon:
            # A device enrols once in a horizon: an era that began later in it would not hear who is enrolled.
            step = (step // spec.horizon + 1) * spec.horizon
        if why is not None:
            log("new era", level=logging.WARNING, collection=collection.name, question=question, first=step, why=why)
        era = EraRow(collection.collection_id, question, step, spec.arithmetic)
        changes.eras.append(era)
        changes.snapshots.append((SnapshotRow(*era.key, step, "null"), step))
        return QuestionRun(collection, era)


def turn_back(
    runs: Sequence[QuestionRun], board: Board, store: Store, now: float
) -> tuple[dict[int, int], StoreChanges]:
    """Close what lies in the future. Returns the step at which each run ahead of the present begins anew, by its index.

    The board is changed at once: if the changes that are returned cannot be stored, the collector must stop.
    """
    changes, steps = StoreChanges(), {}
    _reopen(runs, board, now)
    for index, run in enumerate(runs):
        collection, question = run.collection, run.era.question
        present = max(run.schedule.at(now), 0)
        if run.is_study:
            if now < run.schedule.opens(run.number):
                _close(board, [ask for ask in _of(run, board) if ask.number == run.number], changes)
                changes.releases.append(run.stop("time went back", time=now))
            continue
        if run.number <= present + 1:  # a run may be one step ahead: it moves on before the step ends
            continue
        name, lateness = collection.collection_id, float(collection.lateness_seconds)
        first = present + (now >= run.schedule.times(present, 1)[1])
        step = store.first_unasked(name, question, first, lateness=lateness)
        if step >= run.number or _awaits_horizon(run, present):
            continue
        _close(board, [ask for ask in _of(run, board) if ask.number > present], changes)
        changes.passed_over.append(PassedOver(name, question, step, lateness))
        steps[index] = step
        log("turned back", question=question, from_step=run.number, to_step=step)
    return steps, changes


def _awaits_horizon(run: QuestionRun, present: int) -> bool:
    """Whether an era is ahead of the present only because it waits for the next horizon to begin."""
    horizon = run.collection.questions[run.era.question].horizon
    return bool(horizon) and run.number == run.era.first == (present // horizon + 1) * horizon


def _of(run: QuestionRun, board: Board) -> list[OpenAsk]:
    return board.of(run.collection.collection_id, run.era.question)


def _close(board: Board, asks: Sequence[OpenAsk], changes: StoreChanges) -> None:
    """Make the sketches of asks final, and delete their ids."""
    for ask in asks:
        if not ask.final:
            ask.final = True
            changes.finals.append(ask.key)
        changes.forgotten.append(ask.key)
        board.drop(ask.key)


def _reopen(runs: Sequence[QuestionRun], board: Board, now: float) -> None:
    """Let an ask that opened at a time now in the future open with its step."""
    schedules = {(run.collection.collection_id, run.era.question): run.schedule for run in runs}
    for key, ask in board.asks.items():
        schedule = schedules.get((key.collection, ask.question))
        if schedule is not None and ask.opens > now and not ask.final:
            ask.opens = schedule.opens(ask.number)
