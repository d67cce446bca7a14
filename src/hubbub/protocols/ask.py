"""Asks and releases: what the server says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import Event
from hubbub.core.spec import Json, integer, spec_id
from hubbub.mechanisms.base import Reporting
from hubbub.protocols.changes import Changes as Changes  # a view that an ask may name
from hubbub.protocols.cohort import EVERYONE, Arc
from hubbub.protocols.view import View, Whole

__all__ = ["Ask", "Lost", "Release"]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What the server publishes: the same for everyone.

    A device on the arc, whose ledger allows it, answers `mechanism.randomize(view(value))` for its value of that step.

    Parameters
    ----------
    mechanism
        How to answer.
    step
        Which step's value is meant.
    view
        What of it.
    cohort
        Who is asked.
    standing
        Whether everyone answers it at every step, so that it is published once and devices need no further word.
    following
        The first ask of the next step, where it is known whatever the answer to this one. Nobody is told: it lets a
        server ask on time while it still waits for late answers.

    Example:
        >>> from hubbub import GRR
        >>> ask = Ask(mechanism=GRR(epsilon=1.0, domain=2), step=3, cohort=Arc(0, 100))
        >>> Ask.from_spec(ask.spec()) == ask
        True
    """

    mechanism: Reporting
    step: int
    view: View = Whole()  # noqa: RUF009 - frozen
    cohort: Arc = EVERYONE
    standing: bool = False
    following: Ask | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.step, bool) or not isinstance(self.step, int) or self.step < 0:
            raise InvalidValue("step", self.step, "an integer of at least 0")

    @cached_property
    def ask_id(self) -> str:
        """The hash of the whole ask: an answer names it."""
        return spec_id({**self.spec(), "mechanism": self.mechanism.spec_id})

    def event(self) -> Event:
        """What answering spends.

        Example:
            >>> from hubbub import GRR
            >>> Ask(mechanism=GRR(epsilon=1.0, domain=2), step=3).event().step
            3
        """
        spent = self.mechanism.event()
        return Event(spent.mechanism, spent.spec_id, spent.spent, self.step)

    def spec(self) -> dict[str, Json]:
        """The ask as JSON."""
        return {
            "mechanism": self.mechanism.spec(),
            "step": self.step,
            "view": self.view.spec(),
            "cohort": self.cohort.spec(),
            "standing": self.standing,
        }

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Ask:
        """Read an ask back; its mechanism recomputes what it spends."""
        wanted = {"mechanism", "step", "view", "cohort", "standing"}
        if not isinstance(spec, Mapping) or set(spec) != wanted:
            raise InvalidValue("ask", spec, f"exactly the fields {sorted(wanted)}")
        arc = spec["cohort"]
        if not isinstance(arc, Mapping) or set(arc) != {"start", "length"}:
            raise InvalidValue("cohort", arc, "a start and a length")
        if not isinstance(spec["standing"], bool):
            raise InvalidValue("standing", spec["standing"], "true or false")
        return Ask(
            mechanism=Reporting.from_spec(spec["mechanism"]),
            step=integer("step", spec["step"]),
            view=View.from_spec(spec["view"]),
            cohort=Arc(integer("start", arc["start"]), integer("length", arc["length"])),
            standing=spec["standing"],
        )


class Lost(NamedTuple):
    """Reports of a standing stream that were due at a step, and how many of them came in time.

    `bias` is how far those that did not come, over all steps so far, are thought to draw each number of the release: as
    if what they would have said were like what others said; NaN where none came.
    """

    due: int
    came: int
    bias: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Release:
    """What the server says of a step.

    Parameters
    ----------
    step
        Which step it describes.
    estimate
        The population's shares or mean at that step, with their variance: of the randomisation, of having asked a part
        of the population, and, where an older release stands in, of what has changed since.
    published
        Whether fresh reports were asked for it; otherwise an earlier release stands in (approximation).
    spent
        The part of what a window may spend that the asks of this step took.
    n
        The estimated size of the population.
    lost
        What did not come, where devices that enrolled are awaited.

    Example:
        >>> Release(step=1, estimate=Estimate([0.5], [0.01], 10), published=True, spent=0.05, n=100.0).published
        True
    """

    step: int
    estimate: Estimate
    published: bool
    spent: float
    n: float
    lost: Lost | None = None
