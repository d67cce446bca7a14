"""What is asked of a table: the people in a box, or a public measure of theirs added up."""

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
        For each dimension: the first and the last of the wanted values, a set of wanted values, or None for any.
    measure
        The name of the measure that is added up; None counts people.

    Example:
        >>> RangeQuery([(3, 7), None, {1, 4}]).box
        ((3, 7), None, frozenset({1, 4}))
    """

    box: tuple[Selection, ...]
    measure: str | None = None

    def __init__(self, box: Sequence[Sequence[int] | Iterable[int] | None], measure: str | None = None) -> None:
        object.__setattr__(self, "box", tuple(_selection(wanted) for wanted in box))
        object.__setattr__(self, "measure", measure)

    def check(self, dimensions: Sequence[Dimension]) -> None:
        """Refuse a box that does not fit the dimensions.

        Example:
            >>> RangeQuery([(3, 9)]).check([Dimension.ordinal(8)])
            Traceback (most recent call last):
                ...
            hubbub.core.errors.InvalidValue: range: got (3, 9); allowed: two values in order, from 0 to 7
        """
        if len(self.box) != len(dimensions):
            raise InvalidValue("box", self.box, f"{len(dimensions)} entries, one a dimension")
        for dimension, wanted in zip(dimensions, self.box, strict=True):
            dimension.runs(wanted)


def _selection(wanted: Sequence[int] | Iterable[int] | None) -> Selection:
    if wanted is None:
        return None
    if isinstance(wanted, set | frozenset):
        return frozenset(int(value) for value in wanted)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str) and len(wanted) == 2:
        return int(wanted[0]), int(wanted[1])
    raise InvalidValue("box", wanted, "a first and a last value, a set of values, or None")
