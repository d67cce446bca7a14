"""What a collection can cost one device, in whole units of 1e-12 epsilon, and what it promises of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from hubbub.collection.terms import ASKS
from hubbub.privacy.promise import Promise

if TYPE_CHECKING:
    from hubbub.collection.document import Collection

YEAR = 365 * 86400


class Cost(NamedTuple):
    """The most that a question can cost a device.

    `each`: in `per` consecutive steps, perhaps in one of them, and again in the next. Of a memo (`per` is 0): for every
    new value, while reports of a value that stays are free; and `most` for life, whatever its values do. Of changes
    (`once`): at any step of a horizon of `per` steps, and again in the next.
    """

    each: int
    per: int
    most: int = 0
    once: bool = False

    @property
    def memo(self) -> bool:
        """Whether it is a memo's.

        Example:
            >>> Cost(each=10, per=5).memo
            False
        """
        return self.per == 0

    @property
    def step(self) -> int:
        """The most in one step.

        Example:
            >>> Cost(each=10, per=5).step
            10
        """
        return self.each

    def of(self, steps: int) -> int:
        """The most in so many consecutive steps; of a memo, while its value stays.

        Example:
            >>> Cost(each=10, per=5).of(11), Cost(each=10, per=0, most=80).of(11)
            (30, 10)
        """
        return self.each if self.memo else self.each * -(-steps // self.per)

    def worst(self, steps: int) -> int:
        """The most in so many consecutive steps, with a new value in each; of changes, from the end of a horizon on.

        Example:
            >>> Cost(each=10, per=0, most=80).worst(3), Cost(each=10, per=0, most=80).worst(11)
            (30, 80)
            >>> Cost(each=10, per=5, once=True).worst(1), Cost(each=10, per=5, once=True).worst(2)
            (10, 20)
        """
        if self.once:
            return self.each * (1 + -(-(steps - 1) // self.per))
        return min(self.each * steps, self.most) if self.memo else self.of(steps)


def cost_of(collection: Collection, name: str) -> Cost:
    """The cost of a question.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> cost_of(load_collection(EXAMPLE), "popular").of(24)
        24000000000000
    """
    cost: Cost = collection.questions[name].cost(collection.setting(name))
    return cost


def total_of(collection: Collection, steps: int) -> int:
    """The most that all questions together can cost in so many consecutive steps; of memos, while values stay.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> total_of(load_collection(EXAMPLE), 1)
        1000000000000
    """
    return sum(cost_of(collection, name).of(steps) for name in collection.questions)


def worst_of(collection: Collection, steps: int) -> int:
    """The most that all questions together can cost in so many consecutive steps, whatever values do.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> worst_of(load_collection(EXAMPLE), 3)
        3000000000000
    """
    return sum(cost_of(collection, name).worst(steps) for name in collection.questions)


def steps_a_year(collection: Collection) -> int:
    """How many steps begin in a year of 365 days.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> steps_a_year(load_collection(EXAMPLE))
        8760
    """
    return max(1, YEAR // collection.step_seconds)


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
    fresh = {collection.terms[name].account: cost.each for name, cost in costs.items() if cost.memo}
    budget, grid = collection.budget, (collection.step_seconds, collection.origin)
    promises = []

    def divide(limit: int, needed: int, steps: int, interval: int = 0, origin: int = 0) -> None:
        memos = min(limit, max(sum(fresh.values()), limit - needed)) if fresh else 0
        parts = {ASKS: limit - memos, **_divided(memos, fresh)}
        given = {account: part for account, part in parts.items() if part}
        promises.append(Promise(limit, steps, interval, origin, parts=given))

    if budget.event is not None:
        divide(budget.event, sum(cost.step for cost in others), 1, *grid)
    if budget.window is not None:
        limit, steps = budget.window
        divide(limit, sum(cost.of(steps) for cost in others), steps, *grid)
    if budget.user is not None:
        divide(budget.user, budget.user * len(others) // len(costs), 0)
    return tuple(promises)


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
