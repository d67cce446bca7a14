"""What a collection will tell: the expected errors of its questions, the size of reports, the yearly cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hubbub.collection.document import Collection
from hubbub.collection.spending import cost_of, steps_a_year
from hubbub.core.event import UNITS_PER_EPSILON

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


def _row(collection: Collection, name: str) -> Forecast:
    question, setting = collection.questions[name], collection.setting(name)
    return Forecast(
        question=name,
        kind=question.summary,
        mechanism=question.made_by(setting),
        errors={n: question.forecast(setting, n) for n in DEVICES},
        unit=question.shape(setting).unit,
        report_bytes=collection.terms[name].report_bytes,
        epsilon_a_year=cost_of(collection, name).of(steps_a_year(collection)) / UNITS_PER_EPSILON,
        note=question.assumes(setting),
    )
