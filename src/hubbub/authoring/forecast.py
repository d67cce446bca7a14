"""What a collection will tell: the expected errors of its questions, the size of reports, the yearly cost."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hubbub.collection.asked import Words
from hubbub.collection.frame import largest_report
from hubbub.collection.keyed import Keyed
from hubbub.collection.moving import Moves
from hubbub.collection.question import QuestionSpec
from hubbub.collection.spec import Collection
from hubbub.collection.spending import cost_of, steps_a_year
from hubbub.core.domain import Domain, Numeric
from hubbub.core.event import UNITS_PER_EPSILON, units_of
from hubbub.protocols.window import METHODS, Statistic
from hubbub.protocols.window.advice import advice

__all__ = ["DEVICES", "Forecast", "forecast", "standard_error"]

DEVICES = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Forecast:
    """One question.

    Parameters
    ----------
    question, kind, mechanism
        Its name, its kind, and how a report that spends all of epsilon is made.
    errors
        For each number of devices, the expected standard error: of a share, or of the mean; None where no formula
        tells, or nobody would be asked.
    unit
        What the errors are in: "share", or the field's own unit.
    report_bytes
        The largest report on the wire.
    epsilon_a_year
        The most that a device spends on it in a year; of a memo, on one value, however long.
    note
        What the errors assume.
    """

    question: str
    kind: str
    mechanism: str
    errors: dict[int, float | None]
    unit: str
    report_bytes: int
    epsilon_a_year: float
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The forecast as JSON.

        Example:
            >>> Forecast("q", "mean", "Hybrid", {1000: 0.5}, "age", 92, 365.0, "every step").to_dict()["errors"]
            {'1000': 0.5}
        """
        return {**asdict(self), "errors": {str(n): error for n, error in self.errors.items()}}


def forecast(collection: Collection) -> list[Forecast]:
    """What to expect of each question.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> (row,) = forecast(load_collection(EXAMPLE))
        >>> row.mechanism, round(row.errors[10_000], 4), row.epsilon_a_year
        ('GRR', 0.0121, 8760.0)
    """
    return [_row(collection, name) for name in collection.questions]


def standard_error(question: QuestionSpec, domain: Domain, n: int) -> float | None:
    """The expected standard error of a fresh answer if n devices take part, over all values alike.

    Of a stream, that of a publication which takes the part of the window that the method means it to (`window_part`).

    Example:
        >>> from hubbub import Ordinal
        >>> spec = QuestionSpec(kind="stream", field="age", epsilon=1.0, method="LPU", w=10)
        >>> round(standard_error(spec, Ordinal(2), 100_000), 4)
        0.0129
    """
    asked, units = question.question(domain), units_of(question.epsilon)
    if isinstance(asked, Words):
        return None
    like = _like(asked, domain)
    part = window_part(question)
    if question.everyone:
        variance = asked.error(int(units * part), n, like)
    else:
        people = n * part
        if people < 1:
            return None
        variance = asked.error(units, people, like) + asked.spread(like) / people * (1 - part)
    return math.sqrt(variance)


def window_part(question: QuestionSpec) -> float:
    """The part of its window that a stream's publication takes.

    Example:
        >>> window_part(QuestionSpec(kind="stream", field="age", epsilon=1.0, method="LPA", w=10))
        0.05
    """
    if question.kind != "stream":
        return 1.0
    assert question.w is not None
    often = max(1, question.w // 4)
    parts = {
        "uniform": 1 / question.w,
        "sampling": 1.0,
        "distribution": 1 / 4,
        "absorption": 1 / (2 * question.w),
        "dsat": 1 / (2 * often),
        "rescue": 1 / 10,
        "fast": 1 / often,
        "pegasus": 4 / (5 * question.w),
    }
    return parts[METHODS[str(question.method)].decide.__name__]


_NOTES = {
    "uniform": "every step, before filtering",
    "sampling": "one step in w; between, the last release stands in",
    "distribution": "the first publication of a window; each further one has half of what is left",
    "absorption": "a publication right after another; better the longer nothing changed",
    "dsat": "a publication; at most a quarter of the steps have one",
    "rescue": "a sample, before filtering",
    "fast": "a sample, before filtering; a quarter of the steps have one",
    "pegasus": "one step; better while nothing changes",
}


def _row(collection: Collection, name: str) -> Forecast:
    question = collection.questions[name]
    domain = collection.fields[question.field]
    mechanism, cost = question.mechanism_for(domain), cost_of(collection, name)
    asked = question.question(domain)
    note = {"memo": "every step, new or not", "stream": ""}.get(question.kind, "every step")
    if question.kind == "stream":
        method = str(question.method)
        note = f"{_NOTES[METHODS[method].decide.__name__]}. {method}: {advice(method)}"
    if isinstance(asked, Keyed):
        note = f"every step, if all hold {asked.sparsity} keys, and all keys are held alike"
    if isinstance(asked, Moves):
        note = "a step on average, if all enrol at the start of a horizon and use all their changes"
    if isinstance(asked, Words):
        note = "no formula: candidates share bits, and are told apart by regression"
    return Forecast(
        question=name,
        kind=_kind(question),
        mechanism=type(mechanism).__name__,
        errors={n: standard_error(question, domain, n) for n in DEVICES},
        unit=question.field if asked.kind == "quantity" else "share",
        report_bytes=largest_report(question, domain),
        epsilon_a_year=cost.of(steps_a_year(collection)) / UNITS_PER_EPSILON,
        note=note,
    )


def _kind(question: QuestionSpec) -> str:
    if question.kind == "changes":
        return f"changes, {question.steps} steps"
    return question.kind if question.method is None else f"{question.kind} {question.method}, w={question.w}"


def _like(asked: Statistic, domain: Domain) -> np.ndarray[Any, Any]:
    """A truth to expect: all values alike, or the middle of the range."""
    if asked.size == 1 and isinstance(domain, Numeric):
        return np.array([(domain.low + domain.high) / 2])
    return np.full(asked.size, 1 / asked.size)
