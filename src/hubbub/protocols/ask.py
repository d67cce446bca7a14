"""Asks: what the server publishes, and devices answer with one report each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import Event
from hubbub.core.spec import Json, integer, spec_id
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.cohort import EVERYONE, Arc
from hubbub.protocols.view import View, Whole


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What the server publishes, the same for every device.

    A device that is in the cohort, and whose ledger allows the cost, answers `mechanism.randomize(view(value))` with
    its value of that step.

    Parameters
    ----------
    mechanism
        The mechanism that makes the report.
    step
        The step whose value is asked for.
    view
        The function of the value that the mechanism is given.
    cohort
        The arc of the devices that are asked.
    standing
        Whether every device answers the same ask at every step, so that it is published only once.
    following
        The first ask of the next step, where it does not depend on the answer to this ask. It is not published: the
        server uses it to ask on time while it still waits for late answers.
    kept
        Whether the single reports are kept beside their sketch, so that a `Count` can read them later.
    """

    mechanism: ReportFormat
    step: int
    view: View = Whole()  # noqa: RUF009 - frozen
    cohort: Arc = EVERYONE
    standing: bool = False
    following: Ask | None = field(default=None, compare=False, repr=False)
    kept: bool = False

    def __post_init__(self) -> None:
        check_integer("step", self.step, 0)

    @cached_property
    def ask_id(self) -> str:
        """The hash of the whole ask."""
        return spec_id({**self.spec(), "mechanism": self.mechanism.spec_id})

    def event(self) -> Event:
        """What an answer spends, and at which step."""
        event = self.mechanism.event()
        return Event(event.mechanism, event.spec_id, event.spent, self.step)

    def spec(self) -> dict[str, Json]:
        """The ask as JSON."""
        return {
            "mechanism": self.mechanism.spec(),
            "step": self.step,
            "view": self.view.spec(),
            "cohort": self.cohort.spec(),
            "standing": self.standing,
            **({"kept": True} if self.kept else {}),
        }

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Ask:
        """Read an ask from JSON. The mechanism recomputes its epsilon from its own integers."""
        fields = {"mechanism", "step", "view", "cohort", "standing"}
        if not isinstance(spec, Mapping) or set(spec) - {"kept"} != fields:
            raise InvalidValue("ask", spec, f"exactly the fields {sorted(fields)}")
        arc = spec["cohort"]
        if not isinstance(arc, Mapping) or set(arc) != {"start", "length"}:
            raise InvalidValue("cohort", arc, "a start and a length")
        if not isinstance(spec["standing"], bool):
            raise InvalidValue("standing", spec["standing"], "true or false")
        if spec.get("kept", True) is not True:
            raise InvalidValue("kept", spec["kept"], "true, or left out")
        return Ask(
            mechanism=ReportFormat.from_spec(spec["mechanism"]),
            step=integer("step", spec["step"]),
            view=View.from_spec(spec["view"]),
            cohort=Arc(integer("start", arc["start"]), integer("length", arc["length"])),
            standing=spec["standing"],
            kept="kept" in spec,
        )
