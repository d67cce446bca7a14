"""Deletion of what a collector no longer needs: ids of closed asks, and everything past the collection's retention."""

from __future__ import annotations

from collections.abc import Collection as Members
from collections.abc import Mapping, Sequence

from hubbub.service.base.schedule import Schedule
from hubbub.service.ingest.open_asks import Board
from hubbub.service.rounds.question_run import QuestionRun
from hubbub.service.rounds.retention import expiries_of_unserved, first_kept_of_question, is_needed
from hubbub.service.store.base import AskKey, Expiry, StoreChanges
from hubbub.service.store.sql import Store

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
    served: Members[str],
    now: float,
) -> list[Expiry]:
    """What retention deletes now. Of the collections that are served, nothing that a protocol still needs is deleted.

    A question that was set aside needs nothing: its era is deleted, too, if it cannot be replayed without what is
    deleted. Asks that are deleted leave the board.

    Parameters
    ----------
    store, board, runs
        The collector's state.
    studies, set_aside
        The schedules of the studies, and of the questions that were set aside, by collection id and question.
    served
        The ids of the collections that are served.
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
    others = [row for row in store.collections() if row.id not in served]
    return [*expiries, *expiries_of_unserved(store, others, now)]
