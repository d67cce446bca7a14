"""Means: the mean of a number, asked of everyone at every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.setting import Setting
from hubbub.core.domain import Categorical, Domain, Numeric
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.mechanisms.numeric.mean import MeanMechanism
from hubbub.protocols.statistic import Means, Statistic
from hubbub.questions.base import Example, Question, Shape
from hubbub.questions.shares import named_mechanism
from hubbub.questions.statistic import StatisticQuestion


@dataclass(frozen=True)
class Averages(Means):
    """The mean of a number, by the hybrid mechanism unless another is named."""

    mean: str | None = None

    def mechanism(self, units: int) -> Any:
        if self.mean is None:
            return super().mechanism(units)
        return named_mechanism(self.mean, MeanMechanism)(epsilon=epsilon_of(units), low=self.low, high=self.high)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
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
        >>> setting = Setting("old", {"age": Numeric(0, 99, cells=9)}, 3600)
        >>> MeanQuestion(field="age", epsilon=1.0).made_by(setting)
        'Hybrid'
    """

    kind: ClassVar[str] = "mean"

    @classmethod
    def examples(cls) -> Iterator[Example]:
        seconds = Numeric(0, 20, cells=4)
        yield cls(field="seconds", epsilon=1.0), {"seconds": seconds}
        theme = Categorical(["light", "dark"])
        yield cls.make(cls.kind, field="seconds", by=("theme",), epsilon=2.0), {"seconds": seconds, "theme": theme}

    @classmethod
    def reading(cls, keys: Mapping[str, Any]) -> type[Question]:
        from hubbub.questions.breakdown import MeansByGroup

        return MeansByGroup if "by" in keys else cls

    def statistic(self, setting: Setting) -> Statistic:
        return averages(setting.domain, self.field, self.mechanism)

    def labels(self, setting: Setting) -> tuple[str, ...]:
        return (self.field,)

    def shape(self, setting: Setting) -> Shape:
        return mean_shape(self.field, averages(setting.domain, self.field, self.mechanism))

    def typical(self, setting: Setting) -> NDArray[np.float64]:
        statistic = averages(setting.domain, self.field, self.mechanism)
        return np.array([(statistic.low + statistic.high) / 2])

    def default_title(self, setting: Setting) -> str:
        return f"Of {self.field}: what is its mean?"
