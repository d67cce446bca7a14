"""Terms: what a device has to know of a collection, compiled from its questions and signed with them.

A device enforces what is signed here, and derives no cost and no limit by itself: what the collection promises of the
whole, and of each question the field and how it is frozen, the view, the finite set of mechanisms that an ask may name,
how many rounds a step has, which account pays, and what the question alone may cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from hubbub.collection.spending import cost_of
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Reporting
from hubbub.privacy.budget import MOST_UNITS
from hubbub.privacy.promise import Promise, of_question
from hubbub.protocols.window import epsilons

if TYPE_CHECKING:
    from hubbub.collection.spec import Collection

__all__ = ["ASKS", "Terms", "memo_account", "promises_of", "terms_of"]

ASKS = "asks"
"""The account that pays for everything but memos."""


class Terms(NamedTuple):
    """A question as a device knows it.

    `frozen`: an answer is about what was recorded in its step, or what was last recorded. `state`: what the device
    keeps from step to step. `promises` are about this question alone, in seconds.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> sorted(load_collection(EXAMPLE).terms["popular"].spec())
        ['account', 'field', 'frozen', 'mechanisms', 'promises', 'rounds', 'state', 'view']
    """

    field: str
    frozen: Literal["step", "last"]
    view: Mapping[str, Json]
    mechanisms: tuple[str, ...]
    rounds: int
    account: str
    state: Literal["none", "memo", "changes"]
    promises: tuple[Promise, ...]

    def spec(self) -> dict[str, Json]:
        """The terms as JSON."""
        return {
            **self._asdict(),
            "view": dict(self.view),
            "mechanisms": list(self.mechanisms),
            "promises": [promise.spec() for promise in self.promises],
        }


def memo_account(field: str, mechanism: Reporting) -> str:
    """The account that pays for the memos of a field, under which they are kept.

    Memos that two fields share would tell whether their values are equal. And what one account spends depends on its
    field's values: paying for another question too, it would show in when that one falls silent.

    Example:
        >>> from hubbub import BasicRappor
        >>> rappor = BasicRappor(epsilon=2.0, domain=4)
        >>> memo_account("home", rappor) == memo_account("work", rappor)
        False
    """
    return f"memo:{field}:{mechanism.spec_id}"


def terms_of(collection: Collection, name: str) -> Terms:
    """The terms of a question.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> terms = terms_of(load_collection(EXAMPLE), "popular")
        >>> terms.account, terms.rounds, terms.promises[0].limit, terms.promises[0].interval
        ('asks', 1, 1000000000000, 3600)
    """
    question = collection.questions[name]
    asked = question.question(collection.fields[question.field])
    whole, grid = units_of(question.epsilon), (collection.step_seconds, collection.origin)
    mechanism, cost = asked.mechanism(whole), cost_of(collection, name)
    if question.kind == "stream":
        assert question.method is not None
        assert question.w is not None
        mechanisms = _mechanisms(asked, epsilons(question.method, epsilon=question.epsilon, w=question.w))
        limit: tuple[int, int, int, int] = (whole, question.w, *grid)
    else:
        mechanisms = (mechanism.spec_id,)
        # What was declared, not what this mechanism spends of it: another mechanism may spend a unit more.
        limit = (whole, 1, *grid)
        if question.kind == "changes":
            limit = (whole, 1, cost.per * collection.step_seconds, collection.origin)
        elif cost.memo:
            limit = (cost.most, 0, 0, 0)
    lasting = question.kind in ("memo", "changes")
    return Terms(
        field=question.field,
        frozen="last" if lasting else "step",
        view=asked.view.spec(),
        mechanisms=mechanisms,
        rounds=2 if question.adaptive else 1,
        account=memo_account(question.field, mechanism) if cost.memo else ASKS,
        state=question.kind if question.kind in ("memo", "changes") else "none",
        promises=(Promise(min(limit[0], MOST_UNITS), *limit[1:], scope=of_question(name)),),
    )


def promises_of(collection: Collection) -> tuple[Promise, ...]:
    """What a collection promises of the whole, and how it is divided beforehand between accounts, in seconds.

    What memos cost must not show in when other questions fall silent. So each memo account has a part of its own of
    every limit, by what the signed collection says alone. Of a step and of a window, the other questions get what they
    need and memos the rest, but at least one new value each. Of a life, each question gets an equal part, and memos
    again at least one new value each. What memos get is divided equally, as far as each gets one new value.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> [(promise.limit, promise.steps, dict(promise.parts)) for promise in promises_of(load_collection(EXAMPLE))]
        [(1000000000000, 1, {'asks': 1000000000000})]
    """
    costs = {name: cost_of(collection, name) for name in collection.questions}
    others = [cost for cost in costs.values() if not cost.memo]
    fresh = {_account(collection, name): cost.each for name, cost in costs.items() if cost.memo}
    budget, grid = collection.budget, (collection.step_seconds, collection.origin)
    found = []

    def divide(limit: int, needed: int, steps: int, interval: int = 0, origin: int = 0) -> None:
        memos = min(limit, max(sum(fresh.values()), limit - needed)) if fresh else 0
        parts = {ASKS: limit - memos, **_divided(memos, fresh)}
        given = {account: part for account, part in parts.items() if part}
        found.append(Promise(limit, steps, interval, origin, parts=given))

    if budget.event is not None:
        divide(budget.event, sum(cost.step for cost in others), 1, *grid)
    if budget.window is not None:
        limit, steps = budget.window
        divide(limit, sum(cost.of(steps) for cost in others), steps, *grid)
    if budget.user is not None:
        divide(budget.user, budget.user * len(others) // len(costs), 0)
    return tuple(found)


def _divided(units: int, fresh: Mapping[str, int]) -> dict[str, int]:
    """Equal parts, but what one new value costs where that is more; equal ones in any case where it is too little."""
    if sum(fresh.values()) > units:
        return dict.fromkeys(fresh, units // len(fresh))
    parts: dict[str, int] = {}
    while len(parts) < len(fresh):
        rest = [account for account in fresh if account not in parts]
        each = (units - sum(parts.values())) // len(rest)
        above = [account for account in rest if fresh[account] > each]
        parts |= {account: fresh[account] for account in above} or dict.fromkeys(rest, each)
    return parts


def _account(collection: Collection, name: str) -> str:
    question = collection.questions[name]
    return memo_account(question.field, question.mechanism_for(collection.fields[question.field]))


def _mechanisms(asked: object, spent: tuple[int, ...]) -> tuple[str, ...]:
    """The mechanisms at these epsilons, but for those at which nothing can be asked."""
    found = set()
    for units in spent:
        try:
            found.add(asked.mechanism(units).spec_id)  # type: ignore[attr-defined]
        except InvalidValue:
            continue
    return tuple(sorted(found))
