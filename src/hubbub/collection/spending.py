"""What a collection can cost one device: by step, by window, by year, in whole units of 1e-12 epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hubbub.core.event import units_of
from hubbub.mechanisms.memo.memo import Memoised
from hubbub.protocols.window import METHODS

if TYPE_CHECKING:
    from hubbub.collection.spec import Collection

__all__ = ["YEAR", "Cost", "cost_of", "steps_a_year", "total_of", "worst_of"]

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

    A stream's w steps cost epsilon at most, all of it perhaps in one of them: in population division a device is asked
    once in w steps, and spends everything. Dividing the budget evenly, every step takes a w-th.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> cost_of(load_collection(EXAMPLE), "popular").of(24)
        24000000000000
    """
    question = collection.questions[name]
    mechanism = question.mechanism_for(collection.fields[question.field])
    if isinstance(mechanism, Memoised):
        spent = mechanism.permanent_event().spent
        return Cost(spent, 0, most=spent * mechanism.most_memos)
    if question.kind == "changes":
        assert question.steps is not None
        return Cost(mechanism.event().spent, question.steps, once=True)
    if question.kind != "stream":
        spent = mechanism.event().spent
        return Cost(spent, 1)
    assert question.w is not None
    total = units_of(question.epsilon)
    if question.everyone and METHODS[str(question.method)].decision.even:
        return Cost(total // question.w, 1)
    return Cost(total, question.w)


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
