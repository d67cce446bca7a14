"""A private dimension of a table with its hierarchy of intervals, and queries over boxes of dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Floats, Ints

Selection = tuple[int, int] | frozenset[int] | None
"""The values of a dimension that a query selects: a first and a last value, a set of values, or None for all."""
Scored = Selection | Floats
"""What a query adds up over a dimension: 1 for each selected value, or a number for each value."""
Cover = list[tuple[Ints, Floats]]
"""A selection as a weighted sum of intervals: for each level, root first, the intervals used and their weights."""


@dataclass(frozen=True)
class Dimension:
    """The values 0 to size-1 and a hierarchy of intervals: the root holds all values, the last level single values.

    `widths`: how many values an interval of each level holds, root first. The root's width is the size. Each further
    width divides the width before it; the last interval of a level may be shorter.

    References
    ----------
    T. Wang, 2021, sections 7.3.1 and 7.4.2.
    """

    size: int
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        check_integer("size", self.size, 2, 1 << 32)
        widths = tuple(self.widths)
        falls = all(wide > narrow and wide % narrow == 0 for wide, narrow in pairwise(widths[1:]))
        if len(widths) < 2 or widths[0] != self.size or widths[-1] != 1 or widths[1] >= self.size or not falls:
            raise InvalidValue("widths", widths, f"{self.size}, then widths that each divide the one before, down to 1")
        object.__setattr__(self, "widths", widths)

    @classmethod
    def ordinal(cls, size: int, *, fanout: int = 5) -> Dimension:
        """Values with an order: a tree of intervals, each the union of `fanout` smaller ones."""
        check_integer("size", size, 2, 1 << 32)
        check_integer("fanout", fanout, 2)
        widths = [1]
        while widths[-1] * fanout < size:
            widths.append(widths[-1] * fanout)
        return cls(size, (size, *reversed(widths)))

    @classmethod
    def categorical(cls, size: int) -> Dimension:
        """Values without an order: the root and the single values are the only levels."""
        return cls(size, (size, 1))

    @property
    def levels(self) -> int:
        """How many levels there are, including the root."""
        return len(self.widths)

    def nodes(self, level: int) -> int:
        """How many intervals a level has."""
        return -(-self.size // self.widths[level])

    def node_of(self, codes: Ints, level: int) -> Ints:
        """The interval that holds each value."""
        return codes // self.widths[level]

    def runs(self, selection: Selection) -> list[tuple[int, int]]:
        """The selected values as runs of consecutive values, each as its first and last value."""
        if selection is None:
            return [(0, self.size - 1)]
        if isinstance(selection, tuple):
            if len(selection) != 2 or not 0 <= selection[0] <= selection[1] < self.size:
                raise InvalidValue("range", selection, f"two values in order, from 0 to {self.size - 1}")
            return [(int(selection[0]), int(selection[1]))]
        values = np.array(sorted(selection), dtype=np.int64)
        if not values.size or values[0] < 0 or values[-1] >= self.size:
            raise InvalidValue("range", sorted(selection), f"at least one value, from 0 to {self.size - 1}")
        cuts = np.flatnonzero(np.diff(values) > 1)
        firsts, lasts = values[np.r_[0, cuts + 1]], values[np.r_[cuts, values.size - 1]]
        return list(zip(firsts.tolist(), lasts.tolist(), strict=True))

    def numbers(self, selection: Scored) -> Floats:
        """What each value counts: 1 or 0 of a selection, else its number."""
        if isinstance(selection, np.ndarray):
            if selection.shape != (self.size,):
                raise InvalidValue("range", selection.shape, f"a number for each of {self.size} values")
            return selection
        numbers = np.zeros(self.size)
        for low, high in self.runs(selection):
            numbers[low : high + 1] = 1.0
        return numbers

    def decompose(self, selection: Scored) -> Cover:
        """The selected values as the union of the fewest intervals (Eq 7.11).

        If there are only the root and the single values, it may be the root minus the values that are not selected.
        Numbers of values are weights of single values, or of all intervals, an interval having the mean of its values
        less that of the interval around it; whichever weights have the smaller sum of squares.
        """
        if isinstance(selection, np.ndarray):
            return self._scored(self.numbers(selection))
        runs = self.runs(selection)
        if self.levels == 2 and self.size + 1 < 2 * sum(high - low + 1 for low, high in runs) < 2 * self.size:
            selected = np.zeros(self.size, dtype=bool)
            for low, high in runs:
                selected[low : high + 1] = True
            missing = np.flatnonzero(~selected)
            return [(np.zeros(1, dtype=np.int64), np.ones(1)), (missing, -np.ones(missing.size))]
        pieces: list[list[Ints]] = [[np.zeros(0, dtype=np.int64)] for _ in self.widths]
        for low, high in runs:
            for level, first, stop in self._intervals(low, high + 1):
                pieces[level].append(np.arange(first, stop))
        nodes = [np.concatenate(level_pieces) for level_pieces in pieces]
        return [(codes, np.ones(codes.size)) for codes in nodes]

    def _scored(self, numbers: Floats) -> Cover:
        around, by_mean = np.zeros(self.size), []
        for width in self.widths:
            starts = np.arange(0, self.size, width)
            means = np.add.reduceat(numbers, starts) / np.diff(np.append(starts, self.size))
            by_mean.append(means - around[starts])
            around = means[np.arange(self.size) // width]
        if sum(float(weights @ weights) for weights in by_mean[1:]) < numbers @ numbers:
            return [(np.flatnonzero(weights), weights[weights != 0]) for weights in by_mean]
        single = np.flatnonzero(numbers)
        none: Ints = np.zeros(0, dtype=np.int64)
        return [*[(none, np.zeros(0))] * (self.levels - 1), (single, numbers[single])]

    def _intervals(self, first: int, stop: int) -> Iterable[tuple[int, int, int]]:
        """The fewest intervals of a run of values: their level, the first of them, and the one after the last."""
        for level in range(self.levels - 1, 0, -1):
            children = self.nodes(level) if level == 1 else self.widths[level - 1] // self.widths[level]
            first_parent = -(-first // children)
            # the last parent may have fewer children than the others: it is covered if the run ends with the level
            stop_parent = self.nodes(level - 1) if stop == self.nodes(level) else stop // children
            if first_parent >= stop_parent:
                yield level, first, stop
                return
            yield level, first, first_parent * children
            yield level, stop_parent * children, stop
            first, stop = first_parent, stop_parent
        yield 0, first, stop


@dataclass(frozen=True)
class RangeQuery:
    """How many people are in a box, or the sum of a public measure over them.

    `box`: for each dimension: a first and a last value, a set of values, or None for all values. `measure`: the name of
    the measure that is added up; None counts people.
    """

    box: tuple[Selection, ...]
    measure: str | None = None

    def __init__(self, box: Sequence[Sequence[int] | Iterable[int] | None], measure: str | None = None) -> None:
        object.__setattr__(self, "box", tuple(_selection(values) for values in box))
        object.__setattr__(self, "measure", measure)

    def share(self, dimensions: Sequence[Dimension]) -> float:
        """The part of all cells that the box has."""
        parts = (
            sum(high - low + 1 for low, high in dimension.runs(selection)) / dimension.size
            for dimension, selection in zip(dimensions, self.box, strict=True)
        )
        return math.prod(parts)

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
