"""Banded noise on a grid: a band of cells that starts at the value is more likely than the others."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Words
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.numeric.mean import CellMean, Curve, Ranged
from hubbub.random.integers import GRAIN, ceil_div, exp_floor, log_fraction, to_grid
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.mechanisms.weights import Blanket

TWO_64 = 1 << 64


def even_share(least: int, cells: int, band: int) -> int:
    """The smallest share of a cell outside the band, from `least` on, that divides the rest evenly among the band."""
    if band & (band - 1) == 0:
        return band * ceil_div(least, band)
    if math.gcd(cells, band) != 1:
        raise InvalidValue("band", band, f"a power of two, or no divisor in common with cells = {cells}")
    wanted = TWO_64 * pow(cells, -1, band)  # modulo the band
    return least + (wanted - least) % band


@dataclass(frozen=True, kw_only=True)
class Banded(Ranged):
    """A value is rounded without bias to one of `cells` + 1 points; point j makes the cells j to j+band-1 likely.

    There are cells + band cells. Each of the others has `other` of 2^64, each of the band e^eps times that: the sum is
    the same for every point, epsilon is exact, and the mean cell is affine in the value.
    """

    cells: int = 0
    band: int = 0
    other: int = 0

    @abstractmethod
    def _shape(self) -> tuple[int, int]:
        """The numbers of cells and of cells in the band with the smallest error."""

    def _resolve(self) -> None:
        self._resolve_range()
        if not (self.cells or self.band):
            for field, value in zip(("cells", "band"), self._shape(), strict=True):
                self._set(field, value)
        self._integer("cells", 1, 1 << 16)
        self._integer("band", 1, 1 << 16)
        if self.other == 0:
            least = ceil_div(TWO_64, self.band * exp_floor(self.epsilon) + self.cells)
            self._set("other", even_share(least, self.cells, self.band))
        self._integer("other", 1, TWO_64 // (self.cells + self.band))
        if (TWO_64 - self.cells * self.other) % self.band or self._high <= self.other:
            allowed = f"a share that leaves a multiple of {self.band}, below the share of a band cell"
            raise InvalidValue("other", self.other, allowed)

    @property
    def cells_in(self) -> int:
        return self.cells

    @property
    def _high(self) -> int:
        """Of 2^64, the share of each cell of the band."""
        return (TWO_64 - self.cells * self.other) // self.band

    def ratio(self) -> Fraction:
        return Fraction(self._high, self.other)

    def blanket(self) -> Blanket:
        from hubbub.mechanisms.weights import Blanket  # a device amplifies nothing

        return Blanket(Fraction((self.cells + self.band) * self.other, TWO_64), self.ratio())

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        cells = self.cells + self.band
        return (ColumnSpec("private", "cell", "u1" if cells <= 256 else "u2", below=cells),)

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 2)
        point = to_grid(codes, (draws[:, 0] >> np.uint64(32)).astype(np.uint32))
        return {"cell": self.scatter(point, draws[:, 1])}

    def scatter(self, point: Ints, draws: Words) -> Ints:
        """The cell that 64 random bits choose for each point."""
        if self.band == 1 and self.cells == 1:
            return np.where(draws < np.uint64(self._high), point, 1 - point)
        start = TWO_64 - self.cells * self.other
        inside = draws < np.uint64(start)
        near = point + (draws // np.uint64(self._high)).astype(np.int64)
        far = ((draws - np.uint64(start)) // np.uint64(self.other)).astype(np.int64)  # wraps where inside
        far += self.band * (far >= point)
        return np.where(inside, near, far)

    def _table(self, cell: Array, units: Ints) -> tuple[Array, ...]:
        """For each cell and value: is it in the band of the point below, of the point above; the part above."""
        offset = cell.astype(np.int64)[:, None] - (units >> 32)[None, :]
        in_lower, in_upper = (offset >= 0) & (offset < self.band), (offset >= 1) & (offset <= self.band)
        return in_lower, in_upper, (units & (GRAIN - 1))[None, :]

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        return self.cell_prob(reports.private["cell"], self.encode(values))

    def cell_prob(self, cell: Array, units: Ints) -> NDArray[np.object_]:
        """The exact probability of each cell (row) given each encoded value (column)."""
        lower, upper, part = (part.astype(object) for part in self._table(cell, units))
        weight = lower * (GRAIN - part) + upper * part  # of 2^32, the chance that the cell is in the band
        gain, other = Fraction(self._high - self.other, TWO_64 * GRAIN), Fraction(self.other, TWO_64)
        return np.asarray(weight * gain + other)

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        return self.cell_log_prob(reports.private["cell"], self.encode(values))

    def cell_log_prob(self, cell: Array, units: Ints) -> Floats:
        """The logarithm of `cell_prob`."""
        lower, upper, part = self._table(cell, units)
        up = part / GRAIN
        excess = (float(self.ratio()) - 1) * (lower * (1 - up) + upper * up)
        return np.asarray(log_fraction(Fraction(self.other, TWO_64)) + np.log1p(excess))

    def outputs(self, public: Columns | None = None) -> Reports | None:
        return self._with_public(public, {"cell": np.arange(self.cells + self.band)})


@dataclass(frozen=True, kw_only=True)
class BandedMean(Banded, CellMean):
    """Banded noise whose reports are added up."""

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
        step = 2 / (self.cells * self._lift)
        middle = (self.cells + self.band - 1) / 2
        return -middle * step, step

    @cached_property
    def curve(self) -> Curve:
        # A report is uniform on the band with probability lift, else uniform on all cells; in between two points,
        # rounding adds its own variance: all of 1 - u^2 where there is one cell, a sixth of a cell squared on average.
        lift, step = self._lift, self._affine[1]
        spread = lift * (self.band**2 - 1) / 12 + (1 - lift) * ((self.cells + self.band) ** 2 - 1) / 12
        if self.cells == 1:
            return Curve(constant=step**2 * spread + 1 / lift, square=-1.0)
        return Curve(constant=step**2 * spread + (2 / self.cells) ** 2 / (6 * lift), square=1 / lift - 1)
