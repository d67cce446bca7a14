"""Partitions of a dimension into intervals of different levels of its hierarchy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.protocols.ranges.dimension import Codes, Dimension, Floats, Selection


@dataclass(frozen=True, eq=False)
class Partition:
    """A dimension cut into intervals of its hierarchy.

    Parameters
    ----------
    dimension
        The values and their hierarchy.
    starts
        The first value of each interval, in order; the first of them is 0.
    levels
        The level of each interval.
    """

    dimension: Dimension
    starts: Codes
    levels: Codes

    @staticmethod
    def at_level(dimension: Dimension, level: int) -> Partition:
        """All intervals of one level."""
        starts = np.arange(dimension.nodes(level)) * dimension.widths[level]
        return Partition(dimension, starts, np.full(starts.size, level))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def widths(self) -> Codes:
        """How many values each interval holds."""
        return np.diff(self.starts, append=self.dimension.size)

    def cell_of(self, codes: Codes) -> Codes:
        """The interval that holds each value."""
        return np.searchsorted(self.starts, codes, side="right") - 1

    def children(self) -> Codes:
        """How many intervals of the next level each interval consists of; 1 for single values."""
        finer = np.array([*self.dimension.widths[1:], 1])
        return np.asarray(-(-self.widths // finer[self.levels]))

    def split(self, chosen: NDArray[np.bool_]) -> Partition:
        """The partition in which each chosen interval is replaced by its intervals of the next level."""
        last = self.dimension.levels - 1
        starts, levels = [], []
        for start, level, width, cut in zip(self.starts, self.levels, self.widths, chosen, strict=True):
            step = self.dimension.widths[level + 1] if cut and level < last else width
            pieces = np.arange(start, start + width, step)
            starts.append(pieces)
            levels.append(np.full(pieces.size, level + int(cut and level < last)))
        return Partition(self.dimension, np.concatenate(starts), np.concatenate(levels))

    def covered(self, selection: Selection) -> Floats:
        """The part of each interval's values that is selected."""
        inside: Codes = np.zeros(len(self), dtype=np.int64)
        for low, high in self.dimension.runs(selection):
            first, stop = np.maximum(self.starts, low), np.minimum(self.starts + self.widths, high + 1)
            inside += np.maximum(stop - first, 0)
        return np.asarray(inside / self.widths)
