"""Retention: which steps and runs are old enough for their reports to be deleted, and their deletion.

Single reports, ids and sketches (a sketch of one report is that report) are deleted once their step has been over for
the collection's retention. So are withheld releases, which rest on few reports. Published releases stay. An ask is
deleted with its sketch: a report to it is then refused as unknown instead of late, and is not counted either way.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from hubbub.core.spec import integer
from hubbub.questions.collection import Schedule
from hubbub.service.ingest.open_asks import Board
from hubbub.service.rounds.eras import Document
from hubbub.service.rounds.question_run import QuestionRun
from hubbub.service.store.base import AskKey, CollectionRow, EraRow, Expiry, StoreChanges
from hubbub.service.store.sql import Store

_DAY = 86400


def first_kept_step(*, now: float, origin: int, step_seconds: int, retention_days: int) -> int:
    """The first step that is kept: all earlier steps have been over for the retention or longer."""
    return math.floor((now - retention_days * _DAY - origin) / step_seconds)


def first_kept_of_question(schedule: Schedule, now: float) -> int:
    """The first step, or run of a study, that is kept."""
    collection, study = schedule.collection, schedule.terms.study
    days = collection.retention_days
    if study is None:
        times = {"origin": collection.origin, "step_seconds": collection.step_seconds}
        return first_kept_step(now=now, retention_days=days, **times)
    return _first_kept_run(now, days, study.start + schedule.terms.rounds * study.round_seconds, study.every)


def _first_kept_run(now: float, retention_days: int, ends: int, every: int) -> int:
    """The first run that is kept. Run 0 ends at `ends`, and the others `every` seconds apart (0: there are none)."""
    over = now - retention_days * _DAY - ends
    if over < 0:
        return 0
    return math.floor(over / every) + 1 if every else 1


def expiries_of_unserved(store: Store, unserved: Mapping[CollectionRow, Document], now: float) -> Iterator[Expiry]:
    """What retention deletes of collections that are not served now, earlier versions included.

    Such a collection may be served again. An era that a deletion leaves without what a replay needs is marked as ended.
    """
    for row, spec in unserved.items():
        times = {name: integer(name, spec[name]) for name in ("origin", "step_seconds", "retention_days")}
        below, lateness = first_kept_step(now=now, **times), integer("lateness_seconds", spec["lateness_seconds"])
        running = store.running_studies(row.id)
        for question in spec["questions"]:
            terms = spec["terms"][question] if "terms" in spec else {}
            if study := terms.get("study"):
                start, length, every = (integer(name, study[name]) for name in ("start", "round_seconds", "every"))
                ends = start + integer("rounds", terms["rounds"]) * length
                first = _first_kept_run(now, times["retention_days"], ends, every)
                ended = any(era.question == question and era.first < first for era in running)
                yield Expiry(row.id, question, first, ended, lateness)
                continue
            ended = is_needed(store, store.era(row.id, question), below)
            yield Expiry(row.id, question, below, ended, lateness)


def is_needed(store: Store, era: EraRow | None, below: int) -> bool:
    """Whether a replay of the era needs anything of the steps below `below`."""
    if era is None:
        return False
    snapshots = store.snapshots(era)
    return (snapshots[-1].step if snapshots else era.first) < below


PAGES_AT_ONCE = 1024
"""Pages of ids that one transaction deletes: half a million ids, about 13 MB."""

SWEEP = 3600.0
"""Seconds between two looks for what retention deletes."""


class IdDeletion:
    """The asks whose ids are being deleted. Ids go a few pages at a time, so that no commit takes long."""

    def __init__(self) -> None:
        self._pages: dict[AskKey, int] = {}

    def __bool__(self) -> bool:
        return bool(self._pages)

    def add(self, key: AskKey, pages: int) -> None:
        """Have the ids of an ask deleted, which fill `pages` pages."""
        self._pages[key] = pages

    def delete_some(self, changes: StoreChanges) -> None:
        """Delete the next pages."""
        room = PAGES_AT_ONCE
        for key, pages in list(self._pages.items()):
            if pages > room:
                self._pages[key] = pages - room
                changes.trimmed.append((key, pages - room))
                return
            del self._pages[key]
            changes.forgotten.append(key)
            room -= pages


def expired(
    store: Store,
    board: Board,
    runs: Sequence[QuestionRun],
    studies: Mapping[tuple[str, str], Schedule],
    *,
    set_aside: Mapping[tuple[str, str], Schedule],
    unserved: Mapping[CollectionRow, Document],
    now: float,
) -> list[Expiry]:
    """What retention deletes now. Of the collections that are served, nothing that a protocol still needs is deleted.

    A question that was set aside needs nothing: its era is deleted, too, if it cannot be replayed without what is
    deleted. Asks that are deleted leave the board.

    Parameters
    ----------
    studies, set_aside
        The schedules of the studies, and of the questions that were set aside, by collection id and question.
    unserved
        The collections of which something is stored and that are not served, with their documents.
    now
        The time; nothing younger than the retention at this time is deleted.
    """
    schedules = {**studies, **set_aside, **{run.era.key[:2]: run.schedule for run in runs}}
    first_kept = {place: first_kept_of_question(schedule, now) for place, schedule in schedules.items()}
    for run in runs:
        place = run.era.key[:2]
        first_kept[place] = run.drop_snapshots(before=first_kept[place])
    for key, ask in list(board.asks.items()):
        place = (key.collection, ask.question)
        if place in set_aside and ask.number < first_kept[place] and ask.until <= now:
            board.drop(key)
        elif place in first_kept:
            first_kept[place] = min(first_kept[place], ask.number)
    expiries = []
    for place, below in first_kept.items():
        ended = place in set_aside and is_needed(store, store.era(*place), below)
        expiries.append(Expiry(*place, below, ended, lateness=schedules[place].collection.lateness_seconds))
    return [*expiries, *expiries_of_unserved(store, unserved, now)]
