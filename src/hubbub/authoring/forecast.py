"""What a collection will tell: the expected errors of its questions, the size of reports, the yearly cost."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from hubbub.collection.document import Collection
from hubbub.collection.spending import cost_of, steps_a_year
from hubbub.core.event import UNITS_PER_EPSILON

DEVICES = (1_000, 10_000, 100_000, 1_000_000)
_SURE = 3.09  # standard deviations: one in 1,000 is further below


@dataclass(frozen=True)
class Forecast:
    """One question.

    Parameters
    ----------
    question, kind, mechanism
        Its name, its kind, and how a report that spends all of epsilon is made.
    errors
        For each number of devices, the expected standard error: of a share, or of the mean; None where no formula
        tells, nobody would be asked, or the release would be withheld.
    unit
        What the errors are in: "share", or the field's own unit.
    report_bytes
        The largest report on the wire.
    epsilon_a_year
        The most that a device spends on it in a year; of a memo, on one value, however long.
    note
        What the errors assume, and how many devices must answer.
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
        """The forecast as JSON."""
        return {**asdict(self), "errors": {str(n): error for n, error in self.errors.items()}}


def forecast(collection: Collection) -> list[Forecast]:
    """What to expect of each question."""
    return [_row(collection, name) for name in collection.questions]


def _row(collection: Collection, name: str) -> Forecast:
    question, setting = collection.questions[name], collection.setting(name)
    least = collection.minimum_batch / question.released_group(setting)
    return Forecast(
        question=name,
        kind=question.summary,
        mechanism=question.made_by(setting),
        errors={n: question.forecast(setting, n) if n >= least else None for n in DEVICES},
        unit=question.shape(setting).unit,
        report_bytes=collection.terms[name].report_bytes,
        epsilon_a_year=cost_of(collection, name).of(steps_a_year(collection)) / UNITS_PER_EPSILON,
        note="; ".join(filter(None, (question.assumes(setting), groups_need(collection, name)))),
    )


def groups_need(collection: Collection, name: str) -> str:
    """How many devices must answer a question that is asked in groups, so that its releases are not withheld; or "".

    Devices are in groups by chance. The number is such that a group is too small in less than 1 of 1,000 runs.
    """
    share = collection.questions[name].released_group(collection.setting(name))
    if share >= 1:
        return ""
    least, deviation = collection.minimum_batch, _SURE * math.sqrt(1 - share)
    group = ((deviation + math.sqrt(deviation**2 + 4 * least)) / 2) ** 2
    return (
        f"a number rests on one group, {100 * share:.3g}% of the devices, and is withheld below {least:,} reports: "
        f"{math.ceil(group / share):,} devices must answer a run"
    )
