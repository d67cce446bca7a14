"""Means: the mean of a number, asked of everyone at every step.

With `range = "auto"`, here and in streams, the range is found privately (LDP-IDS 6.1.2): devices admit only the signed
family of views, the cells of the search and numbers clipped between two signed ends.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Family, Terms
from hubbub.core.domain import Categorical, Domain, Numeric
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of, units_of
from hubbub.core.reports import Floats
from hubbub.mechanisms.numeric.mean import MeanMechanism
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Means, Statistic
from hubbub.questions.base import Example, Question
from hubbub.questions.shape import Shape
from hubbub.questions.spending import Cost
from hubbub.questions.statistic import StatisticQuestion, named_mechanism
from hubbub.statistics.influence import Influence


@dataclass(frozen=True)
class Averages(Means):
    """The mean of a number, by the hybrid mechanism unless another is named."""

    mean: str | None = None

    def mechanism(self, units: int) -> Any:
        if self.mean is None:
            return super().mechanism(units)
        return named_mechanism(self.mean, MeanMechanism)(epsilon=epsilon_of(units), low=self.low, high=self.high)

    def error(self, units: int, n: float, like: Floats) -> float:
        return float(self.mechanism(units).variance(1, float(np.clip(like[0], self.low, self.high)))) / n


def averages(domain: Domain, field: str, mechanism: str | None) -> Averages:
    """The mean of a numeric field; any other is refused."""
    if not isinstance(domain, Numeric):
        raise InvalidValue("field", field, "a numeric field: only numbers have a mean")
    return Averages(domain.low, domain.high, mean=mechanism)


def mean_shape(field: str, statistic: Averages, **more: Any) -> Shape:
    """One number, on the range that it may have."""
    return Shape(form="mean", size=1, unit=field, low=statistic.low, high=statistic.high, over_time=True, **more)


@dataclass(frozen=True, kw_only=True)
class MeanQuestion(StatisticQuestion):
    """What the mean of a numeric field is: every step costs epsilon.

    Example:
        >>> from hubbub.questions import Setting
        >>> setting = Setting("old", {"age": Numeric(0, 99, cells=9)}, 3600)
        >>> MeanQuestion(field="age", epsilon=1.0).bound(setting).made_by()
        'Hybrid'
    """

    kind: ClassVar[str] = "mean"
    in_groups: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> Iterator[Example]:
        seconds = Numeric(0, 20, cells=4)
        yield cls(field="seconds", epsilon=1.0), {"seconds": seconds}
        yield cls.make(cls.kind, field="fare", epsilon=2.0, range="auto"), {"fare": Numeric(0, 20, cells=4)}
        theme = Categorical(["light", "dark"])
        yield cls.make(cls.kind, field="seconds", by=("theme",), epsilon=2.0), {"seconds": seconds, "theme": theme}

    @classmethod
    def reading(cls, keys: Mapping[str, Any]) -> type[Question]:
        from hubbub.questions.breakdown import MeansByGroup

        if "by" in keys:
            return MeansByGroup
        return ClippedMean if "range" in keys else cls

    def statistic(self) -> Statistic:
        return averages(self.setting.domain, self.field, self.mechanism)

    def labels(self) -> tuple[str, ...]:
        return (self.field,)

    def shape(self) -> Shape:
        return mean_shape(self.field, averages(self.setting.domain, self.field, self.mechanism))

    def typical(self) -> Floats:
        statistic = averages(self.setting.domain, self.field, self.mechanism)
        return np.array([(statistic.low + statistic.high) / 2])

    def default_title(self) -> str:
        return f"Of {self.field}: what is its mean?"


SPAN = 1 << 16
"""The ratio of the largest number to the least threshold that devices admit."""
LEAST_SEARCH, MOST_SEARCH = 0.01, 0.9
ALONE: dict[str, Any] = {"method": "LPU", "w": 1, "filtered": False}
"""A mean that is asked for at every step is a stream of windows of one step, in which devices divide the two asks."""


@dataclass(frozen=True, kw_only=True)
class ClippedQuestion(StatisticQuestion):
    """The mean of a numeric field from 0 on, few of whose numbers are large.

    Parameters
    ----------
    range
        "auto": a part of every window asks how numbers are distributed, and devices clip theirs where the mean errs
        least by it. Every release says what lies above.
    search
        The part of every window that this search takes: of the devices, or of epsilon where that is divided.
    """

    skip_checks: ClassVar[Mapping[str, str]] = {"check_forecast": "it assumes that nothing is clipped"}
    in_groups: ClassVar[bool] = True
    range: str
    search: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range != "auto":
            raise InvalidValue("range", self.range, '"auto"; without this key the range is that of the field')
        if not LEAST_SEARCH <= self.search <= MOST_SEARCH:
            raise InvalidValue("search", self.search, f"a number from {LEAST_SEARCH:g} to {MOST_SEARCH:g}")

    @property
    @abstractmethod
    def window(self) -> dict[str, Any]:
        """The method of the stream, its w, and its options."""

    @cached_property
    def _settings(self) -> dict[str, Any]:
        bound = self.statistic().high
        return {**self.window, "epsilon": self.epsilon, "bound": bound, "first": bound / SPAN, "search": self.search}

    def statistic(self) -> Averages:
        domain = self.setting.domain
        if not isinstance(domain, Numeric) or domain.low != 0:
            raise InvalidValue("field", self.field, 'a numeric field from 0 on, for range = "auto"')
        if self.mechanism is not None:
            raise InvalidValue("mechanism", self.mechanism, 'nothing: range = "auto" has one for each of its two asks')
        return averages(domain, self.field, None)

    def terms(self) -> Terms:
        from hubbub.protocols.window.clipping import clipped_asks

        asks = clipped_asks(**self._settings)
        return replace(
            super().terms(),
            views=asks.views,
            mechanisms=asks.mechanisms,
            families=(Family(*asks.means),),
            rounds=asks.rounds,
            report_bytes=asks.report_bytes,
        )

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        from hubbub.protocols.window.clipping import clipped_means

        return clipped_means(memory=memory, groups=self.setting.groups, **self._settings)

    @property
    def arithmetic(self) -> int:
        from hubbub.protocols.window import METHODS
        from hubbub.protocols.window.clipping import ARITHMETIC

        return METHODS[self.window["method"]].arithmetic + ARITHMETIC - 1

    @property
    def lasts(self) -> int:
        return 2 * int(self.window["w"])

    def unbiased_steps(self) -> bool:
        return False  # a clipped mean is not the mean

    def forecast(self, n: int) -> float | None:
        return super().forecast(int(n * (1 - self.search)))

    def assumes(self) -> str:
        return f"{super().assumes()}; if nothing is clipped: less, the lower the clip that is found"

    def influence(self) -> Influence | str:
        return "forged reports also influence where numbers are clipped"

    @property
    def summary(self) -> str:
        return f"{super().summary}, range found"

    def covers(self) -> str:
        return "It is about how large the number is, or about the number clipped at a threshold."

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        taken = f"the search for the clip takes {100 * self.search:g}% of every window"
        yield Finding("note", "search", f"{taken}; the rest is for the mean")
        text = "means are of clipped numbers: a release also says what share is above the clip and what that could hide"
        yield Finding("note", "range", text)


@dataclass(frozen=True, kw_only=True)
class ClippedMean(ClippedQuestion, MeanQuestion):
    """The mean of a numeric field, clipped where it errs least: every step costs epsilon.

    In a step a part of the devices is asked how large its number is, and all others for the clipped number.
    """

    @property
    def window(self) -> dict[str, Any]:
        return ALONE

    def cost(self) -> Cost:
        return Cost(units_of(self.epsilon), 1)

    def shape(self) -> Shape:
        return replace(super().shape(), everyone=False)

    def answering(self) -> float:
        return 1 - self.search
