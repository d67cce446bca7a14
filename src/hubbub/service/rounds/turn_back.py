"""When the clock goes back: a stream that is ahead of the present begins a new era in the present.

A clock that was wrong for a while may have led a stream years ahead. Its open asks of future steps are closed for good.
Steps that were only passed over were never asked: their records are removed. The new era begins at the first step, from
the present on, that was never asked. Future steps that were asked are skipped when their time comes, so that no step is
asked twice. A run of a study that lies in the future is stopped, and never begins again.
"""

from collections.abc import Sequence

from hubbub.service.base.logs import log
from hubbub.service.ingest.open_asks import Board, OpenAsk
from hubbub.service.rounds.question_run import QuestionRun
from hubbub.service.store.base import PassedOver, StoreChanges
from hubbub.service.store.sql import Store


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
