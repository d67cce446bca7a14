"""How a question's protocol starts: resumed from the store, taken over from an earlier version, or in a new era.

An era is one unbroken run of a protocol. All that is stored of an era can be replayed with the arithmetic that it was
begun with. No step is asked by two eras.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from hubbub.collection import Collection
from hubbub.protocols.ask import Ask
from hubbub.protocols.release import Release
from hubbub.service.archive import Archive
from hubbub.service.logs import log
from hubbub.service.question_run import QuestionRun, ReplayMismatch
from hubbub.service.schedule import Schedule
from hubbub.service.store.base import AskRow, EraRow, SnapshotRow, StoreChanges
from hubbub.service.store.sql import Store
from hubbub.service.takeover import TakenOver, first_unasked, last_asked, take_over

OnRelease: TypeAlias = Callable[[Collection, str, Release, StoreChanges], None]
"""Called once with each release, by collection and question; what follows from it is added to the same changes."""


def resume(
    store: Store, collection: Collection, era: EraRow, changes: StoreChanges
) -> tuple[QuestionRun, list[tuple[AskRow, Ask]]] | str:
    """Replay an era from the store. Returns the run and the asks whose ids are still held, or why the era has ended.

    An era ends if it was begun with another arithmetic. An era whose arithmetic is not known (0) is resumed if all that
    is stored of it is reproduced; its arithmetic is then known, and stored.
    """
    arithmetic = collection.questions[era.question].arithmetic
    if era.arithmetic not in (0, arithmetic):
        return f"arithmetic {arithmetic}, and it was begun with {era.arithmetic}"
    try:
        run = QuestionRun(collection, era, store.snapshots(era))
        asks = run.replay(store)
    except ReplayMismatch as error:
        if era.arithmetic:
            raise
        return f"arithmetic {arithmetic}, and it was begun with an older one: {error.difference}"
    if not era.arithmetic:
        changes.recognised.append(era._replace(arithmetic=arithmetic))
    return run, asks


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
