"""What a collection will tell: expected errors, sizes, yearly costs; and how far forged devices can move it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hubbub.collection.safety import Finding
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.planning.predict import FORGED, part_text, warns
from hubbub.questions.base import Question
from hubbub.questions.collection import Collection
from hubbub.questions.spending import cost_of, steps_a_year, total_of
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
    least
        For each of these numbers, an error below which no mechanism of that epsilon is for every crowd, where one is
        proved.
    unit
        What the errors are in: "share", or the field's own unit.
    epsilon_a_year
        The most that a device spends on it in a year; of a memo, on one value, however long.
    note
        What the errors assume, and how many devices must answer.
    """

    question: str
    kind: str
    mechanism: str
    errors: dict[int, float | None]
    least: dict[int, float | None]
    unit: str
    report_bytes: int
    epsilon_a_year: float
    note: str

    def to_dict(self) -> dict[str, object]:
        """The forecast as JSON."""
        by_devices = {"errors": self.errors, "least": self.least}
        return asdict(self) | {
            name: {str(n): error for n, error in errors.items()} for name, errors in by_devices.items()
        }


def forecast(collection: Collection) -> list[Forecast]:
    """What to expect of each question."""
    return [_row(collection, name) for name in collection.questions]


def _row(collection: Collection, name: str) -> Forecast:
    question = collection.questions[name]
    groups = question.setting.groups
    fewest = collection.minimum_batch / question.released_group() * groups
    released = [n for n in DEVICES if n >= fewest]
    return Forecast(
        question=name,
        kind=question.summary,
        mechanism=question.made_by(),
        errors={n: question.expected_error(n) if n in released else None for n in DEVICES},
        least={n: question.least_error(n // groups) if n in released else None for n in DEVICES},
        unit=question.shape().unit,
        report_bytes=collection.terms[name].report_bytes,
        epsilon_a_year=cost_of(collection, name).of(steps_a_year(collection)) / UNITS_PER_EPSILON,
        note="; ".join(filter(None, (question.assumes(), groups_need(collection, name)))),
    )


def groups_need(collection: Collection, name: str) -> str:
    """How many devices must answer a question that is asked in groups, so that its releases are not withheld; or "".

    Devices are in groups by chance. The number is such that a group is too small in less than 1 of 1,000 runs.
    """
    question = collection.questions[name]
    share = question.released_group() / question.setting.groups
    when = "a step" if collection.terms[name].study is None else "a run"
    if share >= 1:
        return ""
    least, deviation = collection.minimum_batch, _SURE * math.sqrt(1 - share)
    group = ((deviation + math.sqrt(deviation**2 + 4 * least)) / 2) ** 2
    return (
        f"a number rests on one group, {100 * share:.3g}% of the devices, and is withheld below {least:,} reports: "
        f"{math.ceil(group / share):,} devices must answer {when}"
    )


@dataclass(frozen=True)
class Divided:
    """The expected errors of one question in two collections that cost a device the same in a step.

    `people`, `epsilon`: for each number of devices, the expected standard error if devices answer one question each,
    and if all devices answer all questions with a part of epsilon.
    """

    question: str
    unit: str
    people: dict[int, float | None]
    epsilon: dict[int, float | None]

    def better(self, n: int) -> float | None:
        """The error of dividing the people as a part of that of dividing epsilon; None where one is not known."""
        people, epsilon = self.people[n], self.epsilon[n]
        return None if not people or not epsilon else people / epsilon

    def to_dict(self) -> dict[str, object]:
        """The same as JSON."""
        errors = {name: {str(n): error for n, error in getattr(self, name).items()} for name in ("people", "epsilon")}
        return {"question": self.question, "unit": self.unit, **errors}


def people_or_epsilon(collection: Collection, sizes: Sequence[int] = DEVICES) -> list[Divided]:
    """What becomes of the errors if the other is divided; empty where only one of the two is possible.

    A device then spends as much in a step: on one question as before on all, or on all as before on one.

    References
    ----------
    T. Wang, 2021, section 3.4.2.
    """
    costs = {name: cost_of(collection, name).of(1) for name in collection.questions}
    if len(costs) < 2 or not all(question.in_groups for question in collection.questions.values()):
        return []
    most, total = total_of(collection, 1), sum(costs.values())
    parts = {name: most / (total if collection.divide else cost) for name, cost in costs.items()}
    scaled = {name: _scaled(question, parts[name]) for name, question in collection.questions.items()}
    try:
        other = replace(collection, questions=scaled, divide=not collection.divide)
    except HubbubError:
        return []  # with more epsilon, or with less
    ways = (collection, other) if collection.divide else (other, collection)
    rows = []
    for name, question in collection.questions.items():
        if question.forecast(max(sizes)) is None:
            continue
        people, epsilon = ({n: way.questions[name].expected_error(n) for n in sizes} for way in ways)
        rows.append(Divided(name, question.shape().unit, people, epsilon))
    return rows


def _scaled(question: Question, part: float) -> Question:
    """The same question for a part of its epsilon, or for more."""
    limits: dict[str, Any] = {key: epsilon * part for key, epsilon in question.limits().items()}
    return replace(question, **limits)


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

    def to_dict(self) -> dict[str, object]:
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


def poisoning(question: Question, forged: float = FORGED) -> Poisoning:
    """How far the answers to a question can be moved, if that part of all devices is forged.

    A forged device sends whatever the format check accepts, in every step and to every ask. The numbers are exact for
    the estimate of one ask, over the worst truth: see `Influence`.
    """
    if isinstance(forged, bool) or not isinstance(forged, int | float) or not 0 < forged < 1:
        raise InvalidValue("forged", forged, "a part of all devices, between 0 and 1")
    influence = question.influence()
    answer, unit = question.moved_answer()
    if isinstance(influence, str):
        return Poisoning(forged, forged, None, None, None, answer, unit, influence)
    part = question.forged_part(forged)
    up, down = influence.shift(part)
    return Poisoning(forged, part, up, down, influence.weight, answer, unit, question.influence_of())


def moved_far(collection: Collection) -> Iterator[Finding]:
    """A mechanism that the author named, and that forged reports move much further than the one chosen otherwise."""
    for name, question in collection.questions.items():
        free = question.chosen_freely()
        if free is None:
            continue
        own, other = poisoning(question).weight, poisoning(free).weight
        if own is not None and other is not None and warns(own, other):
            yield Finding(
                "warning",
                f"questions.{name}.mechanism",
                f"one forged report counts for {own:,.0f} people with {question.made_by()}, and for "
                f"{other:,.1f} with {free.made_by()}, which is chosen where none is named",
            )
