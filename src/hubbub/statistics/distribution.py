"""Distributions: a whole histogram of a number as one estimate, with its quantiles, mean and shares of ranges."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.drawing import Bar
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Bias, Estimate
from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats, Ints

_Z = NormalDist().inv_cdf(0.975)
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Estimate):
    """The distribution of a number over points: shares that are at least 0 and sum to 1.

    `value` is the likeliest distribution, or another one under these constraints. It is closer to the truth than an
    unbiased estimate, and biased. All intervals come from `unbiased`, an unbiased estimate of the same shares from the
    same reports, and its covariance. The unbiased shares of single points are too noisy to be of use: intervals are
    those of the distribution blurred over `resolution`, half of it to each side.

    The interval of the mean covers the truth in 95% of cases, whatever the truth. Those of quantiles and of shares,
    also of the single points, allow for atoms (values that many people have): they are widened by all that blurring can
    hide, and cover the truth in more than 95% of cases. With `atoms=False` they are narrower, and hold only where the
    density changes little within the resolution. They are computed at 95%; another level scales them.

    Parameters
    ----------
    points, borders
        The number that each share belongs to, and the borders of the cells around the points: one more.
    unbiased, covariance
        The unbiased estimate of the shares, and its covariance given the population.
    resolution
        The length over which the distribution is blurred for intervals: one number, or one at every border.

    Example:
        >>> cells = {"points": [0, 1, 2], "borders": [-0.5, 0.5, 1.5, 2.5]}
        >>> ages = Distribution.of([0.5, 0.3, 0.2], [0.5, 0.32, 0.18], np.eye(3) * 1e-4, 1000, **cells)
        >>> answers = ages.quantile(0.5), ages.share(-0.5, 1.5), ages.mean()
        >>> [round(float(answer.value[0]), 2) for answer in answers]
        [0.5, 0.8, 0.68]
    """

    points: Floats = field(default_factory=lambda: np.zeros(0))
    borders: Floats = field(default_factory=lambda: np.zeros(0))
    unbiased: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    covariance: Floats = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    resolution: Floats = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        super().__post_init__()
        size = len(self.value)
        shapes = {"points": (size,), "borders": (size + 1,), "unbiased": (size,), "covariance": (size, size)}
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape:
                raise InvalidValue(name, array.shape, f"the shape {shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        blur = np.array(np.broadcast_to(self.resolution, (size + 1,)), dtype=np.float64)
        blur.flags.writeable = False
        object.__setattr__(self, "resolution", blur)
        if not (np.diff(self.borders) > 0).all():
            raise InvalidValue("borders", self.borders, "numbers in ascending order")

    @classmethod
    def of(
        cls,
        value: ArrayLike,
        unbiased: ArrayLike,
        covariance: ArrayLike,
        n: int,
        *,
        points: ArrayLike,
        borders: ArrayLike,
        resolution: ArrayLike = 0.0,
        bias: Bias = "consistent",
    ) -> Self:
        """A distribution from its shares and their unbiased estimate, with the interval of each share."""
        parts: dict[str, Any] = {"points": points, "borders": borders, "unbiased": unbiased, "covariance": covariance}
        zeros = np.zeros(len(np.atleast_1d(value)))
        blank = cls(value, zeros, n, bias, resolution=resolution, **parts)  # type: ignore[arg-type]
        return blank._with_intervals()

    def _with_intervals(self) -> Self:
        """The same distribution, with the variance and centre of every share."""
        centre, error = self._shares(np.arange(len(self)), np.arange(1, len(self) + 1), atoms=True)
        return replace(self, variance=error**2, centre=centre)

    def _sampled(self, rate: float) -> Self:
        sampling = rate * (np.diag(self.value) - np.outer(self.value, self.value))
        return replace(self, covariance=self.covariance + sampling)._with_intervals()

    # -- answers ------------------------------------------------------------------------------------------------

    def mean(self) -> Estimate:
        """The mean, without bias.

        Example:
            >>> cells = {"points": [1, 5], "borders": [0, 2, 6]}
            >>> ages = Distribution.of([1, 0], [1, 0], [[0.5, -0.5], [-0.5, 0.5]], 9, **cells)
            >>> ages.mean().value.tolist(), ages.mean().stderr.round(2).tolist()
            ([1.0], [2.83])
        """
        low, high = float(self.borders[0]), float(self.borders[-1])
        # Shares sum to 1: from the range's end a mean keeps its digits, also in a range that is narrow and far from 0.
        at = self.points - low
        spread = max(float(self.value @ at**2) - float(self.value @ at) ** 2, 0.0)
        variance = max(float(at @ self.covariance @ at), 0.0)
        value = np.array([low + self.unbiased @ at])
        return Estimate(value, np.array([variance]), self.n, "none", "quantity", spread=spread, bounds=(low, high))

    def share(self, low: float, high: float, *, atoms: bool = True) -> Estimate:
        """The share of people between two numbers; its interval is that of the nearest borders.

        It reaches from the least that the range without the resolution around its ends has, to the most that the range
        with it has. Without `atoms` it is that of the blurred share.

        Example:
            >>> ages = Distribution.of([0.6, 0.4], [0.7, 0.3], np.eye(2) / 99, 9, points=[1, 5], borders=[0, 2, 6])
            >>> ages.share(0, 2).value.tolist(), ages.share(0, 2, atoms=False).centre.tolist()
            ([0.6], [0.7])
        """
        if not low <= high:
            raise InvalidValue("high", high, f"a number of at least low = {low:g}")
        return self._between(np.array([low, high]), atoms=atoms)

    def quantile(self, p: float | ArrayLike, *, level: float = 0.95, atoms: bool = True) -> Estimate:
        """The numbers below which shares p of the people lie: 0.5 is the median.

        The interval goes from the first number that is not significantly below the quantile to the last that is not
        significantly above it. It is extended by half the resolution, over which intervals are blurred; to the
        quantiles of the likeliest distribution at p minus and plus the error of that share; and by one cell for the
        rounding of values.

        Parameters
        ----------
        p
            A share, or several.
        level
            The probability that the interval covers the truth.
        atoms
            Whether the interval covers the truth near atoms too. Without, it is not extended by half the resolution,
            and holds only where the density changes little within the resolution.

        Example:
            >>> ages = Distribution.of([0.6, 0.4], [0.6, 0.4], np.eye(2) / 99, 9, points=[1, 5], borders=[0, 2, 6])
            >>> ages.quantile([0.3, 0.8]).value.round(3).tolist()
            [1.0, 4.0]
        """
        levels = np.atleast_1d(np.asarray(p, dtype=np.float64))
        if not ((levels > 0) & (levels < 1)).all():
            raise InvalidValue("p", p, "shares between 0 and 1")
        reach = normal_reach(level)
        every = np.arange(len(self) + 1)
        error = reach * np.sqrt(np.maximum(self._blurred(every, every), 0.0))
        ends = np.array([self._ends(share, self._below - error, self._below + error) for share in levels])
        outward = np.array([-1.0, 1.0])
        errors = np.interp(ends, self.borders, error).max(axis=1, keepdims=True)
        likeliest = np.interp(levels[:, None] + outward * errors, self._cumulated, self.borders)
        if atoms:
            ends += outward * np.interp(ends, self.borders, self.resolution) / 2
        ends = outward * np.maximum(outward * ends, outward * likeliest)
        ends = np.clip(ends + outward * self._cell, self.borders[0], self.borders[-1])  # values are rounded by a cell
        value = np.interp(levels, self._cumulated, self.borders)
        ends = np.stack([np.minimum(ends[:, 0], value), np.maximum(ends[:, 1], value)], axis=1)
        # A little wider, so that rounding does not exclude an end that many people have as their value.
        half = (ends[:, 1] - ends[:, 0]) / 2 * (1 + _ROUNDING)
        return Estimate(
            value,
            (half / reach) ** 2,
            self.n,
            self.bias,
            "quantity",
            tuple(f"{100 * share:g}%" for share in levels),
            bounds=(float(self.borders[0]), float(self.borders[-1])),
            centre=ends.mean(axis=1),
        )

    def coarser(self, cells: int, *, atoms: bool = True) -> Estimate:
        """The histogram of `cells` cells of equal width, each with its interval, as `share` gives it.

        Example:
            >>> ages = Distribution.of(
            ...     [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4], np.eye(4), 9, points=range(4), borders=range(5)
            ... )
            >>> ages.coarser(2).value.round(9).tolist(), ages.coarser(2).labels
            ([0.3, 0.7], ('0 to 2', '2 to 4'))
        """
        ends = np.linspace(self.borders[0], self.borders[-1], cells + 1)
        labels = tuple(f"{low:g} to {high:g}" for low, high in pairwise(ends))
        return replace(self._between(ends, atoms=atoms), labels=labels)

    def linear(self, weights: ArrayLike) -> Estimate:
        rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if rows.ndim != 2 or rows.shape[1] != len(self) or not np.isfinite(rows).all():
            raise InvalidValue("weights", np.shape(weights), f"{len(self)} finite weights a row")
        variance = np.maximum(np.einsum("ij,jk,ik->i", rows, self.covariance, rows), 0.0)
        sums = Estimate(rows @ self.value, variance, self.n, self.bias, self.kind, centre=rows @ self.unbiased)
        return sums.made_of(self, rows)

    def taken(self, places: Ints) -> Estimate:
        labels = tuple(self.names()[place] for place in places.tolist())
        shares = Estimate(self.value[places], self.variance[places], self.n, self.bias, labels=labels)
        return shares if self.centre is None else replace(shares, centre=self.centre[places])

    def names(self) -> Sequence[str]:
        """What each cell is called: its borders."""
        return [f"{low:g} to {high:g}" for low, high in pairwise(self.borders)]

    def bars(self, *, most: int = 20, level: float = 0.95) -> list[Bar]:
        """The shares of cells in their order, at most `most` cells: neighbours are joined."""
        cells = self if len(self) <= most else self.coarser(most)
        value, low, high = cells.possible(level)
        return [Bar(*row) for row in zip(cells.names(), value.tolist(), low.tolist(), high.tolist(), strict=True)]

    def __repr__(self) -> str:
        middle, (low, high) = self.quantile([0.25, 0.5, 0.75]), (self.borders[0], self.borders[-1])
        quarters = ", ".join(f"{value:.4g}" for value in middle.value)
        return f"Distribution(from {low:g} to {high:g}, quartiles {quarters}; n={self.n}, bias={self.bias})"

    def of_population(self, size: int) -> Self:
        if size < self.n:
            raise InvalidValue("size", size, f"at least the {self.n} who answered")
        sampling = (np.diag(self.value) - np.outer(self.value, self.value)) / self.n * (1 - self.n / size)
        return replace(self, covariance=self.covariance + sampling)._with_intervals()

    # -- the distribution function ----------------------------------------------------------------------------

    @cached_property
    def _cumulated(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.value)])

    @property
    def _cell(self) -> float:
        return float(self.borders[-1] - self.borders[0]) / len(self)

    @cached_property
    def _half(self) -> Ints:
        """Half the resolution at every border, in cells; less near the ends of the range, where the share is known."""
        to_the_end = np.minimum(np.arange(len(self) + 1), np.arange(len(self) + 1)[::-1])
        return np.minimum(np.rint(self.resolution / self._cell / 2).astype(np.int64), to_the_end)

    def _window(self, border: Ints) -> tuple[Ints, Ints]:
        """The range of borders that a border is blurred over."""
        return border - self._half[border], border + self._half[border] + 1

    @cached_property
    def _below(self) -> Floats:
        """The unbiased, blurred share below every border."""
        start, end = self._window(np.arange(len(self) + 1))
        sums = np.concatenate([[0.0, 0.0], np.cumsum(np.cumsum(self.unbiased))])
        return np.asarray((sums[end] - sums[start]) / (end - start))

    @cached_property
    def _products(self) -> Floats:
        """Sums of the covariances of the shares below all borders, of which `_blurred` takes means over squares."""
        sums = np.zeros((len(self) + 2, len(self) + 2))
        sums[2:, 2:] = np.cumsum(np.cumsum(np.cumsum(np.cumsum(self.covariance, axis=0), axis=1), axis=0), axis=1)
        return sums

    def _blurred(self, first: Ints, second: Ints) -> Floats:
        """The covariance of the blurred shares below two borders, or below pairs of them."""
        (a, b), (c, d), sums = self._window(first), self._window(second), self._products
        return np.asarray((sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c]) / ((b - a) * (d - c)))

    def _between(self, ends: Floats, *, atoms: bool) -> Estimate:
        """The shares of people between each two of some numbers in ascending order."""
        places = np.abs(self.borders - ends[:, None]).argmin(axis=1)
        centre, error = self._shares(places[:-1], places[1:], atoms=atoms)
        value = np.diff(np.interp(ends, self.borders, self._cumulated))
        return Estimate(value, error**2, self.n, self.bias, centre=centre)

    def _shares(self, start: Ints, end: Ints, *, atoms: bool) -> tuple[Floats, Floats]:
        """The centre of the interval of the share between each two borders, and its length as a standard error."""
        if not atoms:
            return self._blurred_shares(start, end)
        size, every = len(self), np.arange(len(self) + 1)
        begins, ends = every - self._half, every + self._half  # what each border is blurred over

        def before(border: Ints) -> Ints:
            return np.asarray(size - np.argmax(ends[::-1] <= border[:, None], axis=1))

        def after(border: Ints) -> Ints:
            return np.asarray(np.argmax(begins >= border[:, None], axis=1))

        # One border further, for values are rounded to points; all values are between the ends of the range.
        inside = np.minimum(start + (start > 0), size), np.maximum(end - (end < size), 0)
        within = after(inside[0]), before(inside[1])
        around = before(np.maximum(start - 1, 0)), after(np.minimum(end + 1, size))
        (inner, inner_error), (outer, outer_error) = self._blurred_shares(*within), self._blurred_shares(*around)
        bottom, top = inner - _Z * inner_error, outer + _Z * outer_error
        # By noise, the range within may have a larger estimated share than the range around it.
        return (bottom + top) / 2, np.maximum((top - bottom) / 2 / _Z, inner_error)

    def _blurred_shares(self, start: Ints, end: Ints) -> tuple[Floats, Floats]:
        """The unbiased, blurred share between each two borders, and its standard error; 0 where they are not apart."""
        variance = self._blurred(start, start) + self._blurred(end, end) - 2 * self._blurred(start, end)
        apart = end > start
        share, error = self._below[end] - self._below[start], np.sqrt(np.maximum(variance, 0.0))
        return np.where(apart, share, 0.0), np.where(apart, error, 0.0)

    def _ends(self, share: float, least: Floats, most: Floats) -> tuple[float, float]:
        """The first number that is not significantly below the quantile, and the last that is not significantly above.

        At an atom the distribution function jumps over `share`. Borders before the jump are significantly below the
        quantile and those after it significantly above, so that no border's interval holds `share` but by noise.
        """
        first = int(np.flatnonzero(most >= share)[0])
        last = int(np.flatnonzero(least <= share)[-1])
        low, high = self.borders[min(first, last)], self.borders[max(first, last)]
        if 0 < first <= last and most[first] > most[first - 1]:
            low = np.interp(share, most[first - 1 : first + 1], self.borders[first - 1 : first + 1])
        if first <= last < len(self) and least[last + 1] > least[last]:
            high = np.interp(share, least[last : last + 2], self.borders[last : last + 2])
        return float(low), float(high)
