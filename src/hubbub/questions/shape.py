"""The shapes of answers: what a page has to know to draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from hubbub.core.spec import Json

Form = Literal["shares", "distribution", "mean", "means", "groups", "ranking", "table", "vector", "marginals"]
"""Shares of names; of values in an order; a mean; one for each name; numbers by group; the most common; a table; the
entries of a vector, which have no names; the joint distributions of several fields."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a page has to know to draw the answers to a question.

    Parameters
    ----------
    form
        Which drawing.
    size
        How many numbers an answer has.
    unit
        What they are in: "share", or the name of what was measured.
    low, high
        The range of a mean.
    over_time
        Whether what matters is how the answers move, so that they are drawn over time.
    adds_up
        Whether the answers of several steps can be taken together: everyone is asked anew in each.
    everyone
        Whether every device answers every ask; otherwise they take turns.
    window
        Over how many steps the `spent` of releases adds up to a whole; 0 where every step spends the same.
    horizon
        How many steps a horizon has, whose ranges of steps can be asked; 0 where there is none.
    groups, values
        Of numbers by group: the groups of each field that makes some, the main one first, and the names of the numbers
        that are told of each group. An answer has all numbers of the first group, then all of the second.
    columns
        Of a table: what can be asked of it by SQL, each column with its values in words.
    """

    form: Form
    size: int
    unit: str = "share"
    low: float | None = None
    high: float | None = None
    over_time: bool = False
    adds_up: bool = False
    everyone: bool = True
    window: int = 0
    horizon: int = 0
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    def spec(self) -> dict[str, Json]:
        groups: dict[str, Json] = {name: list(labels) for name, labels in self.groups.items()}
        return {**asdict(self), "groups": groups, "values": list(self.values), "columns": dict(self.columns)}
