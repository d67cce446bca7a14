"""Square Wave: a report is a random cell, more often one near the value; the whole distribution is estimated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints, Reports, Sketch
from hubbub.mechanisms.numeric.banded import TWO_64, Banded
from hubbub.random.integers import GRAIN

if TYPE_CHECKING:
    from hubbub.statistics.distribution import Distribution
    from hubbub.statistics.influence import Influence


def forged_range(target: Floats, *, cells: int, band: int, near: float, far: float) -> tuple[float, float]:
    """The least and the largest number that a report can stand for in the sum of target t times share, over all truths.

    A report of cell j has the weight y_j, and M'y = t: an estimate without bias. So the cells of a class, j modulo the
    band, differ by the steps of t over gain = near - far, summed: u_j. A class is as likely whatever is held, and least
    squares take its expected u from each: y_j = t s - E(u of j's class) + u_j, where the weights come from the shares
    s. This is linear in s. Its extremes are where all hold one point i: a class then has E(u) = (gain u of the cell in
    i's band + far (sum of u)) / (gain + far (its cells)).
    """
    gain, points = near - far, cells + 1
    steps = np.diff(target) / gain
    place = np.arange(cells + band)
    level = np.zeros(cells + band)
    for first in range(0, cells, band):  # cell j + band is one step of t, that from point j to j + 1, above cell j
        count = min(band, cells - first)
        level[first + band : first + band + count] = level[first : first + count] + steps[first : first + count]
    kind = place % band
    total, size = np.bincount(kind, level), np.bincount(kind)
    lowest, highest = np.full(band, np.inf), np.full(band, -np.inf)
    np.minimum.at(lowest, kind, level)
    np.maximum.at(highest, kind, level)
    inside = np.lib.stride_tricks.sliding_window_view(level, band)[:points]  # each class once, from class i mod band on
    classes = (np.arange(points)[:, None] + np.arange(band)[None, :]) % band
    expected = (gain * inside + far * total[classes]) / (gain + far * size[classes])
    rest = target[:, None] - expected
    return float((rest + lowest[classes]).min()), float((rest + highest[classes]).max())


def part_below(border: int, half: int, points: int) -> Floats:
    """How much of each point counts for the share below a border, blurred over a number of borders on either side."""
    borders = np.arange(border - half, border + half + 1)
    return np.asarray((borders[None, :] > np.arange(points)[:, None]).mean(axis=1))


def unbiased_shares(counts: Ints, shares: Floats, *, band: int, near: float, far: float) -> tuple[Floats, Floats]:
    """The unbiased estimate of smallest variance, if `shares` are about right, and its covariance given the population.

    With M the probabilities of the cells (rows) given the points, and m = M shares, the Fisher information of a report
    is I = M' diag(1/m) M. The estimate is I^-1 M' diag(1/m) c for the relative counts c: unbiased whatever the weights
    m are. Its covariance is (I^-1 - diag(shares))/n, given who holds what. Single shares are all noise; sums of many
    neighbours, and the mean, are not.
    """
    points, n, gain = len(shares), int(counts.sum()), near - far
    first = np.arange(points)
    cells = np.arange(len(counts))
    below = np.concatenate([[0.0], np.cumsum(shares)])
    mixed = far + gain * (below[np.minimum(points, cells + 1)] - below[np.maximum(0, cells - band + 1)])
    weight = np.concatenate([[0.0], np.cumsum(1 / mixed)])
    pull = np.concatenate([[0.0], np.cumsum(counts / n / mixed)])
    in_band = weight[first + band] - weight[first]
    late, early = np.maximum.outer(first, first), np.minimum.outer(first, first)
    in_both = np.where(early + band > late, weight[np.minimum(early + band, len(counts))] - weight[late], 0.0)
    information = far**2 * weight[-1] + far * gain * np.add.outer(in_band, in_band) + gain**2 * in_both
    inverse = np.linalg.inv(information)
    whole = inverse @ (far * pull[-1] + gain * (pull[first + band] - pull[first]))
    return whole, (inverse - np.diag(shares)) / n


CELLS = 255
MOST_CELLS = 4095
"""The largest number of cells: intervals need a matrix of points by points."""
STOP = 1e-3
"""EM ends where an iteration gains less log-likelihood, over all reports; without smoothing, e^epsilon times that."""
SMOOTH, USUAL_POINTS, USUAL_REPORTS = 0.25, 1024, 100_000
"""The smoothing of the paper, and about the numbers of points and reports in its experiments."""
MOST_BLUR = 0.25
"""The longest blur of an interval, as a part of the range."""
LEAST_EPSILON = 1e-5
"""Below it floats lose the reports' Fisher information, and with it the intervals."""


@dataclass(frozen=True, kw_only=True)
class SquareWave(Banded):
    """The distribution of a bounded number: histogram, quantiles, mean, shares of ranges; from one report per person.

    A value is rounded without bias to one of `cells` + 1 points. Point j makes the `band` cells from j on e^eps times
    as likely as the others, of cells + band in all. The estimate is the distribution over the points that makes the
    reports most likely (EM), smoothed a little after every iteration (EMS): it is consistent, and not unbiased. Its
    intervals are those of an unbiased estimate, by the reports' Fisher information; see `Distribution`.

    The mean has about the variance of the hybrid mechanism's.

    Parameters
    ----------
    epsilon
        What one report may spend.
    low, high
        The range of the number.
    cells, band, other
        Cells between the points, cells of the band, and of 2^64 the share of each cell outside it; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> wave = SquareWave(epsilon=2.0, low=0.0, high=10.0)
        >>> reports = wave.randomize([2.0, 3.0, 4.0, 8.0] * 20_000, Random(seed=1))
        >>> estimate = wave.estimate(wave.accumulate(reports))
        >>> float(estimate.mean().value[0].round(1)), float(estimate.share(0.0, 5.0).value[0].round(2))
        (4.3, 0.75)

    References
    ----------
    Li et al., 2020; T. Wang et al., 2021, appendix E.1.
    """

    bias: ClassVar = "consistent"

    def _shape(self) -> tuple[int, int]:
        """The band that tells most of the value (b of the paper), and has no divisor in common with the cells."""
        cells, eps = self.cells or CELLS, min(self.epsilon, 30.0)
        if eps < 1e-3:  # the formula loses its digits
            half = 0.5 - eps / 3
        else:
            half = (eps * math.exp(eps) - math.expm1(eps)) / (2 * math.exp(eps) * (math.expm1(eps) - eps))
        best = max(1, round(2 * half * (cells + 1)))
        return cells, next(band for band in range(best, 0, -1) if math.gcd(band, cells) == 1)

    def _resolve(self) -> None:
        if self.epsilon < LEAST_EPSILON:
            raise InvalidValue("epsilon", self.epsilon, f"at least {LEAST_EPSILON:g}: less tells nothing")
        if self.cells and not self.band:
            self._integer("cells", 1, MOST_CELLS)
            self._set("band", self._shape()[1])
        super()._resolve()
        self._integer("cells", 1, MOST_CELLS)

    @property
    def points(self) -> Floats:
        """The numbers that values are rounded to."""
        return np.linspace(self.low, self.high, self.cells + 1)

    def truth(self, values: Values) -> Floats:
        """The shares of the points, as rounding makes them: what an estimate should come to."""
        units = self.encode(values)
        lower, part = units >> 32, (units & (GRAIN - 1)) / GRAIN
        size = self.cells + 1
        shares = np.bincount(lower, 1 - part, size) + np.bincount(np.minimum(lower + 1, self.cells), part, size)
        return shares / len(units)

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.cells + self.band,)

    def _fold(self, reports: Reports) -> Ints:
        return np.bincount(reports.private["cell"], minlength=self.cells + self.band)

    def _estimate(self, sketch: Sketch, candidates: Values | None = None) -> Distribution:
        return self.distribution(sketch)

    def smoothing(self, n: int) -> float:
        """The share that moves to each neighbouring point after an iteration: 1/4 at 1,024 points and 100,000 reports.

        The same in the units of the range at any number of points, and less the more reports there are: the published
        quarter for any number would leave a bias that no number of reports removes.
        """
        scale = ((self.cells + 1) / USUAL_POINTS) ** 2 * USUAL_REPORTS / n
        return min(SMOOTH, SMOOTH * scale)

    def likeliest(self, sketch: Sketch, *, smooth: bool = True) -> Floats:
        """The shares of the points, by EMS; or by EM alone, which follows atoms better, and noise too.

        Example:
            >>> from hubbub import Random
            >>> wave = SquareWave(epsilon=4.0, cells=15)
            >>> sketch = wave.accumulate(wave.randomize([-1.0] * 9000 + [0.6] * 1000, Random(seed=1)))
            >>> [int(np.argmax(wave.likeliest(sketch, smooth=smooth))) for smooth in (True, False)]
            [0, 0]
        """
        from hubbub.kernels.estimators import most_likely

        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        near, far = self.rates
        shares, _ = most_likely(
            sketch.counts,
            band=self.band,
            near=near,
            far=far,
            smoothing=self.smoothing(sketch.n) if smooth else 0.0,
            tolerance=STOP if smooth else STOP * math.exp(min(self.epsilon, 10.0)),
        )
        return shares

    def distribution(self, sketch: Sketch, *, smooth: bool = True) -> Distribution:
        """The shares of `likeliest`, with intervals of the mean, of quantiles and of shares of ranges.

        Example:
            >>> from hubbub import Random
            >>> wave = SquareWave(epsilon=4.0, cells=15)
            >>> sketch = wave.accumulate(wave.randomize([-1.0] * 9000 + [0.6] * 1000, Random(seed=1)))
            >>> float(wave.distribution(sketch, smooth=False).share(-1.0, 0.0).value[0].round(2))
            0.9
        """
        shares = self.likeliest(sketch, smooth=smooth)
        near, far = self.rates
        whole, covariance = unbiased_shares(sketch.counts, shares, band=self.band, near=near, far=far)
        return _distribution(self, sketch.n, shares, whole, covariance)

    @property
    def rates(self) -> tuple[float, float]:
        """The probability of a cell of the band, and of any other."""
        return float(Fraction(self._high, TWO_64)), float(Fraction(self.other, TWO_64))

    def influence(self) -> Influence:
        """The numbers that one forged report can stand for in `Distribution.mean()`, whatever the other reports are.

        Honest reports average the truth whatever their weights are. So forged reports move the mean by `shift` at most.
        """
        return self._influence(self.points, self.low, self.high)

    def share_influence(self, low: float, high: float, *, blur: float = 0.0) -> Influence:
        """The numbers that one forged report can stand for in the interval of `Distribution.share(low, high)`.

        The interval of a quantile moves with the shares: where forged reports can move the share below any number by s,
        the p-quantile stays between the quantiles of p - s and p + s.

        `low`, `high`: the ends of the share, of which the nearest borders are taken. `blur`: the length that its ends
        are blurred over: the `resolution` of the distribution there.
        """
        if not self.low <= low <= high <= self.high:
            raise InvalidValue("high", (low, high), f"numbers in ascending order, from {self.low:g} to {self.high:g}")
        target = self._below(high, blur) - self._below(low, blur)
        return self._influence(target, 0.0, 1.0)

    def _below(self, number: float, blur: float) -> Floats:
        """How much of each point is below the border nearest to a number, blurred as `Distribution` does."""
        size, part = self.cells + 1, 1 / (self.high - self.low)
        border = int(np.argmin(np.abs(self._borders - number)))
        return part_below(border, min(round(blur * part * size / 2), border, size - border), size)

    def _influence(self, target: Floats, low: float, high: float) -> Influence:
        from hubbub.statistics.influence import Influence

        near, far = self.rates
        least, most = forged_range(target, cells=self.cells, band=self.band, near=near, far=far)
        return Influence(Fraction(least), Fraction(most), Fraction(low), Fraction(high))

    @property
    def _borders(self) -> Floats:
        """The ends of the cells around the points."""
        points = self.points
        return np.concatenate([[self.low], (points[:-1] + points[1:]) / 2, [self.high]])

    def resolution(self, n: int, slope: ArrayLike = 20.0) -> Floats:
        """The length over which the intervals of n reports blur the distribution, in the units of the range.

        Chosen so that blurring adds about a third of a standard error where the density has that slope (in units in
        which the range and the mean density are 1).
        """
        size = self.cells + 1
        gain = float(Fraction(self._high - self.other, TWO_64))
        noise = math.sqrt(1 / (2 * n * gain**2 * size * (self.cells + self.band)))  # of a blur of the whole range
        part = np.minimum((7.2 * noise / np.asarray(slope, dtype=np.float64)) ** 0.4, MOST_BLUR)
        return np.asarray(np.maximum(part, 2 / size) * (self.high - self.low))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, low=0.0, high=10.0, cells=15)
        yield cls(epsilon=2.0, cells=6, band=4)
        yield cls(epsilon=0.5)


def _distribution(wave: SquareWave, n: int, shares: Floats, whole: Floats, covariance: Floats) -> Distribution:
    from hubbub.statistics.distribution import Distribution

    return Distribution.of(
        shares,
        whole,
        covariance,
        n,
        points=wave.points,
        borders=wave._borders,
        resolution=wave.resolution(n, _slopes(shares)),
        bias=wave.bias,
    )


def _slopes(shares: Floats) -> Floats:
    """Of every border, the steepest slope of the density as far around it as intervals may blur; at least 1."""
    size = len(shares)
    steep = np.concatenate([[0.0], np.abs(np.diff(shares)) * size**2, [0.0]])
    reach = math.ceil(size * MOST_BLUR / 2)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(steep, reach), 2 * reach + 1)
    return np.asarray(np.maximum(around.max(axis=1), 1.0))
