"""Questions that ask one statistic of one field, of everyone and at every step: what most kinds have in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.setting import Setting
from hubbub.collection.spending import Cost
from hubbub.collection.terms import Frozen, Terms
from hubbub.collection.time import every
from hubbub.core.event import units_of
from hubbub.ledger.promise import MOST_UNITS, Promise, of_question
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Statistic
from hubbub.questions.base import Question, Shape, shares_shape
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
    def statistic(self, setting: Setting) -> Statistic:
        """The statistic that is asked for, at any epsilon. Refuses a field that has no such statistic."""

    def reads(self) -> tuple[str, ...]:
        return (self.field,)

    def check(self, setting: Setting) -> None:
        self.mechanism_for(setting)

    def mechanism_for(self, setting: Setting) -> Any:
        """The mechanism whose reports spend all of epsilon."""
        return self.statistic(setting).mechanism(units_of(self.epsilon))

    def mechanisms(self, setting: Setting) -> tuple[ReportFormat, ...]:
        """Every mechanism that an ask may name."""
        return (self.mechanism_for(setting),)

    def terms(self, setting: Setting) -> Terms:
        mechanisms = self.mechanisms(setting)
        return Terms(
            fields=self.reads(),
            frozen=self.frozen,
            views=(self.statistic(setting).view.spec(),),
            mechanisms=tuple(sorted({mechanism.spec_id for mechanism in mechanisms})),
            limit=self.cost(setting).each,
            promises=(self.promise(setting),),
            report_bytes=max(mechanism.report_bytes for mechanism in mechanisms),
        )

    def promise(self, setting: Setting, steps: int = 1, interval: int | None = None) -> Promise:
        """The promise that any `steps` consecutive steps cost at most epsilon.

        The limit is the declared epsilon, not what this mechanism spends: another mechanism may spend a unit more.
        """
        limit, grid = min(units_of(self.epsilon), MOST_UNITS), interval or setting.step_seconds
        return Promise(limit, steps, grid, setting.origin, scope=of_question(setting.name))

    def cost(self, setting: Setting) -> Cost:
        return Cost(self.mechanism_for(setting).event().spent, 1)

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        from hubbub.protocols.steady import steady

        return steady(self.statistic(setting), epsilon=self.epsilon, memory=memory)

    @property
    def arithmetic(self) -> int:
        from hubbub.protocols.steady import ARITHMETIC

        return ARITHMETIC

    # -- what it tells ----------------------------------------------------------------------------------------

    def labels(self, setting: Setting) -> tuple[str, ...] | None:
        return setting.domain.symbol_labels()

    def shape(self, setting: Setting) -> Shape:
        return shares_shape(setting.domain, self.statistic(setting).size)

    def unbiased_steps(self, setting: Setting) -> bool:
        return bool(self.mechanism_for(setting).bias == "none")

    def independent_steps(self, setting: Setting) -> bool:
        # A device that remembers makes the reports of several steps from the same random numbers.
        return not isinstance(self.mechanism_for(setting), Stateful)

    def forecast(self, setting: Setting, n: int) -> float | None:
        return math.sqrt(self.statistic(setting).error(units_of(self.epsilon), n, self.typical(setting)))

    def typical(self, setting: Setting) -> NDArray[np.float64]:
        """The truth that forecasts assume: all values equally common."""
        size = self.statistic(setting).size
        return np.full(size, 1 / size)

    def assumes(self, setting: Setting) -> str:
        return "every step"

    def influence(self, setting: Setting) -> Influence | str:
        return self._influence(self.mechanism_for(setting))

    def _influence(self, mechanism: ReportFormat) -> Influence | str:
        influence = mechanism.influence()
        return "the estimate is not a mean over reports" if influence is None else influence

    # -- words ------------------------------------------------------------------------------------------------

    def made_by(self, setting: Setting) -> str:
        return type(self.mechanism_for(setting)).__name__

    def default_title(self, setting: Setting) -> str:
        return f"Of {self.field}: how common is each value?"

    def covers(self, setting: Setting) -> str:
        """What one report is about, as a sentence of the promise; empty where it is about the value of one field."""
        return ""

    def sentence(self, setting: Setting) -> str:
        epsilon = max(mechanism.effective_epsilon for mechanism in self.mechanisms(setting))
        covers = self.covers(setting)
        return f"One report {every(setting.step_seconds)}. {covers + ' ' if covers else ''}It is {odds_text(epsilon)}."

    def chosen_freely(self) -> Self | None:
        return None if self.mechanism is None else replace(self, mechanism=None)
