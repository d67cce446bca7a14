"""What a collection can cost one device, in units of 1e-12 epsilon, and the promises that follow from its budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from hubbub.collection.terms import ASKS
from hubbub.ledger.promise import Promise

if TYPE_CHECKING:
    from hubbub.questions.collection import Collection

YEAR = 365 * 86400


class Cost(NamedTuple):
    """The most that a question can cost a device.

    Most questions cost `each` in `per` consecutive steps, possibly all of it in one step. A memo (`per` is 0) costs
    `each` for every new value, nothing while the value stays, and at most `most` in a life. A stream of changes
    (`once`) costs `each` at some step of each horizon of `per` steps.
    """

    each: int
    per: int
    most: int = 0
    once: bool = False

    @property
    def memo(self) -> bool:
        """Whether it is the cost of a memo."""
        return self.per == 0

    @property
    def step(self) -> int:
        """The most in one step."""
        return self.each

    def of(self, steps: int) -> int:
        """The most in `steps` consecutive steps.

        Of a memo: while its value stays. Of changes: from the beginning of a horizon.
        """
        return self.each if self.memo else self.each * -(-steps // self.per)

    def worst(self, steps: int) -> int:
        """The most in any `steps` consecutive steps, with a new value in each."""
        if self.once:
            return self.each * (1 + -(-(steps - 1) // self.per))
        return min(self.each * steps, self.most) if self.memo else self.of(steps)


def cost_of(collection: Collection, name: str) -> Cost:
    """The cost of a question."""
    return collection.questions[name].cost()


def total_of(collection: Collection, steps: int) -> int:
    """The most that a device can spend in `steps` consecutive steps while the values of memos stay."""
    return _together(collection, (cost_of(collection, name).of(steps) for name in collection.questions))


def worst_of(collection: Collection, steps: int) -> int:
    """The most that a device can spend in any `steps` consecutive steps, however values change."""
    return _together(collection, (cost_of(collection, name).worst(steps) for name in collection.questions))


def _together(collection: Collection, costs: Iterable[int]) -> int:
    """What questions cost a device together: it answers all of them, or one where the people are divided."""
    return max(costs, default=0) if collection.divide else sum(costs)


def steps_a_year(collection: Collection) -> int:
    """How many steps begin in a year of 365 days."""
    return max(1, YEAR // collection.step_seconds)


def promises_of(collection: Collection) -> tuple[Promise, ...]:
    """The promises about the whole collection, each divided between accounts; grids are in seconds.

    What memos cost must not influence when other questions fall silent. So each memo account has its own part of every
    limit, which depends on the signed collection alone. Of the limits of a step and of a window, the other questions
    get what they need, and memos the rest, but at least one new value each. Of the limit of a life, each question gets
    an equal part, and memos again at least one new value each. The part of the memos is divided equally between them,
    but each gets at least one new value.
    """
    costs = {name: cost_of(collection, name) for name in collection.questions}
    without_memo = [cost for cost in costs.values() if not cost.memo]
    new_value = {collection.terms[name].account: cost.each for name, cost in costs.items() if cost.memo}
    budget, grid = collection.budget, (collection.step_seconds, collection.origin)
    promises = []

    def divide(limit: int, needed: int, steps: int, interval: int = 0, origin: int = 0) -> None:
        memos = min(limit, max(sum(new_value.values()), limit - needed)) if new_value else 0
        parts = {ASKS: limit - memos, **_divided(memos, new_value)}
        nonzero = {account: part for account, part in parts.items() if part}
        promises.append(Promise(limit, steps, interval, origin, parts=nonzero))

    if budget.event is not None:
        divide(budget.event, _together(collection, (cost.step for cost in without_memo)), 1, *grid)
    if budget.window is not None:
        limit, steps = budget.window
        divide(limit, _together(collection, (cost.of(steps) for cost in without_memo)), steps, *grid)
    if budget.user is not None:
        divide(budget.user, budget.user * len(without_memo) // len(costs), 0)
    return tuple(promises)


def _divided(units: int, new_value: Mapping[str, int]) -> dict[str, int]:
    """Divide units equally between accounts, but give each at least the cost of one new value.

    Where there is too little for one new value each, all parts are equal.
    """
    if sum(new_value.values()) > units:
        return dict.fromkeys(new_value, units // len(new_value))
    parts: dict[str, int] = {}
    while len(parts) < len(new_value):
        rest = [account for account in new_value if account not in parts]
        equal = (units - sum(parts.values())) // len(rest)
        above = [account for account in rest if new_value[account] > equal]
        parts |= {account: new_value[account] for account in above} or dict.fromkeys(rest, equal)
    return parts
