"""Distributions: a whole histogram of a number as one estimate, with its quantiles, mean and shares of ranges."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Bias, Estimate

Floats = NDArray[np.float64]
_Z = NormalDist().inv_cdf(0.975)
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Distribution(Estimate):
    """How a number is distributed: the share of each of its points, which are not negative and sum to 1.

    `value` is the likeliest distribution, or another that obeys these constraints. It is closer to the truth than
    unbiased estimates are, and not unbiased. All intervals are made of `whole`, an unbiased estimate of the same shares
    from the same reports, and its covariance. Shares of single points are too noisy to be told, so that intervals are
    of the distribution blurred over `resolution`, half of it to each side.

    An interval of the mean holds the truth in 95% of cases, whatever the truth. One of a share does where the density
    changes little within the resolution of its ends; near an atom (many people with one value) it may not. One of a
    quantile has beside it what `value`, which is not blurred, says: it holds the truth at most atoms too. `atoms=True`
    widens either by all that blurring can hide, so that it holds the truth near any atom, and elsewhere more often than
    95%.

    Parameters
    ----------
    points, borders
        The number that each share is of, and the ends of the cells around them, one more.
    whole, covariance
        The unbiased estimate, and its covariance given the population.
    resolution
        The length over which intervals blur, in the units of the points; everywhere, or at every border.

    Example:
        >>> cells = {"points": [0, 1, 2], "borders": [-0.5, 0.5, 1.5, 2.5]}
        >>> made = Distribution.made([0.5, 0.3, 0.2], [0.5, 0.32, 0.18], np.eye(3) * 1e-4, 1000, **cells)
        >>> answers = made.quantile(0.5), made.share(-0.5, 1.5), made.mean()
        >>> [round(float(answer.value[0]), 2) for answer in answers]
        [0.5, 0.8, 0.68]
    """

    points: Floats = field(default_factory=lambda: np.zeros(0))
    borders: Floats = field(default_factory=lambda: np.zeros(0))
    whole: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    covariance: Floats = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    resolution: Floats = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        super().__post_init__()
        size = len(self.value)
        shapes = {"points": (size,), "borders": (size + 1,), "whole": (size,), "covariance": (size, size)}
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
    def made(
        cls,
        value: ArrayLike,
        whole: ArrayLike,
        covariance: ArrayLike,
        n: int,
        *,
        points: ArrayLike,
        borders: ArrayLike,
        resolution: ArrayLike = 0.0,
        bias: Bias = "consistent",
    ) -> Self:
        """A distribution from its shares and their unbiased estimate: what each share's interval is follows.

        Example:
            >>> Distribution.made([1, 0], [1, 0], np.eye(2), 9, points=[0, 1], borders=[-1, 0.5, 2]).stderr.tolist()
            [1.0, 1.0]
        """
        given: dict[str, Any] = {"points": points, "borders": borders, "whole": whole, "covariance": covariance}
        zeros = np.zeros(len(np.atleast_1d(value)))
        blank = cls(value, zeros, n, bias, resolution=resolution, **given)  # type: ignore[arg-type]
        return blank._told()

    def _told(self) -> Self:
        """The same, with the interval of every share."""
        after, before = np.arange(1, len(self) + 1), np.arange(len(self))
        variance = self._blurred(after, after) + self._blurred(before, before) - 2 * self._blurred(before, after)
        return replace(self, variance=np.maximum(variance, 0.0), centre=np.diff(self._below))

    # -- what is asked of it ----------------------------------------------------------------------------------

    def mean(self) -> Estimate:
        """The mean, without bias.

        Example:
            >>> cells = {"points": [1, 5], "borders": [0, 2, 6]}
            >>> made = Distribution.made([1, 0], [1, 0], [[0.5, -0.5], [-0.5, 0.5]], 9, **cells)
            >>> made.mean().value.tolist(), made.mean().stderr.round(2).tolist()
            ([1.0], [2.83])
        """
        low, high = float(self.borders[0]), float(self.borders[-1])
        # Shares sum to 1: from the range's end a mean keeps its digits, also in a range that is narrow and far from 0.
        at = self.points - low
        spread = max(float(self.value @ at**2) - float(self.value @ at) ** 2, 0.0)
        variance = max(float(at @ self.covariance @ at), 0.0)
        value = np.array([low + self.whole @ at])
        return Estimate(value, np.array([variance]), self.n, "none", "quantity", spread=spread, bounds=(low, high))

    def share(self, low: float, high: float, *, atoms: bool = False) -> Estimate:
        """The share of people between two numbers; of the nearest borders, as far as the interval goes.

        Example:
            >>> made = Distribution.made([0.6, 0.4], [0.7, 0.3], np.eye(2) / 99, 9, points=[1, 5], borders=[0, 2, 6])
            >>> made.share(0, 2).value.tolist(), made.share(0, 2).centre.tolist()
            ([0.6], [0.7])
        """
        if not low <= high:
            raise InvalidValue("high", high, f"a number of at least low = {low:g}")
        start, end = (int(np.argmin(np.abs(self.borders - border))) for border in (low, high))
        value = float(np.diff(np.interp([low, high], self.borders, self._cumulated))[0])
        centre, error = self._between(start, end)
        if atoms:  # between the least that the inner range can hold and the most that the outer one can
            a, b = int(self._half[start]) + (start > 0), int(self._half[end]) + (end < len(self))
            inner, inner_error = self._between(start + a, end - b)
            outer, outer_error = self._between(max(start - a, 0), min(end + b, len(self)))
            bottom, top = inner - _Z * inner_error, outer + _Z * outer_error
            centre, error = (bottom + top) / 2, max(top - bottom, 0.0) / 2 / _Z
        told = np.array([value]), np.array([error**2])
        return Estimate(*told, self.n, self.bias, centre=np.array([centre]))

    def quantile(self, p: float | ArrayLike, *, level: float = 0.95, atoms: bool = False) -> Estimate:
        """The numbers below which shares p of the people lie: 0.5 is the median.

        The interval is all numbers at which the interval of the share below them holds p; and as far as the likeliest
        distribution has its quantiles of p less or more the error of that share. Blurring moves the former away from an
        atom, and not the latter. A cell on either side is for the rounding of values.

        Parameters
        ----------
        p
            A share, or several.
        level
            How often the interval holds the truth.
        atoms
            Whether it should hold near any atom, also near one of a few percent.

        Example:
            >>> made = Distribution.made([0.6, 0.4], [0.6, 0.4], np.eye(2) / 99, 9, points=[1, 5], borders=[0, 2, 6])
            >>> made.quantile([0.3, 0.8]).value.round(3).tolist()
            [1.0, 4.0]
        """
        asked = np.atleast_1d(np.asarray(p, dtype=np.float64))
        if not ((asked > 0) & (asked < 1)).all():
            raise InvalidValue("p", p, "shares between 0 and 1")
        if not 0 < level < 1:
            raise InvalidValue("level", level, "a probability between 0 and 1")
        reach = NormalDist().inv_cdf(0.5 + level / 2)
        every = np.arange(len(self) + 1)
        error = reach * np.sqrt(np.maximum(self._blurred(every, every), 0.0))
        ends = np.array([self._ends(share, self._below - error, self._below + error) for share in asked])
        outward = np.array([-1.0, 1.0])
        if atoms:
            ends += outward * np.interp(ends, self.borders, self.resolution) / 2
        else:
            errors = np.interp(ends, self.borders, error).max(axis=1, keepdims=True)
            likeliest = np.interp(asked[:, None] + outward * errors, self._cumulated, self.borders)
            ends = outward * np.maximum(outward * ends, outward * likeliest)
        ends = np.clip(ends + outward * self._cell, self.borders[0], self.borders[-1])  # values are rounded by a cell
        value = np.interp(asked, self._cumulated, self.borders)
        ends = np.stack([np.minimum(ends[:, 0], value), np.maximum(ends[:, 1], value)], axis=1)
        # A little wider: an end may be a value that many people have, and rounding must not leave it out.
        half = (ends[:, 1] - ends[:, 0]) / 2 * (1 + _ROUNDING)
        return Estimate(
            value,
            (half / reach) ** 2,
            self.n,
            self.bias,
            "quantity",
            tuple(f"{100 * share:g}%" for share in asked),
            bounds=(float(self.borders[0]), float(self.borders[-1])),
            centre=ends.mean(axis=1),
        )

    def coarser(self, cells: int) -> Estimate:
        """The histogram of so many cells of equal width, each with its interval.

        Example:
            >>> made = Distribution.made(
            ...     [0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4], np.eye(4), 9, points=range(4), borders=range(5)
            ... )
            >>> made.coarser(2).value.round(9).tolist(), made.coarser(2).labels
            ([0.3, 0.7], ('0 to 2', '2 to 4'))
        """
        ends = np.linspace(self.borders[0], self.borders[-1], cells + 1)
        shares = [self.share(low, high) for low, high in pairwise(ends)]
        value, variance = (np.array([getattr(one, name)[0] for one in shares]) for name in ("value", "variance"))
        centre = np.array([np.nan if one.centre is None else one.centre[0] for one in shares])
        labels = tuple(f"{low:g} to {high:g}" for low, high in pairwise(ends))
        return Estimate(value, variance, self.n, self.bias, "share", labels, centre=centre)

    def linear(self, weights: ArrayLike) -> Estimate:
        rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if rows.ndim != 2 or rows.shape[1] != len(self) or not np.isfinite(rows).all():
            raise InvalidValue("weights", np.shape(weights), f"{len(self)} finite weights a row")
        variance = np.maximum(np.einsum("ij,jk,ik->i", rows, self.covariance, rows), 0.0)
        return Estimate(rows @ self.value, variance, self.n, self.bias, self.kind, centre=rows @ self.whole)

    def of_population(self, size: int) -> Self:
        if size < self.n:
            raise InvalidValue("size", size, f"at least the {self.n} who answered")
        sampling = (np.diag(self.value) - np.outer(self.value, self.value)) / self.n * (1 - self.n / size)
        return replace(self, covariance=self.covariance + sampling)._told()

    # -- the distribution function ----------------------------------------------------------------------------

    @cached_property
    def _cumulated(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.value)])

    @property
    def _cell(self) -> float:
        return float(self.borders[-1] - self.borders[0]) / len(self)

    @cached_property
    def _half(self) -> NDArray[np.int64]:
        """Half the resolution at every border, in cells; less near the ends of the range, where the share is known."""
        to_the_end = np.minimum(np.arange(len(self) + 1), np.arange(len(self) + 1)[::-1])
        return np.minimum(np.rint(self.resolution / self._cell / 2).astype(np.int64), to_the_end)

    def _window(self, border: Any) -> tuple[Any, Any]:
        """The borders that a border is blurred over, from and to."""
        return border - self._half[border], border + self._half[border] + 1

    @cached_property
    def _below(self) -> Floats:
        """Of every border, the unbiased share below it, blurred."""
        start, end = self._window(np.arange(len(self) + 1))
        sums = np.concatenate([[0.0, 0.0], np.cumsum(np.cumsum(self.whole))])
        return np.asarray((sums[end] - sums[start]) / (end - start))

    @cached_property
    def _products(self) -> Floats:
        """Sums of the covariances of the shares below all borders, of which `_blurred` takes means over squares."""
        sums = np.zeros((len(self) + 2, len(self) + 2))
        sums[2:, 2:] = np.cumsum(np.cumsum(np.cumsum(np.cumsum(self.covariance, axis=0), axis=1), axis=0), axis=1)
        return sums

    def _blurred(self, first: Any, second: Any) -> Any:
        """The covariance of the blurred shares below two borders, or below pairs of them."""
        (a, b), (c, d), sums = self._window(np.asarray(first)), self._window(np.asarray(second)), self._products
        return (sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c]) / ((b - a) * (d - c))

    def _between(self, start: int, end: int) -> tuple[float, float]:
        """The unbiased share between two borders, blurred, and its standard error."""
        if end <= start:
            return 0.0, 0.0
        variance = self._blurred(start, start) + self._blurred(end, end) - 2 * self._blurred(start, end)
        return float(self._below[end] - self._below[start]), float(np.sqrt(max(variance, 0.0)))

    def _ends(self, share: float, least: Floats, most: Floats) -> tuple[float, float]:
        """The first and the last number at which an interval of the share below holds `share`, between borders too."""
        inside = np.flatnonzero((least <= share) & (share <= most))
        if not len(inside):  # the distribution function jumps over it: between the two borders around
            place = int(np.clip(np.searchsorted(self._below, share), 1, len(self)))
            return float(self.borders[place - 1]), float(self.borders[place])
        first, last = int(inside[0]), int(inside[-1])
        low = self.borders[first]
        if first > 0 and most[first] > most[first - 1]:
            low = np.interp(share, most[first - 1 : first + 1], self.borders[first - 1 : first + 1])
        high = self.borders[last]
        if last < len(self) and least[last + 1] > least[last]:
            high = np.interp(share, least[last : last + 2], self.borders[last : last + 2])
        return float(low), float(high)
