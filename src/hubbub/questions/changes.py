"""Questions about values that change rarely: one epsilon pays for a whole horizon of steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.setting import Finding, Setting
from hubbub.collection.spending import Cost
from hubbub.collection.terms import Frozen, Terms
from hubbub.collection.time import duration_text, every
from hubbub.core.domain import Categorical, Domain, Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.ledger.promise import Promise
from hubbub.protocols.changes.protocol import ARITHMETIC, change_protocol
from hubbub.protocols.changes.stream import MOST_STEPS, ChangeStream
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.sao2.tree import squares
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import View, Whole
from hubbub.protocols.views.sets import Members, On
from hubbub.questions.base import Example, Shape, shares_shape
from hubbub.questions.statistic import StatisticQuestion
from hubbub.questions.words import odds_text
from hubbub.statistics.influence import Influence

MOST_ENTRIES = 1 << 10
"""How many shares a stream of changes may have: a report has as many bytes."""


@dataclass(frozen=True)
class ChangingShares(Statistic):
    """The share of people with each value, at every step, where a value changes at most a few times in a horizon.

    A field of two ordinal values is one bit, and the share of 1 is estimated. Of another categorical or ordinal field,
    the last recorded value counts, and those who recorded none are not estimated. Of sets, every item is a bit.

    Parameters
    ----------
    domain
        The field's values.
    steps, changes
        The horizon, and how many changes of bits a device may report in it. A change from one category to another
        changes two bits, the first value one.
    """

    domain: Domain
    steps: int
    changes: int

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Categorical | Ordinal | Sets):
            kind = type(self.domain).__name__.lower()
            raise InvalidValue("domain", kind, "a categorical or ordinal field, or one of sets")
        for name, low, high in (("steps", 2, MOST_STEPS), ("changes", 1, 1 << 10)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidValue(name, value, f"an integer from {low} to {high}")
        if self.size > MOST_ENTRIES:
            raise InvalidValue("domain", self.size, f"at most {MOST_ENTRIES} values or items")

    @property
    def _bit(self) -> bool:
        return isinstance(self.domain, Ordinal) and self.domain.size == 2

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many shares are estimated."""
        if self._bit:
            return 1
        size = self.domain.items.size if isinstance(self.domain, Sets) else self.domain.size
        assert size is not None
        return size

    @property
    def view(self) -> View:  # type: ignore[override]
        """What `Changes.bits` reads."""
        if self._bit:
            return On()
        return Members(self.size) if isinstance(self.domain, Sets) else Whole()

    def labels(self, field: str) -> tuple[str, ...]:
        """A name for each share."""
        if self._bit:
            return (field,)
        items = self.domain.items if isinstance(self.domain, Sets) else self.domain
        return items.labels or tuple(map(str, range(self.size)))

    def mechanism(self, units: int) -> ChangeStream:
        one = not (self._bit or isinstance(self.domain, Sets))
        return _symbols(units, self.size, self.steps, self.changes, one)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        """The mean over the steps of a horizon, if all devices enrol at its start and use all their changes."""
        plan = self.mechanism(units).plan
        parts = plan.portions * n
        coefficients = squares(plan.reading(np.maximum(parts, 1e-9)), plan.tree, "mean")
        used = coefficients > 0
        return float((coefficients * plan.variances)[used] @ (1 / np.maximum(parts, 1e-9))[used]) / plan.steps

    def spread(self, like: NDArray[np.float64]) -> float:
        return 0.0  # everyone is asked


@dataclass(frozen=True, kw_only=True)
class ChangesQuestion(StatisticQuestion):
    """How common each value is, of values that change rarely: a whole horizon of steps costs epsilon once.

    Parameters
    ----------
    steps, changes
        How many steps a horizon has, and how many changes a device may tell of in it.

    Example:
        >>> question = ChangesQuestion(field="theme", epsilon=1.0, steps=24, changes=2)
        >>> question.summary, question.horizon
        ('changes, 24 steps', 24)
    """

    kind: ClassVar[str] = "changes"
    frozen: ClassVar[Frozen] = "last"
    steps: int
    changes: int

    @classmethod
    def examples(cls) -> Iterator[Example]:
        yield cls(field="theme", epsilon=2.0, steps=4, changes=8), {"theme": Categorical(["light", "dark"])}

    def statistic(self, setting: Setting) -> ChangingShares:
        if self.mechanism not in (None, "ExSub"):
            raise InvalidValue("mechanism", self.mechanism, "ExSub: the only one that reports changes as they come")
        return ChangingShares(setting.domain, self.steps, self.changes)

    def cost(self, setting: Setting) -> Cost:
        return Cost(self.mechanism_for(setting).event().spent, self.steps, once=True)

    def terms(self, setting: Setting) -> Terms:
        return replace(super().terms(setting), state=self.made_by(setting))

    def promise(self, setting: Setting, steps: int = 1, interval: int | None = None) -> Promise:
        return super().promise(setting, 1, self.steps * setting.step_seconds)

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        view = self.statistic(setting).view
        return change_protocol(self.mechanism_for(setting), first=first, view=view, memory=memory)

    @property
    def arithmetic(self) -> int:
        return ARITHMETIC

    @property
    def horizon(self) -> int:
        return self.steps

    @property
    def summary(self) -> str:
        return f"changes, {self.steps} steps"

    def labels(self, setting: Setting) -> tuple[str, ...]:
        return self.statistic(setting).labels(self.field)

    def shape(self, setting: Setting) -> Shape:
        return shares_shape(setting.domain, self.statistic(setting).size, over_time=True)

    def assumes(self, setting: Setting) -> str:
        return "a step on average, if all enrol at the start of a horizon and use all their changes"

    def influence(self, setting: Setting) -> Influence | str:
        return "a forger can choose the level that the fewest devices are on, and can send signs without enrolling"

    def sentence(self, setting: Setting) -> str:
        mechanism, length = self.mechanism_for(setting), duration_text(self.steps * setting.step_seconds)
        levels, step = len(mechanism.lengths), every(setting.step_seconds)
        return (
            f"Time is divided into periods of {length}. For each period the device picks one of {levels} levels at "
            "random, without looking at its value, and reports at the end of each of that level's intervals, at most "
            f"once {step}. It reports changes, at most {self.changes} in a period; a value that changes more often is "
            "reported as if it had stayed where it was. If everything that happens in a period is taken as one value, "
            f"all reports of the period together are {odds_text(mechanism.effective_epsilon)}. In the next period the "
            "device begins again, and spends as much again."
        )

    def linked(self, setting: Setting) -> str:
        levels, length = len(self.mechanism_for(setting).lengths), duration_text(self.steps * setting.step_seconds)
        return (
            f"The reports of {setting.name} carry the level that the device picked, one of {levels}, which is the same "
            f"for a whole period of {length}. It was picked without looking at any value, and reveals none."
        )

    def findings(self, setting: Setting) -> Iterator[Finding]:
        lasts = duration_text(self.steps * setting.step_seconds)
        yield Finding(
            "note",
            "changes",
            f"a device reports at most {self.changes} changes in {lasts}, and after that as if its value stayed the "
            "same: a larger number costs accuracy, a smaller one hides more changes",
        )


@lru_cache(maxsize=64)
def _symbols(units: int, dimension: int, steps: int, changes: int, one: bool) -> ChangeStream:
    return ChangeStream(epsilon=epsilon_of(units), dimension=dimension, steps=steps, changes=changes, one=one)
