"""The staircase mechanism on a grid: noise whose probability falls by e^-eps once every range of the value."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.numeric.mean import CellMean, Curve
from hubbub.mechanisms.weights import resolve_two_weights
from hubbub.random.integers import GRAIN, ExactChoice, bounded, log_fraction, to_grid
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.mechanisms.weights import Blanket

MOST_CELLS, MOST_TURNS = 1 << 12, 1 << 6
_FALL = 12  # the noise is cut where it has fallen to e^-12, if `MOST_TURNS` reach there
_FINE = 20  # cells of a step, about


@dataclass(frozen=True, kw_only=True)
class Staircase(CellMean):
    """The mean of a bounded number, by the additive noise of least variance (on a grid, cut far out).

    A number is rounded without bias to one of `cells` + 1 points. Noise of less than `step` cells has the weight 1;
    of every further `cells` cells on both sides, e^-eps times that of those before. Reports are cut `step` cells after
    `turns` ranges beyond the ends. This only processes them further, and their mean stays exactly affine in the number:
    on the cells of one range, on which it depends what is cut, all noise is equally likely. With b = e^-eps the
    variance is (range)^2 ((b (1 + b)/2)^(2/3) + b) / (n (1-b)^2), whatever the number. `Hybrid`, whose noise depends on
    the number, has less up to an epsilon of about 4.9.

    Parameters
    ----------
    epsilon
        What one report may spend.
    low, high
        The range of the number.
    cells, step, turns
        Cells of the range, cells of half of the first step, and ranges until noise is cut; 0 chooses them.
    bits, least
        A step has weight `least` where the one before has 2^bits, at least e^-eps of it; 0 chooses them.

    Example:
        >>> staircase = Staircase(epsilon=2.0, low=0.0, high=10.0)
        >>> reports = staircase.randomize([4.0] * 20000, Random(seed=1))
        >>> float(staircase.estimate(staircase.accumulate(reports)).value[0].round(1))
        4.0

    References
    ----------
    Geng and Viswanath, 2014; Geng et al., 2015. Where to cut without bias is ours.
    """

    cells: int = 0
    step: int = 0
    turns: int = 0
    bits: int = 0
    least: int = 0

    def _resolve(self) -> None:
        self._resolve_range()
        resolve_two_weights(self, self.epsilon)
        if self.cells == 0:
            wanted = _FINE * math.exp(min(self.epsilon, 30.0) / 3)
            self._set("cells", min(1 << math.ceil(math.log2(wanted)), MOST_CELLS))
        self._integer("cells", 1, MOST_CELLS)
        if self.step == 0:
            self._set("step", best_step(self.epsilon, self.cells))
        self._integer("step", 1, self.cells)
        if self.turns == 0:
            self._set("turns", min(max(1, math.ceil(_FALL / self.epsilon)), MOST_TURNS))
        self._integer("turns", 1, MOST_TURNS)

    @property
    def cells_in(self) -> int:
        return self.cells

    @property
    def reach(self) -> int:
        """How many cells beyond the ends of the range a report may be."""
        return self.turns * self.cells + self.step

    @property
    def _fall(self) -> Fraction:
        return Fraction(self.least, 1 << self.bits)

    def ratio(self) -> Fraction:
        return 1 / self._fall

    @cached_property
    def _steps(self) -> ExactChoice:
        """The exact choice of a step, 0 in the middle; all those that are cut in any case are the last."""
        whole, least, last = 1 << self.bits, self.least, self.turns + 2
        sides = [least**j * whole ** (last - 1 - j) * (whole - least) for j in range(last)] + [least**last]
        return ExactChoice([(2 * self.step - 1) * sides[0], *(2 * self.cells * side for side in sides[1:])])

    @cached_property
    def _chances(self) -> list[Fraction]:
        """The chance of one cell of each step, then of all noise that is cut, from each cell of the range."""
        first, *steps = (self._steps.probability(j) for j in range(self.turns + 3))
        inside = [first / (2 * self.step - 1), *(step / (2 * self.cells) for step in steps[:-1])]
        beyond = steps[-1] / 2
        return inside + [beyond + inside[-1] * (self.cells - cell) for cell in range(self.cells + 1)]

    def _step_of(self, noise: Ints) -> Ints:
        away = np.abs(noise)
        return np.where(away < self.step, 0, (away - self.step) // self.cells + 1)

    def blanket(self) -> "Blanket":
        from hubbub.mechanisms.weights import Blanket  # a device amplifies nothing

        cell = np.arange(1 - self.reach, self.cells + self.reach)
        worst = np.bincount(self._step_of(np.maximum(np.abs(cell), np.abs(self.cells - cell))))
        inside = sum((int(count) * chance for count, chance in zip(worst, self._chances, strict=False)), Fraction(0))
        return Blanket(inside + 2 * self._chances[-1], self.ratio())

    # -- reports ----------------------------------------------------------------------------------------------

    @property
    def _top(self) -> int:
        return self.cells + 2 * self.reach

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec("private", "cell", unsigned(self._top + 1), below=self._top + 1),)

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 3)
        point = to_grid(codes, (draws[:, 0] >> np.uint64(32)).astype(np.uint32))
        step = self._steps.place(draws[:, 1], rng)
        place = bounded(draws[:, 2], np.where(step == 0, 2 * self.step - 1, 2 * self.cells), rng)
        outside = self.step + (step - 1) * self.cells + place % self.cells
        noise = np.where(step == 0, place - (self.step - 1), np.where(place < self.cells, outside, -outside))
        return {"cell": np.clip(point + noise + self.reach, 0, self._top)}

    def _case(self, cell: Ints, point: Ints) -> Ints:
        """The place of each report's (row) chance given each grid point (column), among `_chances`."""
        ends = np.where(cell == 0, point, self.cells - point)  # beyond the lower end, beyond the upper one
        inner = self._step_of(cell - self.reach - point)
        return np.where((cell == 0) | (cell == self._top), self.turns + 2 + ends, inner)

    def _two_cases(self, reports: Reports, values: Values) -> tuple[Ints, Ints, Ints]:
        """The cases of the grid points below and above each value, and of 2^32 how near it is to the upper one."""
        cell, codes = reports.private["cell"].astype(np.int64)[:, None], self.encode(values)
        below = codes >> 32
        above = np.minimum(below + 1, self.cells)
        return self._case(cell, below[None, :]), self._case(cell, above[None, :]), codes & (GRAIN - 1)

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        below, above, part = self._two_cases(reports, values)
        chances, weight = np.array(self._chances, dtype=object), part.astype(object)[None, :]
        return np.asarray((chances[below] * (GRAIN - weight) + chances[above] * weight) * Fraction(1, GRAIN))

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        below, above, part = self._two_cases(reports, values)
        logs = np.array([log_fraction(chance) for chance in self._chances])
        gain = np.expm1(logs[above] - logs[below])
        return np.asarray(logs[below] + np.log1p(gain * (part / GRAIN)[None, :]))

    def outputs(self, public: Columns | None = None) -> Reports | None:
        return self._with_public(public, {"cell": np.arange(self._top + 1)})

    # -- the number of a report -------------------------------------------------------------------------------

    @cached_property
    def _exact_lift(self) -> Fraction:
        """How much the mean of a report moves, in cells, if the number moves by one."""
        fall, cells = self._fall, self.cells
        unit = self._chances[0] * fall**self.turns  # of what is cut at an end: the average number of cells
        beyond = cells**2 * fall**2 / (1 - fall) ** 2 + Fraction(cells * (cells - 1), 2) * fall / (1 - fall)
        return 1 - 2 * (1 - fall) * unit * beyond / cells

    @property
    def largest(self) -> Fraction:
        return Fraction(self._top, self.cells) / self._exact_lift

    @cached_property
    def _affine(self) -> tuple[float, float]:
        step = 2 / (self.cells * float(self._exact_lift))
        return -self._top / 2 * step, step

    @cached_property
    def curve(self) -> Curve:
        every = np.arange(self._top + 1)
        chances = np.array([float(chance) for chance in self._chances])[self._case(every, np.zeros(1, dtype=np.int64))]
        at_end = float(self.number_of(every) ** 2 @ chances)
        if self.cells == 1:
            return Curve(constant=at_end, square=-1.0)
        # The second difference of the mean squared cell: 2 inside, 1 - top at each end, and 0 beyond.
        cell, (beyond, *_, least) = self._chances[self.turns + 1], self._chances[self.turns + 2 :]
        slope = float((1 - beyond - least - (self._top - 1) * cell) / self._exact_lift**2)
        # In between two points, rounding adds a sixth of a cell squared on average.
        return Curve(constant=at_end - slope + slope * (2 / self.cells) ** 2 / 6, square=slope - 1)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, cells=8, turns=2)
        yield cls(epsilon=1.0, low=0.0, high=10.0)
        yield cls(epsilon=3.0, cells=1)


def best_step(epsilon: float, cells: int) -> int:
    """The step of the smallest variance of the noise, before it is cut."""
    fall, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    step = np.arange(1, cells + 1, dtype=np.float64)
    # The sums of fall^j (j-1)^k over j = 1, 2, ..., for k = 0, 1, 2.
    zeroth, first, second = fall / rest, fall**2 / rest**2, fall**2 * (1 + fall) / rest**3
    starts = step * zeroth + cells * first
    squared_starts = step**2 * zeroth + 2 * step * cells * first + cells**2 * second
    outer = cells * squared_starts + cells * (cells - 1) * starts + (cells - 1) * cells * (2 * cells - 1) / 6 * zeroth
    inner = (step - 1) * step * (2 * step - 1) / 6
    return int(np.argmin(2 * (inner + outer) / (2 * step - 1 + 2 * cells * zeroth))) + 1
