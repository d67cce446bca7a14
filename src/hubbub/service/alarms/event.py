"""The event that is stored and sent when an alarm is raised or cleared."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hubbub.core.spec import Json


@dataclass(frozen=True, kw_only=True)
class AlarmEvent:
    """An alarm was raised, or cleared.

    Parameters
    ----------
    number
        Counts the events of a collection, from 1 on, through restarts and versions. A receiver knows by the number
        whether it has seen an event.
    collection, alarm, category, question
        The names of the collection, of the alarm, of the watched category (empty where the alarm watches one quantity
        only) and of the question.
    title
        What is watched, in words.
    state
        "raised" or "cleared".
    direction
        The side of the threshold, or of the baseline, on which the quantity is.
    step, at
        The step whose estimate decided it, and when that step began (Unix seconds).
    since
        The step in which the change is thought to have begun: at or before `step`.
    value, low, high
        The step's own unbiased estimate of the quantity, and its 95% interval, neither of them cut to what is possible.
    threshold
        The number given as `above` or `below`; None for an alarm on a change from a baseline.
    baseline
        The baseline that was learnt, for an alarm on a change; otherwise None.
    """

    number: int
    collection: str
    alarm: str
    category: str
    question: str
    title: str
    state: Literal["raised", "cleared"]
    direction: Literal["above", "below"]
    step: int
    at: float
    since: int
    value: float
    low: float
    high: float
    threshold: float | None
    baseline: float | None

    def to_json(self) -> dict[str, Json]:
        """The event as JSON."""
        return asdict(self)

    @staticmethod
    def from_json(fields: dict[str, Any]) -> AlarmEvent:
        """Read an event back."""
        return AlarmEvent(**fields)
