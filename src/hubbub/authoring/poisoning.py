"""What forged devices can do to the answers of a collection: how far they can move each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hubbub.collection.document import Collection
from hubbub.collection.finding import Finding
from hubbub.collection.setting import Setting
from hubbub.core.errors import InvalidValue
from hubbub.privacy.poisoning import FORGED, part_text, warns
from hubbub.questions.base import Question
from hubbub.questions.words import rounded_up


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
