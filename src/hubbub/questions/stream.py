"""Streams: shares or a mean step by step, for one epsilon in any w consecutive steps (LDP-IDS)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hubbub.collection.safety import Finding
from hubbub.collection.terms import Terms
from hubbub.collection.time import every, span
from hubbub.core.domain import Categorical, Numeric
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.reports import Floats
from hubbub.ledger.promise import Promise
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.window import METHODS, OPTIONS, Method, check_options, epsilons, window_stream
from hubbub.questions.base import Example, Question, shares_shape
from hubbub.questions.consistent_shares import SharesQuestion
from hubbub.questions.histogram import shares_labels, shares_read, shares_title
from hubbub.questions.mean import Averages, ClippedQuestion, averages, mean_shape
from hubbub.questions.shape import Shape
from hubbub.questions.spending import Cost
from hubbub.questions.statistic import StatisticQuestion
from hubbub.questions.value_shares import Shares
from hubbub.questions.words import odds_text
from hubbub.statistics.influence import Influence

MOST_W = 10**6


@dataclass(frozen=True, kw_only=True)
class StreamQuestion(SharesQuestion, StatisticQuestion):
    """The shares of a field's values, or a numeric field's mean, at every step: any w steps cost epsilon.

    Parameters
    ----------
    buckets
        As of a histogram.
    method, w
        A name of `hubbub.protocols.window.METHODS`, and the length of its window.
    beta, filtered, u_min, publications, threshold, tolerance, samples, scale, most_share, most, gain, target,
    process_variance
        The options that the method has: see `hubbub.protocols.window.OPTIONS`.
    of
        "cells" asks for the shares of a numeric field's cells instead of its mean; "size" for the size of a set.

    Example:
        >>> from hubbub import Ordinal
        >>> from hubbub.questions import Setting
        >>> question = StreamQuestion(field="age", epsilon=1.0, method="LPU", w=10)
        >>> question = question.bound(Setting("ages", {"age": Ordinal(2)}, 3600))
        >>> round(question.forecast(100_000), 4)
        0.0129
    """

    kind: ClassVar[str] = "stream"
    in_groups: ClassVar[bool] = True
    method: str
    w: int
    of: str | None = None
    buckets: int | None = None
    beta: float | None = None
    filtered: bool | None = None
    u_min: int | None = None
    publications: int | None = None
    threshold: float | None = None
    tolerance: float | None = None
    samples: int | None = None
    scale: float | None = None
    most_share: float | None = None
    most: float | None = None
    gain: float | None = None
    target: float | None = None
    process_variance: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in METHODS:
            raise InvalidValue("method", self.method, f"one of {', '.join(METHODS)}")
        if not 1 <= self.w <= MOST_W:
            raise InvalidValue("w", self.w, f"an integer from 1 to {MOST_W}")
        check_options(self.method, self._method.options, self.w, self.options())

    @property
    def _method(self) -> Method:
        return METHODS[self.method]

    def options(self) -> dict[str, Any]:
        """The options of the method that are set."""
        return {name: getattr(self, name) for name in OPTIONS if getattr(self, name) is not None}

    @classmethod
    def examples(cls) -> Iterator[Example]:
        theme = {"theme": Categorical(["light", "dark"])}
        yield cls(field="theme", epsilon=1.0, method="LPU", w=2, consistency="auto"), theme
        yield cls(field="theme", epsilon=1.0, method="LBU", w=2), theme
        yield cls(field="theme", epsilon=1.0, method="LBA", w=2), theme
        yield cls(field="seconds", epsilon=1.0, method="LPU", w=2), {"seconds": Numeric(0, 20, cells=4)}
        fare, auto = {"fare": Numeric(0, 20, cells=4)}, {"field": "fare", "epsilon": 2.0, "w": 2, "range": "auto"}
        yield cls.make(cls.kind, method="LPU", **auto), fare
        yield cls.make(cls.kind, method="LBA", search=0.5, **auto), fare

    @classmethod
    def reading(cls, keys: Mapping[str, Any]) -> type[Question]:
        return ClippedStream if "range" in keys else cls

    def statistic(self) -> Statistic:
        if isinstance(self.setting.domain, Numeric) and self.of is None:
            if self.buckets is not None:
                raise InvalidValue("buckets", self.buckets, "nothing, for a mean")
            return averages(self.setting.domain, self.field, self.mechanism)
        codes, view = shares_read(self.setting.domain, self.kind, self.of)
        return Shares(codes, oracle=self.mechanism, buckets=self.buckets, view=view)

    def mechanisms(self) -> tuple[ReportFormat, ...]:
        """The mechanism at each epsilon that the method can ask for, except where there is none for that epsilon."""
        statistic, mechanisms = self.statistic(), []
        for units in epsilons(self.method, epsilon=self.epsilon, w=self.w, **self.options()):
            try:
                mechanisms.append(statistic.mechanism(units))
            except InvalidValue:
                continue
        return tuple(mechanisms) or (self.mechanism_for(),)

    def terms(self) -> Terms:
        return replace(super().terms(), rounds=self._method.decision.rounds)

    def promise(self, steps: int = 1, interval: int | None = None) -> Promise:
        return super().promise(self.w)

    def cost(self) -> Cost:
        """Of w steps epsilon, all of it perhaps in one of them; dividing the budget evenly, a w-th in every step."""
        total = units_of(self.epsilon)
        even = self._method.everyone and self._method.decision.even
        return Cost(total // self.w, 1) if even else Cost(total, self.w)

    def protocol(self, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        promised: dict[str, Any] = {"epsilon": self.epsilon, "w": self.w, "groups": self.setting.groups}
        return window_stream(self.method, self.statistic(), **promised, memory=memory, **self.options())

    @property
    def arithmetic(self) -> int:
        return self._method.arithmetic

    @property
    def lasts(self) -> int:
        return self.w

    # -- what it tells ----------------------------------------------------------------------------------------

    @property
    def part(self) -> float:
        """The part of its window that a publication takes."""
        return float(self._method.decision.takes(self.w, **self.options()))

    def labels(self) -> tuple[str, ...] | None:
        averages = isinstance(self.statistic(), Averages)
        return (self.field,) if averages else shares_labels(self.setting.domain)

    def shape(self) -> Shape:
        statistic, everyone = self.statistic(), self._method.everyone
        if isinstance(statistic, Averages):
            return mean_shape(self.field, statistic, everyone=everyone, window=self.w)
        return shares_shape(self.setting.domain, statistic.size, over_time=True, everyone=everyone, window=self.w)

    def typical(self) -> Floats:
        statistic = self.statistic()
        return (
            np.array([(statistic.low + statistic.high) / 2]) if isinstance(statistic, Averages) else super().typical()
        )

    def knows_noise(self) -> bool:
        return False  # values are smoothed over the steps

    def forecast(self, n: int) -> float | None:
        """Of a publication that takes the part of the window that the method means it to."""
        statistic, units, part, like = self.statistic(), units_of(self.epsilon), self.part, self.typical()
        if self._method.everyone:
            return math.sqrt(statistic.error(int(units * part), n, like))
        people = n * part
        if people < 1:
            return None
        return math.sqrt(statistic.error(units, people, like) + statistic.spread(like) / people * (1 - part))

    def assumes(self) -> str:
        return f"{self._method.decision.publishes}. {self.method}: {self._method.advice}"

    def influence(self) -> Influence | str:
        units = units_of(self.epsilon)
        spent = int(units * self.part) if self._method.everyone else units
        return self._influence(self.statistic().mechanism(spent))

    def influence_of(self) -> str:
        if self._method.decision.by_schedule:
            return "in every publication"
        sway = "forged reports also influence when there is one and how it is smoothed, which is not bounded here"
        return f"in one publication; {sway}"

    def answering(self) -> float:
        return 1.0 if self._method.everyone else self.part

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        return f"stream {self.method}, w={self.w}"

    def default_title(self) -> str:
        if isinstance(self.statistic(), Averages):
            return f"Of {self.field}: what is its mean?"
        return shares_title(self.field, self.setting.domain)

    def sentence(self) -> str:
        odds, window = odds_text(self.epsilon), span(self.w * self.setting.step_seconds)
        if self._method.everyone:
            step = every(self.setting.step_seconds)
            return f"Reports {step}. All reports of any {window} together are {odds}."
        return (
            f"At most one report in any {window}: devices take turns. A secret that the device keeps to itself decides "
            "when its turn comes; whoever sees the device answer knows that it was its turn. The report is "
            f"{odds}."
        )

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        shrinking = self._method.decision.shrinking
        if shrinking and not self._method.everyone:
            yield Finding("note", "method", shrinking)


@dataclass(frozen=True, kw_only=True)
class ClippedStream(ClippedQuestion, StreamQuestion):
    """The mean of a numeric field at every step, clipped where it errs least: any w steps cost epsilon."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of is not None:
            raise InvalidValue("of", self.of, 'nothing: range = "auto" is for means')

    @property
    def window(self) -> dict[str, Any]:
        return {"method": self.method, "w": self.w, **self.options()}

    @property
    def part(self) -> float:
        return super().part * (1 - self.search)

    def forecast(self, n: int) -> float | None:
        return StreamQuestion.forecast(self, n)  # whose part is without the search
