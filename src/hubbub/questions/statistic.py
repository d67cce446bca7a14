"""Questions that ask one statistic of one field, of everyone and at every step: what most kinds have in common."""

import math
from abc import abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from hubbub.collection.terms import Frozen, Terms
from hubbub.collection.time import every
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.reports import Floats
from hubbub.ledger.promise import MOST_UNITS, Promise, of_question
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.memoised import Memoised
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.driver import MAIN, OWN, Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Statistic
from hubbub.questions.base import Question, shares_shape
from hubbub.questions.shape import Shape
from hubbub.questions.spending import Cost
from hubbub.questions.words import odds_text
from hubbub.statistics.influence import Influence


@dataclass(frozen=True, kw_only=True)
class StatisticQuestion(Question):
    """One statistic of one field, asked of everyone at every step.

    A kind says which statistic (`statistic`), and overrides the methods in which it differs.

    Parameters
    ----------
    field
        The field that is asked about.
    mechanism
        The mechanism to use, instead of the best for the field.
    """

    field: str
    mechanism: str | None = None
    frozen: ClassVar[Frozen] = "step"

    @abstractmethod
    def statistic(self) -> Statistic:
        """The statistic that is asked for, at any epsilon. Refuses a field that has no such statistic."""

    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    def check(self) -> None:
        self.mechanism_for()

    def mechanism_for(self) -> Any:
        """The mechanism whose reports spend all of epsilon."""
        return self.statistic().mechanism(units_of(self.epsilon))

    def mechanisms(self) -> tuple[ReportFormat, ...]:
        """Every mechanism that an ask may name."""
        return (self.mechanism_for(),)

    def terms(self) -> Terms:
        mechanisms = self.mechanisms()
        return Terms(
            fields=self.reads(),
            frozen=self.frozen,
            views=(self.statistic().view.spec(),),
            mechanisms=tuple(sorted({mechanism.spec_id for mechanism in mechanisms})),
            limit=self.cost().each,
            promises=(self.promise(),),
            report_bytes=max(mechanism.report_bytes for mechanism in mechanisms),
        )

    def promise(self, steps: int = 1, interval: int | None = None) -> Promise:
        """The promise that any `steps` consecutive steps cost at most epsilon.

        The limit is the declared epsilon, not what this mechanism spends: another mechanism may spend a unit more.
        """
        limit, grid = min(units_of(self.epsilon), MOST_UNITS), interval or self.setting.step_seconds
        return Promise(limit, steps, grid, self.setting.origin, scope=of_question(self.setting.name))

    def cost(self) -> Cost:
        return Cost(self.mechanism_for().event().spent, 1)

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        from hubbub.protocols.steady import steady

        return steady(self.statistic(), epsilon=self.epsilon, groups=self.setting.groups, memory=memory)

    @property
    def arithmetic(self) -> int:
        from hubbub.protocols.steady import ARITHMETIC

        return ARITHMETIC

    # -- what it tells ----------------------------------------------------------------------------------------

    def labels(self) -> tuple[str, ...] | None:
        return self.setting.domain.symbol_labels()

    def shape(self) -> Shape:
        return shares_shape(self.setting.domain, self.statistic().size)

    def unbiased_steps(self) -> bool:
        return bool(self.mechanism_for().bias == "none")

    def independent_steps(self) -> bool:
        # A device that remembers makes the reports of several steps from the same random numbers. And where one group
        # answers for all devices, it is the same one in every step.
        return self.setting.groups == 1 and not isinstance(self.mechanism_for(), Stateful)

    def forecast(self, n: int) -> float | None:
        return math.sqrt(self.statistic().error(units_of(self.epsilon), n, self.typical()))

    def typical(self) -> Floats:
        """The truth that forecasts assume: all values equally common."""
        size = self.statistic().size
        return np.full(size, 1 / size)

    def sampled_spread(self) -> float:
        return self.statistic().spread(self.typical())

    def assumes(self) -> str:
        return "every step"

    def influence(self) -> Influence | str:
        return self._influence(self.mechanism_for())

    def bounded(self, name: str) -> bool:
        return name in (MAIN, OWN)

    def _influence(self, mechanism: ReportFormat) -> Influence | str:
        influence = mechanism.influence()
        return "the estimate is not a mean over reports" if influence is None else influence

    # -- words ------------------------------------------------------------------------------------------------

    def made_by(self) -> str:
        return type(self.mechanism_for()).__name__

    def default_title(self) -> str:
        return f"Of {self.field}: how common is each value?"

    def covers(self) -> str:
        """What one report is about, as a sentence of the promise; empty where it is about the value of one field."""
        return ""

    def sentence(self) -> str:
        epsilon = max(mechanism.effective_epsilon for mechanism in self.mechanisms())
        step, covers = every(self.setting.step_seconds), self.covers()
        return f"One report {step}. {covers + ' ' if covers else ''}It is {odds_text(epsilon)}."

    def chosen_freely(self) -> Self | None:
        if self.mechanism is None:
            return None
        named: dict[str, Any] = {part.name: None for part in fields(self) if part.name in ("mechanism", "buckets")}
        return replace(self, **named).bound(self.setting)


MOST_BYTES = 512
"""The largest unary report: beyond, local hashing is as accurate in a few bytes."""


def named_with_buckets(name: str | None, wanted: type[Any], buckets: int | None, **options: Any) -> Any:
    """The mechanism of a name, with a number of buckets where it is set; refused where a mechanism has none."""
    if buckets is None:
        return named_mechanism(name or "", wanted)(**options)
    kind = None if name is None else named_mechanism(name, wanted)
    if kind is None or "buckets" not in {part.name for part in fields(kind)}:
        allowed = "nothing, unless a mechanism is named that hashes values to buckets, such as OLH or SOLH"
        raise InvalidValue("buckets", buckets, allowed)
    return kind(buckets=buckets, **options)


def named_mechanism(name: str, wanted: type[Any]) -> type[Any]:
    """The mechanism of a name; those with a memory answer only where one is wanted."""
    known = {other: kind for other, kind in MECHANISMS.usable().items() if issubclass(kind, wanted)}
    fitting = {other: kind for other, kind in known.items() if wanted is Memoised or not issubclass(kind, Memoised)}
    if name not in fitting:
        raise InvalidValue("mechanism", name, f"one of {', '.join(fitting)}")
    return fitting[name]
