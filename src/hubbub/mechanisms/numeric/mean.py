"""Mechanisms that estimate the mean of a bounded number, and their estimator."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Array, Floats, Ints, Reports, Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.random.integers import to_units
from hubbub.statistics.influence import Influence

LARGEST = 1e150
"""The largest end of a range: its square is still a number."""
NARROWEST = 1e-9
"""The narrowest range, in parts of its larger end: floats still tell its points apart. In itself at least 1/LARGEST."""


@dataclass(frozen=True, kw_only=True)
class Ranged(Mechanism):
    """A mechanism for numbers from low to high."""

    linkable = "never"
    low: float = -1.0
    high: float = 1.0

    @property
    @abstractmethod
    def cells_in(self) -> int:
        """How many cells the range is cut into before a value is rounded to their borders."""

    def _resolve_range(self) -> None:
        for field in ("low", "high"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
                raise InvalidValue(field, value, f"a number from -{LARGEST:g} to {LARGEST:g}")
            self._set(field, float(value))
        if not self.low < self.high:
            raise InvalidValue("high", self.high, f"a number above low = {self.low:g}")
        least = max(1 / LARGEST, NARROWEST * max(abs(self.low), abs(self.high)))
        if self.high - self.low < least:
            raise InvalidValue("high", self.high, f"a number at least {least:.3g} above low = {self.low:g}")

    def encode(self, values: Values) -> Ints:
        return to_units(values, self.low, self.high, self.cells_in)

    def example_values(self, most: int) -> list[object]:
        return [float(number) for number in np.linspace(self.low, self.high, min(most, 65))]


class Curve(NamedTuple):
    """The variance of one report's unbiased number y, as constant + square u^2 for a value u on the scale -1 to 1."""

    constant: float
    square: float

    def at(self, second_moment: float) -> float:
        """The mean variance over people whose values have this second moment."""
        return self.constant + self.square * second_moment


@dataclass(frozen=True, kw_only=True)
class MeanMechanism(Ranged):
    """Each report stands for an unbiased number on the scale -1 to 1; the estimate is the mean of them, scaled back.

    The variance given the population is `curve` at the mean square of the values, which is estimated from the squares
    of the reports' numbers. Where these tell nothing of it (stochastic rounding), the square of the mean is used, the
    smallest that it can be: intervals are then wider than they need be.
    """

    @property
    @abstractmethod
    def curve(self) -> Curve:
        """The variance of one report's number."""

    @abstractmethod
    def _numbers(self, sketch: Sketch) -> tuple[float, float, float | None]:
        """The mean of the reports' numbers, the mean of their squares, and an estimate of the values' mean square."""

    @property
    @abstractmethod
    def largest(self) -> Fraction:
        """The largest number that a report stands for, on the scale -1 to 1; the smallest is its opposite."""

    def influence(self) -> Influence:
        """The numbers that one forged report can stand for: as far outside of the range as the noise reaches."""
        low, high = Fraction(self.low), Fraction(self.high)
        middle, half = (low + high) / 2, (high - low) / 2
        return Influence(middle - half * self.largest, middle + half * self.largest, low, high)

    def variance(self, n: int, value: float | None = None) -> float:
        """The predicted variance of a mean of n people who all hold `value`; the middle of the range unless given."""
        scale = (self.high - self.low) / 2
        unit = 0.0 if value is None else (value - self.low) / scale - 1
        return scale**2 * self.curve.at(unit**2) / n

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        mean, mean_square, second_moment = self._numbers(sketch)
        least = min(mean**2, 1.0)  # a mean square is never below the square of the mean
        square_of_values = least if second_moment is None else min(max(second_moment, least), 1.0)
        report_variance = self.curve.at(square_of_values)
        scale = (self.high - self.low) / 2
        return Estimate(
            np.array([self.low + scale * (mean + 1)]),
            np.array([scale**2 * report_variance / sketch.n]),
            sketch.n,
            bias=self.bias,
            kind="quantity",
            spread=scale**2 * max(mean_square - mean**2 - report_variance, 0.0),
            bounds=(self.low, self.high),
        )


@dataclass(frozen=True, kw_only=True)
class CellMean(MeanMechanism):
    """A report is a cell of a grid, whose mean is affine in the value: the sketch sums the cells and their squares."""

    @property
    @abstractmethod
    def _affine(self) -> tuple[float, float]:
        """The number of a cell is first + step cell: its mean is then the value on the scale -1 to 1."""

    def number_of(self, cell: Array) -> Floats:
        """The unbiased number that each single report stands for, on the scale -1 to 1."""
        first, step = self._affine
        return np.asarray(first + step * cell.astype(np.float64))

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (2,)

    def _fold(self, reports: Reports) -> Ints:
        return self.fold_cells(reports.private["cell"])

    @staticmethod
    def fold_cells(cell: Array) -> Ints:
        """The sum of the cells, and of their squares."""
        whole = cell.astype(np.int64)
        return np.array([whole.sum(), whole @ whole], dtype=np.int64)

    def _numbers(self, sketch: Sketch) -> tuple[float, float, float | None]:
        return self.numbers(sketch.counts, sketch.n)

    def numbers(self, sums: Ints, n: int) -> tuple[float, float, float | None]:
        """The mean number, the mean of their squares, and the values' mean square where the squares tell it."""
        first, step = self._affine
        total, squares = int(sums[0]), int(sums[1])
        mean = first + step * total / n
        mean_square = first**2 + 2 * first * step * total / n + step**2 * squares / n
        if self.cells_in == 1:
            return mean, mean_square, None  # values are rounded to two points: their squares are the same
        curve = self.curve
        return mean, mean_square, (mean_square - curve.constant) / (1 + curve.square)
