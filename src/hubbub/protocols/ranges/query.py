"""Queries of a table: the number of people in a box, or the sum of a public measure over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ranges.dimension import Dimension, Selection


@dataclass(frozen=True)
class RangeQuery:
    """How many people are in a box, or the sum of a public measure over them.

    Parameters
    ----------
    box
        For each dimension: a first and a last value, a set of values, or None for all values.
    measure
        The name of the measure that is added up; None counts people.
    """

    box: tuple[Selection, ...]
    measure: str | None = None

    def __init__(self, box: Sequence[Sequence[int] | Iterable[int] | None], measure: str | None = None) -> None:
        object.__setattr__(self, "box", tuple(_selection(values) for values in box))
        object.__setattr__(self, "measure", measure)

    def check(self, dimensions: Sequence[Dimension]) -> None:
        """Refuse a box that does not fit the dimensions."""
        if len(self.box) != len(dimensions):
            raise InvalidValue("box", self.box, f"{len(dimensions)} entries, one for each dimension")
        for dimension, selection in zip(dimensions, self.box, strict=True):
            dimension.runs(selection)


def _selection(values: Sequence[int] | Iterable[int] | None) -> Selection:
    if values is None:
        return None
    if isinstance(values, set | frozenset):
        return frozenset(int(value) for value in values)
    if isinstance(values, Sequence) and not isinstance(values, str) and len(values) == 2:
        return int(values[0]), int(values[1])
    raise InvalidValue("box", values, "a first and a last value, a set of values, or None")
