"""What a collection will tell: expected errors, sizes, yearly costs; and how far forged devices can move it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hubbub.collection.document import Collection
from hubbub.collection.setting import Finding, Setting
from hubbub.collection.spending import cost_of, steps_a_year
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.planning.predict import FORGED, part_text, warns
from hubbub.questions.base import Question
from hubbub.questions.words import rounded_up

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


@dataclass(frozen=True)
class Poisoning:
    """How far forged devices can move any one answer of a question.

    Parameters
    ----------
    forged
        The part of all devices that is forged.
    part
        The part of the reports of one answer that they then send: more, where honest devices take turns and forged
        ones do not.
    up, down
        How far they can raise an answer, and lower it; None where nothing is known: `note` says why.
    weight
        How many people one forged report counts for.
    answer, unit
        What is moved, in words; and what `up` and `down` are in: "share", or the field's own unit.
    note
        What they are of, or why there are none.
    """

    forged: float
    part: float
    up: float | None
    down: float | None
    weight: float | None
    answer: str
    unit: str
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        return asdict(self)

    def text(self) -> str:
        """One plain sentence; distances are rounded up."""
        forged = f"If {part_text(self.forged)} of the devices are forged"
        if self.up is None or self.down is None:
            return f"{forged}, how far they can move the answers is not bounded here: {self.note}."
        turns = "" if self.part == self.forged else f" ({part_text(self.part)} of the reports)"
        if self.unit == "share":
            up, down = f"{rounded_up(100 * self.up)} percentage points", rounded_up(100 * self.down)
        else:
            up, down = rounded_up(self.up), rounded_up(self.down)
        moved = f"raise {self.answer} by up to {up}, and lower it by up to {down}"
        return f"{forged}{turns}, they can {moved} ({self.note})."


def poisoning(question: Question, setting: Setting, forged: float = FORGED) -> Poisoning:
    """How far the answers to a question can be moved, if that part of all devices is forged.

    A forged device sends whatever the format check accepts, in every step and to every ask. The numbers are exact for
    the estimate of one ask, over the worst truth: see `Influence`.
    """
    if isinstance(forged, bool) or not isinstance(forged, int | float) or not 0 < forged < 1:
        raise InvalidValue("forged", forged, "a part of all devices, between 0 and 1")
    influence, answering = question.influence(setting), question.answering(setting)
    answer, unit = question.moved_answer(setting)
    if isinstance(influence, str):
        return Poisoning(forged, forged, None, None, None, answer, unit, influence)
    part = forged if answering == 1 else forged / (forged + (1 - forged) * answering)
    up, down = influence.shift(part)
    return Poisoning(forged, part, up, down, influence.weight, answer, unit, question.influence_of(setting))


def moved_far(collection: Collection) -> Iterator[Finding]:
    """A mechanism that the author named, and that forged reports move much further than the one chosen otherwise."""
    for name, question in collection.questions.items():
        setting, free = collection.setting(name), question.chosen_freely()
        if free is None:
            continue
        own, other = poisoning(question, setting).weight, poisoning(free, setting).weight
        if own is not None and other is not None and warns(own, other):
            yield Finding(
                "warning",
                f"questions.{name}.mechanism",
                f"one forged report counts for {own:,.0f} people with {question.made_by(setting)}, and for "
                f"{other:,.1f} with {free.made_by(setting)}, which is chosen where none is named",
            )
