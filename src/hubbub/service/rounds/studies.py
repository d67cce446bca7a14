"""Studies: protocols that end. Each run of a study begins at most once, at the time that the signed schedule says.

A run that cannot go on ends with a release that gives the reason, and never begins again: devices have paid for the
whole run. The next run of the schedule begins on its own time.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from hubbub.collection import Collection
from hubbub.core.errors import HubbubError
from hubbub.protocols.driver import Release
from hubbub.service.base.logs import log
from hubbub.service.base.schedule import Schedule
from hubbub.service.rounds.question_run import QuestionRun
from hubbub.service.rounds.releases import release_row
from hubbub.service.store.base import EraRow, StoreChanges
from hubbub.service.store.sql import Store

_NOT_THERE = "nobody was asked: the collector was not there in the first round"
_NEWER = "a newer version of the collection is served"
_ALL = 1 << 20
"""More releases than a run has."""


class Studies:
    """The studies of the collections that are served: begins their runs, and stops runs that cannot go on.

    Parameters
    ----------
    collections
        The collections that are served.
    store
        The store, which knows every run that was ever begun.
    outdated
        The ids of earlier versions: their runs are stopped.
    running
        Entered with a collection and the name of a study around each call of the study's code.
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        store: Store,
        outdated: Iterable[str] = (),
        running: Callable[[Collection, str], AbstractContextManager[object]] = lambda *study: nullcontext(),
    ) -> None:
        self._store, self._running = store, running
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

    def next_event(self, now: float) -> float:
        """When the next run of any study begins."""
        return min((schedule.opens(schedule.at(now) + 1) for schedule in self.schedules.values()), default=math.inf)

    def _begin(
        self, place: tuple[str, str], schedule: Schedule, now: float, changes: StoreChanges
    ) -> Iterable[QuestionRun]:
        collection, question, number = schedule.collection, schedule.question, schedule.at(now)
        if number < 0 or self._begun.get(place) == number:
            return
        self._begun[place] = number
        versions = [row.id for row in self._store.collections() if row.name == collection.name]
        if any(self._store.has_begun(version, question, number) for version in versions):
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
