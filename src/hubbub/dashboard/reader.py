"""What the pages read: collections, counters, and releases with their intervals. Nothing here can change anything."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from hubbub.collection import Collection
from hubbub.service.alarms import AlarmsBody
from hubbub.service.base.api import ShuffledBody
from hubbub.statistics.ratios import Ratios
from hubbub.statistics.selection import conditional_interval

if TYPE_CHECKING:
    from hubbub.dashboard.query_box import BoxQuery
    from hubbub.query.answer import QueryAnswer

LEVEL = 0.95
"""How often intervals hold the truth."""

Standing = Literal["clear", "zero", "unknown"]


class Value(NamedTuple):
    """One number of a release: the position and name of what it counts, the estimate and the ends of its interval."""

    code: int
    label: str
    value: float | None
    low: float | None
    high: float | None
    signed: bool = False
    """Whether it may be below zero: a quantity, not a share."""

    @property
    def reach(self) -> float | None:
        """The distance from the estimate to the farther end of its interval."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return max(self.value - self.low, self.high - self.value)

    def possible(self, least: float, most: float) -> Value:
        """The same, cut to what is possible."""
        ends = (None if end is None else min(max(end, least), most) for end in (self.value, self.low, self.high))
        value, low, high = ends
        return self._replace(value=value, low=low, high=high)

    @property
    def standing(self) -> Standing:
        """Whether it differs clearly from zero: its whole interval is above zero, or below where that is possible."""
        if self.value is None or self.low is None or self.high is None:
            return "unknown"
        return "clear" if self.low > 0 or (self.signed and self.high < 0) else "zero"


@dataclass(frozen=True)
class Values(Sequence[Value]):
    """The numbers of a release in the order of their codes. Each `Value` is made on access: there may be millions.

    Parameters
    ----------
    labels, value, variance
        A name, an estimate and its variance for each; None where it is not known.
    signed
        Whether they may be below zero.
    centre
        Around what their intervals lie, where that is not the values (see `hubbub.Estimate`).
    bounds
        The least and the most that is possible, to which they are cut.
    cut
        The threshold that an estimate had to exceed to be released (see `hubbub.statistics.selection`).
    ratios
        Of numbers by group, what they are ratios of.
    """

    labels: Sequence[str] = ()
    value: Sequence[float | None] = ()
    variance: Sequence[float | None] = ()
    signed: bool = False
    centre: Sequence[float | None] | None = None
    bounds: tuple[float, float] = (-math.inf, math.inf)
    cut: float = -math.inf
    ratios: Ratios | None = None

    @cached_property
    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of the intervals of ratios."""
        assert self.ratios is not None
        return self.ratios.interval(LEVEL)

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, code: int) -> Value: ...

    @overload
    def __getitem__(self, code: slice) -> list[Value]: ...

    def __getitem__(self, code: int | slice) -> Value | list[Value]:
        if isinstance(code, slice):
            return [self[place] for place in range(*code.indices(len(self)))]
        value, variance = self.value[code], self.variance[code]
        if self.ratios is not None:
            low, high = (float(end[code]) for end in self.ends)
            return Value(code, self.labels[code], value, low, high, self.signed).possible(*self.bounds)
        if value is None or variance is None:
            return Value(code, self.labels[code], value, None, None, self.signed).possible(*self.bounds)
        middle = value if self.centre is None else self.centre[code] or 0.0
        low, high = conditional_interval(middle, math.sqrt(max(variance, 0.0)), self.cut, LEVEL)
        low, high = min(value, low), max(value, high)
        return Value(code, self.labels[code], value, low, high, self.signed).possible(*self.bounds)


@dataclass(frozen=True)
class AnswerCard:
    """A release. It has no values if it is withheld.

    Parameters
    ----------
    question, step, time
        What was asked, which step it describes, and when it was made.
    n, population
        The number of reports it is made from, and the estimated number of devices.
    kind, bias
        "share" or "quantity"; see `hubbub.Estimate`.
    published, spent
        Whether it published a new estimate or carries on an earlier one; and the part of a window's budget it took.
    values
        In the order of their codes.
    withheld
        Why nobody may see it.
    lost
        For a stream of changes: how many reports were due, how many came, and how far the others may bias each value.
    smoothed
        Whether the values are smoothed over time, or corrected on average; the intervals do not rest on that.
    others
        Its other estimates by name, such as the quantiles of a distribution.
    stopped
        Why a study ended before its last round, if it has results nevertheless.
    version
        The version of the collection that asked.
    """

    question: str
    step: int
    time: float
    n: int
    values: Sequence[Value]
    kind: str = "share"
    bias: str = "none"
    published: bool = True
    population: float | None = None
    spent: float | None = None
    withheld: str | None = None
    lost: Mapping[str, Any] | None = None
    smoothed: bool = False
    others: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    stopped: str | None = None
    version: int = 1

    @staticmethod
    def of(stored: Mapping[str, Any], *, question: str, step: int, time: float, withheld: str | None) -> AnswerCard:
        """From what is stored of a release."""
        if withheld is None and not stored["value"] and "stopped" in stored:
            withheld = f"stopped: {stored['stopped']}"
        values = Values() if withheld is not None else _values(stored)
        named = {} if withheld is not None else stored.get("estimates", {})
        others = {name: _values(other) for name, other in named.items() if other.get("value")}
        plain = {name: stored[name] for name in ("n", "kind", "bias", "published", "population", "spent")}
        return AnswerCard(
            question=question,
            step=step,
            time=time,
            values=values,
            withheld=withheld,
            lost=stored.get("lost"),
            smoothed="centre" in stored and stored["bias"] != "consistent",
            others=others,
            stopped=stored.get("stopped"),
            **plain,
        )

    def possible(self, low: float | None = None, high: float | None = None) -> AnswerCard:
        """The same answer with values and intervals cut to what is possible: what people are shown.

        Of shares that is from 0 to 1, of other numbers from `low` to `high`, where these are known. The truth is there,
        so that a cut interval holds it whenever the whole one does. What is added up begins from the whole.
        """
        least, most = (0.0, 1.0) if self.kind == "share" else (-math.inf, math.inf)
        bounds = least if low is None else low, most if high is None else high
        if isinstance(self.values, Values):
            return replace(self, values=replace(self.values, bounds=bounds))
        return replace(self, values=tuple(value.possible(*bounds) for value in self.values))

    def ranked(self) -> list[Value]:
        """The values, largest first; those that do not differ clearly from zero come last."""
        return sorted(self.values, key=lambda value: (value.standing != "clear", -(value.value or 0.0), value.code))


def _values(stored: Mapping[str, Any]) -> Values:
    labels, signed = stored["labels"] or list(map(str, range(len(stored["value"])))), stored["kind"] != "share"
    cut = stored.get("cut")
    passed = -math.inf if cut is None else cut
    ratios = told_ratios(stored)
    return Values(labels, stored["value"], stored["variance"], signed, stored.get("centre"), cut=passed, ratios=ratios)


def told_ratios(stored: Mapping[str, Any]) -> Ratios | None:
    """What stored numbers are ratios of, where they are such."""
    if "ratio" not in stored:
        return None
    value, variance = (np.array(stored[name], dtype=np.float64) for name in ("value", "variance"))
    return Ratios.from_parts(stored["ratio"], value, variance)


@dataclass(frozen=True)
class Interval:
    """How many reports were accepted and rejected in an interval of time."""

    start: float
    seconds: float
    accepted: int
    rejected: int


@dataclass(frozen=True)
class OpenAskCount:
    """An ask that is open: the share of devices that is asked, the reports so far, and when it opens and closes."""

    question: str
    step: int
    share: float
    reports: int
    opens: float
    closes: float


@dataclass(frozen=True)
class Ingest:
    """What became of a collection's reports.

    Parameters
    ----------
    outcomes
        The number of reports so far by outcome: "accepted", "duplicate", or why they were rejected.
    nobodys
        The same for reports that name no collection that is served.
    rates
        The last while, oldest first, without gaps; it ends now.
    asks
        What is open.
    """

    outcomes: Mapping[str, int]
    rates: Sequence[Interval] = ()
    asks: Sequence[OpenAskCount] = ()
    nobodys: Mapping[str, int] = field(default_factory=dict)


class Reader(Protocol):
    """The source of what the pages show."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def collections(self) -> Sequence[Collection]:
        """What is served."""
        ...

    def releases(self, collection: Collection, question: str, limit: int) -> list[AnswerCard]:
        """The latest releases of a question of a version, oldest first, and of those versions that it goes on from."""
        ...

    def version(self, collection: str, question: str, version: int) -> Collection | None:
        """The latest version through which a question of an earlier version went on."""
        ...

    def ended(self, collection: str) -> Mapping[str, Sequence[int]]:
        """The earlier versions, by question, whose releases the served version does not continue."""
        ...

    def ingest(self, collection: str) -> Ingest:
        """What became of a collection's reports."""
        ...

    def query(self, collection: str, question: str, query: BoxQuery) -> QueryAnswer | str:
        """The answer of a query of a table, or why there is none."""
        ...

    def alarms(self, collection: str) -> AlarmsBody:
        """The alarms of a collection, as the API answers."""
        ...

    def shuffled(self, collection: str) -> ShuffledBody:
        """The shuffled batches of a collection, as the API answers."""
        ...

    def notice(self) -> str | None:
        """What every page says first: that the clock is in doubt, or that a question failed; else None."""
        ...

    def listen(self, collection: str) -> AsyncIterator[bytes]:
        """Server-sent events, one whenever something has changed."""
        ...
