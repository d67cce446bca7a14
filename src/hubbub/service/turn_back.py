"""When time goes back: a conversation that is in steps which have not come begins anew in the present.

A clock that was wrong for a while may have led a conversation years ahead. It does not wait there. What was open in
steps that have not come is closed for good. Steps that were only passed over were never asked: what was recorded of
them is removed. A new era begins at the first step from the present on that was never asked; those that were are left
out when their time comes, so that no step is ever asked twice. A run of a study that has not come is stopped, and
never begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.service.logs import log
from hubbub.service.open_asks import Board, OpenAsk
from hubbub.service.question_run import QuestionRun
from hubbub.service.store.base import PassedOver, StoreChanges
from hubbub.service.store.sql import Store


def turn_back(
    runs: Sequence[QuestionRun], board: Board, store: Store, now: float
) -> tuple[dict[int, int], StoreChanges]:
    """Which conversations are to begin anew, by their place, and at which step; and what is closed and removed.

    The board has moved on when this returns: the changes must be made, or all is over.

    Example:
        >>> from hubbub.service.store import open_store
        >>> turn_back([], Board(), open_store("sqlite:///:memory:"), now=0.0)[0]
        {}
    """
    changes, steps = StoreChanges(), {}
    _reopen(runs, board, now)
    for place, run in enumerate(runs):
        collection, question = run.collection, run.era.question
        present = max(run.schedule.at(now), 0)
        if run.is_study:
            if now < run.schedule.opens(run.number):
                _close(board, [ask for ask in _of(run, board) if ask.number == run.number], changes)
                changes.releases.append(run.stop("time went back", time=now))
            continue
        if run.number <= present + 1:  # a step may be over before it ends, never more than one
            continue
        name, lateness = collection.collection_id, float(collection.lateness_seconds)
        first = present + (now >= run.schedule.times(present, 1)[1])
        step = store.first_unasked(name, question, first, lateness=lateness)
        if step >= run.number or _awaits_horizon(run, present):
            continue
        _close(board, [ask for ask in _of(run, board) if ask.number > present], changes)
        changes.passed_over.append(PassedOver(name, question, step, lateness))
        steps[place] = step
        log("turned back", question=question, from_step=run.number, to_step=step)
    return steps, changes


def _awaits_horizon(run: QuestionRun, present: int) -> bool:
    """Whether an era has not begun because it begins with the next horizon: ahead, without any fault of time."""
    horizon = run.collection.questions[run.era.question].horizon
    return bool(horizon) and run.number == run.era.first == (present // horizon + 1) * horizon


def _of(run: QuestionRun, board: Board) -> list[OpenAsk]:
    return board.of(run.collection.collection_id, run.era.question)


def _close(board: Board, asks: Sequence[OpenAsk], changes: StoreChanges) -> None:
    """Close asks for good, and forget their ids."""
    for opened in asks:
        if not opened.final:
            opened.final = True
            changes.finals.append(opened.key)
        changes.forgotten.append(opened.key)
        board.drop(opened.key)


def _reopen(runs: Sequence[QuestionRun], board: Board, now: float) -> None:
    """An ask that opened at a time that has not come opens with its step."""
    schedules = {(run.collection.collection_id, run.era.question): run.schedule for run in runs}
    for key, opened in board.asks.items():
        schedule = schedules.get((key.collection, opened.question))
        if schedule is not None and opened.opens > now and not opened.final:
            opened.opens = schedule.opens(opened.number)
