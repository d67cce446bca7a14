"""Streams: shares or a mean step by step, for one epsilon in any w consecutive steps (LDP-IDS)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.setting import Finding, Setting
from hubbub.collection.spending import Cost
from hubbub.collection.terms import Terms
from hubbub.collection.time import every, span
from hubbub.core.domain import Categorical, Numeric
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.ledger.promise import Promise
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.driver import Protocol
from hubbub.protocols.memory import Memory
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.window import METHODS, Method, epsilons, window_stream
from hubbub.questions.base import Example, Shape, shares_shape
from hubbub.questions.mean import Averages, averages, mean_shape
from hubbub.questions.shares import Shares, shares_labels, shares_read, shares_title
from hubbub.questions.statistic import StatisticQuestion
from hubbub.questions.words import odds_text
from hubbub.statistics.influence import Influence

MOST_W = 10**6


@dataclass(frozen=True, kw_only=True)
class StreamQuestion(StatisticQuestion):
    """The shares of a field's values, or a numeric field's mean, at every step: any w steps cost epsilon.

    Parameters
    ----------
    method, w
        A name of `hubbub.protocols.window.METHODS`, and the length of its window.
    of
        "cells" asks for the shares of a numeric field's cells instead of its mean; "size" for the size of a set.

    Example:
        >>> from hubbub import Ordinal
        >>> question = StreamQuestion(field="age", epsilon=1.0, method="LPU", w=10)
        >>> round(question.forecast(Setting("ages", {"age": Ordinal(2)}, 3600), 100_000), 4)
        0.0129
    """

    kind: ClassVar[str] = "stream"
    method: str
    w: int
    of: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in METHODS:
            raise InvalidValue("method", self.method, f"one of {', '.join(METHODS)}")
        if not 1 <= self.w <= MOST_W:
            raise InvalidValue("w", self.w, f"an integer from 1 to {MOST_W}")

    @property
    def _method(self) -> Method:
        return METHODS[self.method]

    @classmethod
    def examples(cls) -> Iterator[Example]:
        theme = {"theme": Categorical(["light", "dark"])}
        yield cls(field="theme", epsilon=1.0, method="LPU", w=2), theme
        yield cls(field="theme", epsilon=1.0, method="LBU", w=2), theme
        yield cls(field="theme", epsilon=1.0, method="LBA", w=2), theme
        yield cls(field="seconds", epsilon=1.0, method="LPU", w=2), {"seconds": Numeric(0, 20, cells=4)}

    def statistic(self, setting: Setting) -> Statistic:
        if isinstance(setting.domain, Numeric) and self.of is None:
            return averages(setting.domain, self.field, self.mechanism)
        codes, view = shares_read(setting.domain, self.kind, self.of)
        return Shares(codes, oracle=self.mechanism, view=view)

    def mechanisms(self, setting: Setting) -> tuple[ReportFormat, ...]:
        """The mechanism at each epsilon that the method can ask for, except where there is none for that epsilon."""
        statistic, mechanisms = self.statistic(setting), []
        for units in epsilons(self.method, epsilon=self.epsilon, w=self.w):
            try:
                mechanisms.append(statistic.mechanism(units))
            except InvalidValue:
                continue
        return tuple(mechanisms) or (self.mechanism_for(setting),)

    def terms(self, setting: Setting) -> Terms:
        return replace(super().terms(setting), rounds=self._method.decision.rounds)

    def promise(self, setting: Setting, steps: int = 1, interval: int | None = None) -> Promise:
        return super().promise(setting, self.w)

    def cost(self, setting: Setting) -> Cost:
        """Of w steps epsilon, all of it perhaps in one of them; dividing the budget evenly, a w-th in every step."""
        total = units_of(self.epsilon)
        even = self._method.everyone and self._method.decision.even
        return Cost(total // self.w, 1) if even else Cost(total, self.w)

    def protocol(self, setting: Setting, memory: Memory | None = None, *, first: int = 0) -> Protocol:
        return window_stream(self.method, self.statistic(setting), epsilon=self.epsilon, w=self.w, memory=memory)

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
        return self._method.decision.takes(self.w)

    def labels(self, setting: Setting) -> tuple[str, ...] | None:
        averages = isinstance(self.statistic(setting), Averages)
        return (self.field,) if averages else shares_labels(setting.domain)

    def shape(self, setting: Setting) -> Shape:
        statistic, everyone = self.statistic(setting), self._method.everyone
        if isinstance(statistic, Averages):
            return mean_shape(self.field, statistic, everyone=everyone, window=self.w)
        return shares_shape(setting.domain, statistic.size, over_time=True, everyone=everyone, window=self.w)

    def typical(self, setting: Setting) -> NDArray[np.float64]:
        statistic = self.statistic(setting)
        return (
            np.array([(statistic.low + statistic.high) / 2])
            if isinstance(statistic, Averages)
            else super().typical(setting)
        )

    def forecast(self, setting: Setting, n: int) -> float | None:
        """Of a publication that takes the part of the window that the method means it to."""
        statistic, units, part, like = self.statistic(setting), units_of(self.epsilon), self.part, self.typical(setting)
        if self._method.everyone:
            return math.sqrt(statistic.error(int(units * part), n, like))
        people = n * part
        if people < 1:
            return None
        return math.sqrt(statistic.error(units, people, like) + statistic.spread(like) / people * (1 - part))

    def assumes(self, setting: Setting) -> str:
        return f"{self._method.decision.publishes}. {self.method}: {self._method.advice}"

    def influence(self, setting: Setting) -> Influence | str:
        units = units_of(self.epsilon)
        spent = int(units * self.part) if self._method.everyone else units
        return self._influence(self.statistic(setting).mechanism(spent))

    def influence_of(self, setting: Setting) -> str:
        if self._method.decision.by_schedule:
            return "in every publication"
        sway = "forged reports also influence when there is one and how it is smoothed, which is not bounded here"
        return f"in one publication; {sway}"

    def answering(self, setting: Setting) -> float:
        return 1.0 if self._method.everyone else self.part

    # -- words ------------------------------------------------------------------------------------------------

    @property
    def summary(self) -> str:
        return f"stream {self.method}, w={self.w}"

    def default_title(self, setting: Setting) -> str:
        if isinstance(self.statistic(setting), Averages):
            return f"Of {self.field}: what is its mean?"
        return shares_title(self.field, setting.domain)

    def sentence(self, setting: Setting) -> str:
        odds, window = odds_text(self.epsilon), span(self.w * setting.step_seconds)
        if self._method.everyone:
            step = every(setting.step_seconds)
            return f"Reports {step}. All reports of any {window} together are {odds}."
        return (
            f"At most one report in any {window}: devices take turns. A secret that the device keeps to itself decides "
            "when its turn comes; whoever sees the device answer knows that it was its turn. The report is "
            f"{odds}."
        )

    def findings(self, setting: Setting) -> Iterator[Finding]:
        shrinking = self._method.decision.shrinking
        if shrinking and not self._method.everyone:
            yield Finding("note", "method", shrinking)
