"""Two accounts of one budget: what memos cost must not show in when the other questions fall silent.

A new value of a question with memos is charged when it first appears. Were it charged to the account that all questions
share, the others would run out of budget sooner on a device whose values change, and their silence would tell. So the
budget is divided beforehand, by what the signed collection says alone.
"""

from __future__ import annotations

from typing import NamedTuple

from hubbub.collection import Collection
from hubbub.collection.spending import cost_of
from hubbub.privacy.budget import Budget, Window

__all__ = ["Split", "split_budget"]


class Split(NamedTuple):
    """The budgets of the two accounts; None where there is nothing to pay, or nothing left to pay with."""

    asks: Budget | None
    memos: Budget | None


def split_budget(collection: Collection, left: int | None) -> Split:
    """Divide a collection's budget between its memos and its other questions.

    Of a step and of a window, the others get what they need and memos the rest, but at least one new value for each of
    their questions. Of a life, each question gets an equal part, and memos again at least one new value each.

    Parameters
    ----------
    collection
        The signed collection.
    left
        What earlier versions left of the lifetime, in units; None where there is no limit for life.

    Example:
        >>> from hubbub.collection.toml import EXAMPLE, load_collection
        >>> split_budget(load_collection(EXAMPLE), None)
        Split(asks=Budget(event=1000000000000, window=None, user=None), memos=None)
    """
    costs = [cost_of(collection, name) for name in collection.questions]
    fresh = sum(cost.each for cost in costs if cost.memo)
    others = [cost for cost in costs if not cost.memo]
    given = collection.budget

    def reserve(limit: int | None, needed: int) -> int | None:
        return None if limit is None else min(limit, max(fresh, limit - needed))

    event = reserve(given.event, sum(cost.step for cost in others))
    window, steps = (None, 1) if given.window is None else given.window
    window_part = reserve(window, sum(cost.of(steps) for cost in others))
    user = reserve(left, 0 if left is None else left * len(others) // len(costs))
    if not fresh:
        event, window_part, user = (None if part is None else 0 for part in (event, window_part, user))
    return Split(
        asks=_budget(_rest(given.event, event), _rest(window, window_part), steps, _rest(left, user)),
        memos=_budget(event, window_part, steps, user),
    )


def _rest(limit: int | None, part: int | None) -> int | None:
    return None if limit is None or part is None else limit - part


def _budget(event: int | None, window: int | None, steps: int, user: int | None) -> Budget | None:
    if 0 in (event, window, user):
        return None
    return Budget(event=event, window=None if window is None else Window(window, steps), user=user)
