"""Means from banded noise: the mean cell of the reports is affine in the mean of the values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.numeric.banded import TWO_64, Banded
from hubbub.mechanisms.numeric.mean import Curve, MeanMechanism


@dataclass(frozen=True, kw_only=True)
class BandedMean(Banded, MeanMechanism):
    """Banded noise whose reports are added up: the sketch is the sum of their cells and of the squares."""

    @property
    def _exact_lift(self) -> Fraction:
        """With this probability a report is uniform over the band, and else uniform over all cells."""
        return Fraction(self.band * (self._high - self.other), TWO_64)

    @cached_property
    def _lift(self) -> float:
        return float(self._exact_lift)

    @property
    def largest(self) -> Fraction:
        return Fraction(self.cells + self.band - 1, self.cells) / self._exact_lift

    @cached_property
    def _affine(self) -> tuple[float, float]:
        """The number of a cell is first + step cell: its mean is then the value on the scale -1 to 1."""
        step = 2 / (self.cells * self._lift)
        middle = (self.cells + self.band - 1) / 2
        return -middle * step, step

    def number_of(self, cell: NDArray[Any]) -> NDArray[np.float64]:
        """The unbiased number that each single report stands for, on the scale -1 to 1."""
        first, step = self._affine
        return np.asarray(first + step * cell.astype(np.float64))

    @cached_property
    def curve(self) -> Curve:
        # A report is uniform on the band with probability lift, else uniform on all cells; in between two points,
        # rounding adds its own variance: all of 1 - u^2 where there is one cell, a sixth of a cell squared on average.
        lift, step = self._lift, self._affine[1]
        spread = lift * (self.band**2 - 1) / 12 + (1 - lift) * ((self.cells + self.band) ** 2 - 1) / 12
        if self.cells == 1:
            return Curve(constant=step**2 * spread + 1 / lift, square=-1.0)
        return Curve(constant=step**2 * spread + (2 / self.cells) ** 2 / (6 * lift), square=1 / lift - 1)

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (2,)

    def _fold(self, reports: Reports) -> NDArray[np.int64]:
        return self.fold_cells(reports.private["cell"])

    @staticmethod
    def fold_cells(cell: NDArray[Any]) -> NDArray[np.int64]:
        """The sum of the cells, and of their squares."""
        whole = cell.astype(np.int64)
        return np.array([whole.sum(), whole @ whole], dtype=np.int64)

    def _numbers(self, sketch: Sketch) -> tuple[float, float, float | None]:
        return self.numbers(sketch.counts, sketch.n)

    def numbers(self, sums: NDArray[np.int64], n: int) -> tuple[float, float, float | None]:
        """The mean number, the mean of their squares, and the values' mean square where the squares tell it."""
        first, step = self._affine
        total, squares = int(sums[0]), int(sums[1])
        mean = first + step * total / n
        mean_square = first**2 + 2 * first * step * total / n + step**2 * squares / n
        if self.cells == 1:
            return mean, mean_square, None  # two cells: every square is the same
        curve = self.curve
        return mean, mean_square, (mean_square - curve.constant) / (1 + curve.square)
