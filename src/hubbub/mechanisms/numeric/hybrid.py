"""The piecewise mechanism, stochastic rounding, and the hybrid that chooses between them by a public coin."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.numeric.banded import TWO_64, BandedMean
from hubbub.mechanisms.numeric.mean import Curve, MeanMechanism
from hubbub.random.integers import to_grid
from hubbub.random.source import Random

MOST_CELLS = 1 << 14


class Piecewise(BandedMean):
    """The mean of a bounded number, by a band around it (PM, on a grid).

    Variance: (half the range)^2 (u^2/(e^(eps/2)-1) + (e^(eps/2)+3)/(3 (e^(eps/2)-1)^2)) / n for a value at u on
    the scale -1 to 1: smallest in the middle.

    Parameters
    ----------
    epsilon
        What one report may spend.
    low, high
        The range of the number.
    cells, band, other
        Cells of the range, cells of the band, and of 2^64 the share of each cell outside it; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> pm = Piecewise(epsilon=2.0, low=0.0, high=10.0)
        >>> reports = pm.randomize([4.0] * 20000, Random(seed=1))
        >>> float(pm.estimate(pm.accumulate(reports)).value[0].round(1))
        4.0

    References
    ----------
    N. Wang et al., 2019; Ren et al., 2022, section 6.1.1.
    """

    def _shape(self) -> tuple[int, int]:
        half = math.exp(min(self.epsilon, 16.0) / 2)
        band = 1 << int(math.log2(MOST_CELLS / (1 + half)))
        return round(band * half), band

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, cells=6, band=4)
        yield cls(epsilon=1.0, low=0.0, high=10.0)


class StochasticRounding(BandedMean):
    """The mean of a bounded number, in one bit (SR).

    The number is rounded without bias to one end of its range, and the end is flipped with probability 1/(e^eps + 1).
    Variance: (half the range)^2 (((e^eps+1)/(e^eps-1))^2 - u^2) / n for a value at u on the scale -1 to 1.

    Parameters
    ----------
    epsilon
        What one report may spend.
    low, high
        The range of the number.
    cells, band, other
        1 and 1, and of 2^64 how often the end is flipped; 0 chooses it.

    Example:
        >>> from hubbub import Random
        >>> sr = StochasticRounding(epsilon=1.0, low=0.0, high=10.0)
        >>> reports = sr.randomize([4.0] * 20000, Random(seed=1))
        >>> float(sr.estimate(sr.accumulate(reports)).value[0].round(1))
        4.1

    References
    ----------
    Ren et al., 2022, section 6.1.1; Duchi, Jordan and Wainwright, 2018. Ding, Kulkarni and Yekhanin, 2017, have the
    same report as 1BitMean.
    """

    def _shape(self) -> tuple[int, int]:
        return 1, 1

    def _resolve(self) -> None:
        if (self.cells or 1, self.band or 1) != (1, 1):
            raise InvalidValue("cells", (self.cells, self.band), "1 cell and a band of 1")
        super()._resolve()

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0)
        yield cls(epsilon=0.5, low=0.0, high=10.0)


SWITCH = 0.61
"""Below this epsilon stochastic rounding alone is best."""


@dataclass(frozen=True, kw_only=True)
class Hybrid(MeanMechanism):
    """The mean of a bounded number, with the smallest worst case (HM).

    With probability 1 - e^(-eps/2) a report is piecewise, else stochastic rounding, which eps <= 0.61 uses alone. The
    coin does not depend on the value and is public. Above 0.61 the variance is the same for every value: (half the
    range)^2 / n times e^(-eps/2) [((e^eps+1)/(e^eps-1))^2 + (e^(eps/2)+3)/(3 (e^(eps/2)-1))].

    Parameters
    ----------
    epsilon
        What one report may spend.
    low, high
        The range of the number.
    coin
        Of 2^64, how often stochastic rounding is used.
    cells, band, other, flip
        As in `Piecewise`, and of 2^64 how often stochastic rounding flips; 0 chooses them.

    Example:
        >>> hybrid = Hybrid(epsilon=2.0, low=0.0, high=10.0)
        >>> reports = hybrid.randomize([4.0] * 20000, Random(seed=1))
        >>> float(hybrid.estimate(hybrid.accumulate(reports)).value[0].round(1))
        3.9

    References
    ----------
    N. Wang et al., 2019; Ren et al., 2022, section 6.1.1.
    """

    coin: int = 0
    cells: int = 0
    band: int = 0
    other: int = 0
    flip: int = 0

    def _resolve(self) -> None:
        self._resolve_range()
        if self.coin == 0:
            chance = math.exp(-self.epsilon / 2) if self.epsilon > SWITCH else 1.0
            self._set("coin", min(max(1, round(chance * TWO_64)), TWO_64))
        self._integer("coin", 1, TWO_64)
        for field in ("cells", "band", "other"):
            self._set(field, getattr(self.piecewise, field))
        self._set("flip", self.rounding.other)

    @cached_property
    def piecewise(self) -> Piecewise:
        """The mechanism of the reports whose coin fell on 0."""
        shape = {"cells": self.cells, "band": self.band, "other": self.other}
        return Piecewise(epsilon=self.epsilon, low=self.low, high=self.high, **shape)

    @cached_property
    def rounding(self) -> StochasticRounding:
        """The mechanism of the reports whose coin fell on 1."""
        return StochasticRounding(epsilon=self.epsilon, low=self.low, high=self.high, other=self.flip)

    @property
    def _share(self) -> float:
        return float(Fraction(self.coin, TWO_64))

    def ratio(self) -> Fraction:
        rounding = self.rounding.ratio()
        return rounding if self.coin == TWO_64 else max(rounding, self.piecewise.ratio())

    @property
    def cells_in(self) -> int:
        return self.cells

    @property
    def largest(self) -> Fraction:
        rounding = self.rounding.largest  # a forger chooses how the coin falls, if it can fall either way
        return rounding if self.coin == TWO_64 else max(rounding, self.piecewise.largest)

    @cached_property
    def curve(self) -> Curve:
        a, b, share = self.rounding.curve, self.piecewise.curve, self._share
        return Curve(*(share * x + (1 - share) * y for x, y in zip(a, b, strict=True)))

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        (cell,) = self.piecewise.columns
        return (ColumnSpec("public", "rounded", "u1", below=2), cell)

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 3)
        rounded = np.ones(codes.size, dtype=bool) if self.coin == TWO_64 else draws[:, 0] < np.uint64(self.coin)
        bits = (draws[:, 1] >> np.uint64(32)).astype(np.uint32)
        ends = to_grid(self._ends(codes), bits)
        cell = np.where(
            rounded, self.rounding.scatter(ends, draws[:, 2]), self.piecewise.scatter(to_grid(codes, bits), draws[:, 2])
        )
        return {"rounded": rounded, "cell": cell}

    def numbers_of(self, reports: Reports) -> Floats:
        """The unbiased number that each report stands for by itself, in the units of the range."""
        self.check(reports)
        cell, rounded = reports.private["cell"], reports.public["rounded"] == 1
        unit = np.where(rounded, self.rounding.number_of(cell), self.piecewise.number_of(cell))
        return np.asarray(self.low + (self.high - self.low) / 2 * (unit + 1))

    def _ends(self, codes: Ints) -> Ints:
        """The same values on a grid of one cell, as stochastic rounding reads them."""
        return codes // self.cells

    def check(self, reports: Reports) -> None:
        super().check(reports)
        rounded = reports.public["rounded"] == 1
        if self.coin == TWO_64 and not rounded.all():  # no client sends it, and it would move estimates twice as far
            raise InvalidValue("rounded", 0, f"1: at epsilon {self.epsilon:g} the coin never falls on 0")
        ends = reports.private["cell"][rounded]
        if ends.size and int(ends.max()) > 1:  # compared before any cast: as a byte, 256 would pass for 0
            raise InvalidValue("cell", int(ends.max()), "0 or 1 where the report is rounded")

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        cell, rounded, codes = reports.private["cell"], reports.public["rounded"][:, None] == 1, self.encode(values)
        by_rounding = self.rounding.cell_prob(cell, self._ends(codes))
        return np.where(rounded, by_rounding, self.piecewise.cell_prob(cell, codes))

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        cell, rounded, codes = reports.private["cell"], reports.public["rounded"][:, None] == 1, self.encode(values)
        by_rounding = self.rounding.cell_log_prob(cell, self._ends(codes))
        return np.where(rounded, by_rounding, self.piecewise.cell_log_prob(cell, codes))

    def outputs(self, public: Columns | None = None) -> Reports | None:
        public = public or {"rounded": np.ones(1)}
        cells = 2 if public["rounded"][0] else self.cells + self.band
        return self._with_public(public, {"cell": np.arange(cells)})

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (2, 3)

    def _fold(self, reports: Reports) -> Ints:
        """For the piecewise reports and the rounded ones: how many, the sum of their cells, the sum of the squares."""
        rows = []
        for side in (0, 1):
            cell = reports.private["cell"][reports.public["rounded"] == side]
            rows.append([cell.size, *BandedMean.fold_cells(cell)])
        return np.array(rows, dtype=np.int64)

    def _numbers(self, sketch: Sketch) -> tuple[float, float, float | None]:
        mean = mean_square = 0.0
        second_moment = None
        for part, (count, *sums) in zip((self.piecewise, self.rounding), sketch.counts, strict=True):
            if count:
                part_mean, part_square, part_moment = part.numbers(np.array(sums), int(count))
                mean += part_mean * int(count) / sketch.n
                mean_square += part_square * int(count) / sketch.n
                second_moment = part_moment if second_moment is None else second_moment
        return mean, mean_square, second_moment

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, cells=6, band=4)
        yield cls(epsilon=1.0, low=0.0, high=10.0)
        yield cls(epsilon=0.5)
