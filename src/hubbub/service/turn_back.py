"""When time goes back: a conversation that is in steps which have not come begins anew in the present.

A clock that was wrong for a while may have led a conversation years ahead. It does not wait there. What was open in
steps that have not come is closed for good. Steps that were only passed over were never asked: what was recorded of
them is removed. A new era begins at the first step from the present on that was never asked; those that were are left
out when their time comes, so that no step is ever asked twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.service.logs import log
from hubbub.service.store.base import Changes, PassedOver, Store
from hubbub.service.talk import Talk
from hubbub.service.window import Board

__all__ = ["turn_back"]


def turn_back(talks: Sequence[Talk], board: Board, store: Store, now: float) -> tuple[dict[int, int], Changes]:
    """Which conversations are to begin anew, by their place, and at which step; and what is closed and removed.

    The board has moved on when this returns: the changes must be made, or all is over.

    Example:
        >>> from hubbub.service.store import open_store
        >>> turn_back([], Board(), open_store("sqlite:///:memory:"), now=0.0)[0]
        {}
    """
    changes, steps = Changes(), {}
    _reopen(talks, board, now)
    for place, talk in enumerate(talks):
        collection, question = talk.collection, talk.era.question
        present = max(collection.step_at(now), 0)
        if talk.said.step <= present + 1:  # a step may be over before it ends, never more than one
            continue
        name, lateness = collection.collection_id, float(collection.lateness_seconds)
        first = present + (now >= collection.closes(present, question=question, phase=1))
        step = store.first_unasked(name, question, first, lateness=lateness)
        if step >= talk.said.step:
            continue
        for key, window in list(board.windows.items()):
            if key.collection == name and window.question == question and window.ask.step > present:
                if not window.final:
                    window.final = True
                    changes.finals.append(key)
                changes.forgotten.append(key)
                board.drop(key)
        changes.passed_over.append(PassedOver(name, question, step, lateness))
        steps[place] = step
        log("turned back", question=question, from_step=talk.said.step, to_step=step)
    return steps, changes


def _reopen(talks: Sequence[Talk], board: Board, now: float) -> None:
    """An ask that opened at a time that has not come opens with its step."""
    collections = {talk.collection.collection_id: talk.collection for talk in talks}
    for key, window in board.windows.items():
        if window.opens > now and not window.final:
            window.opens = collections[key.collection].opens(window.ask.step)
