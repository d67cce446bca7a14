"""What forged devices can do to the answers of a collection: how far they can move each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

from hubbub.authoring.finding import Finding
from hubbub.authoring.forecast import window_part
from hubbub.authoring.words import rounded_up
from hubbub.collection.asked import Words
from hubbub.collection.keyed import Keyed
from hubbub.collection.moving import Moves
from hubbub.collection.question import QuestionSpec
from hubbub.collection.spec import Collection
from hubbub.core.domain import Domain
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.influence import Influence
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.privacy.poisoning import FORGED, part_text, warns
from hubbub.protocols.window import METHODS, Statistic

__all__ = ["Poisoning", "moved_far", "poisoning"]


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
        """The same as JSON.

        Example:
            >>> Poisoning(0.01, 0.01, 0.03, 0.02, 3.2, "any share", "share", "every step").to_dict()["up"]
            0.03
        """
        return asdict(self)

    def text(self) -> str:
        """One plain sentence; distances are rounded up.

        Example:
            >>> print(Poisoning(0.01, 0.01, 0.0316, 0.0216, 3.2, "any share", "share", "every step").text())
            If 1% of the devices are forged, they can raise any share by up to 3.16 percentage points, and lower it by
            up to 2.16 (every step).
        """
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


def poisoning(question: QuestionSpec, domain: Domain, forged: float = FORGED) -> Poisoning:
    """How far the answers to a question can be moved, if that part of all devices is forged.

    A forged device sends whatever the format check accepts, in every step and to every ask. The numbers are exact for
    the estimate of one ask, over the worst truth: see `Influence`.

    Example:
        >>> from hubbub import Ordinal
        >>> spec = QuestionSpec(kind="histogram", field="theme", epsilon=1.0, mechanism="GRR")
        >>> round(poisoning(spec, Ordinal(128)).up, 3)  # 128 values, and nothing recorded
        0.755
    """
    if isinstance(forged, bool) or not isinstance(forged, int | float) or not 0 < forged < 1:
        raise InvalidValue("forged", forged, "a part of all devices, between 0 and 1")
    asked, units, share = question.question(domain), units_of(question.epsilon), window_part(question)
    answer, unit = "any share", "share"
    if asked.kind == "quantity":
        answer, unit = f"{'the' if asked.size == 1 else 'any'} mean of {question.field}", question.field
    influence = _influence(asked, int(units * share) if question.everyone else units)
    if isinstance(influence, str):
        return Poisoning(forged, forged, None, None, None, answer, unit, influence)
    answering = 1.0 if question.everyone else share  # of the honest; forged devices answer whoever is asked
    part = forged if answering == 1 else forged / (forged + (1 - forged) * answering)
    up, down = influence.shift(part)
    return Poisoning(forged, part, up, down, influence.weight, answer, unit, _note(question))


def moved_far(collection: Collection) -> Iterator[Finding]:
    """A mechanism that the author named, and that forged reports move much further than the one chosen otherwise.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, read_collection
        >>> list(moved_far(read_collection(EXAMPLE)))
        []
    """
    for name, question in collection.questions.items():
        if question.mechanism is None:
            continue
        domain, free = collection.fields[question.field], replace(question, mechanism=None)
        own, other = poisoning(question, domain).weight, poisoning(free, domain).weight
        if own is not None and other is not None and warns(own, other):
            yield Finding(
                "warning",
                f"questions.{name}.mechanism",
                f"one forged report counts for {own:,.0f} people with {question.mechanism}, and for {other:,.1f} with "
                f"{type(free.mechanism_for(domain)).__name__}, which is chosen where none is named",
            )


def _influence(asked: Statistic, units: int) -> Influence | str:
    """What one forged report can say of any answer, for every kind of question; or why that is not known."""
    if isinstance(asked, Words):
        return "candidates share bits, and are told apart by regression, which is no mean over reports"
    if isinstance(asked, Moves):
        return "a forger chooses the level that fewest devices tell of, and can send signs without enrolling"
    if isinstance(asked, Keyed):
        if asked.of == "conditional":
            return "the mean among holders is a ratio, and forged reports can bring what it is divided by near 0"
        return _keyed_influence(asked, asked.mechanism(units))
    influence = asked.mechanism(units).influence()
    return "the estimate is no mean over reports" if influence is None else influence


def _keyed_influence(asked: Keyed, mechanism: TernaryMechanism) -> Influence:
    """Of a key's share, or of c share + h mean, which is what people have of the key on average."""
    low, high = Fraction(asked.domain.low), Fraction(asked.domain.high)
    middle, half = (low + high) / 2, (high - low) / 2
    if asked.of == "frequency":
        middle, half, low, high = Fraction(1), Fraction(0), Fraction(0), Fraction(1)
    numbers = [
        (middle and middle * mechanism.stands_for(plus, minus, "frequency"))
        + (half and half * mechanism.stands_for(plus, minus, "mean"))
        for plus, minus in mechanism.supports()
    ]
    # Somebody without the key counts as 0.
    return Influence(min(numbers), max(numbers), min(low, Fraction(0)), max(high, Fraction(0)))


def _note(question: QuestionSpec) -> str:
    if question.kind != "stream":
        return "every step"
    if METHODS[str(question.method)].decide.__name__ in ("uniform", "sampling"):
        return "every publication"
    return "a publication; forged reports also sway when there is one and how it is smoothed, which is not bounded here"
