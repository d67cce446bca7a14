"""Estimates: values with their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue, needs
from hubbub.core.noise import Noise, normal_reach
from hubbub.core.reports import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.table import Table

Bias = Literal["none", "ratio", "consistent", "heuristic"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated values with their errors.

    Parameters
    ----------
    value
        Shares of the population for frequencies; the quantity itself for means and sums.
    variance
        Of the randomisation, given the population (T. Wang, 2021, Eq 3.2).
    n
        How many reports the estimate rests on.
    bias
        "none": the estimator is unbiased. "ratio": one unbiased estimate divided by another, whose bias is far below
        its error. "consistent": it obeys constraints, by post-processing or as a likeliest distribution, which trades
        bias for error. "heuristic": decoded by a method without such a guarantee.
    kind
        "share" or "quantity".
    labels
        A name for each value.
    noise
        The second moments as functions of the shares, where the mechanism declares them: `linear` needs the covariance
        of two values.
    spread
        For a mean, or each of several: the variance of the values among the people, where reports give an estimate.
    bounds
        The smallest and the largest possible value, where they are known; for shares 0 and 1. See `possible`.
    centre
        Where `value` is smoothed over time: the unbiased estimate whose errors `variance` and `noise` are. Intervals
        are centred on it, and extended to include `value`. Elsewhere the middle of an interval that is not symmetric.

    Example:
        >>> estimate = Estimate(value=[0.5, 0.3, 0.2], variance=[1e-4] * 3, n=1000)
        >>> low, high = estimate.interval(0.95)
        >>> [round(float(x), 4) for x in (low[0], high[0])]
        [0.4804, 0.5196]
        >>> estimate.counts().tolist()
        [500.0, 300.0, 200.0]
    """

    value: Floats
    variance: Floats
    n: int
    bias: Bias = "none"
    kind: Literal["share", "quantity"] = "share"
    labels: tuple[str, ...] | None = None
    noise: Noise | None = field(default=None, repr=False)
    spread: float | Floats | None = None
    bounds: tuple[float, float] | None = None
    centre: Floats | None = None

    if TYPE_CHECKING:

        def __init__(  # of lists and single numbers, too: `__post_init__` makes arrays of them
            self,
            value: ArrayLike,
            variance: ArrayLike,
            n: int,
            bias: Bias = "none",
            kind: Literal["share", "quantity"] = "share",
            labels: tuple[str, ...] | None = None,
            noise: Noise | None = None,
            spread: float | Floats | None = None,
            bounds: tuple[float, float] | None = None,
            centre: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("value", "variance", "centre") if self.centre is not None else ("value", "variance"):
            array = np.atleast_1d(np.array(getattr(self, name), dtype=np.float64))
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if isinstance(self.spread, np.ndarray):
            object.__setattr__(self, "spread", self.spread.copy())
            self.spread.flags.writeable = False
        if self.value.shape != self.variance.shape:
            raise InvalidValue("variance", self.variance.shape, f"the shape of value, {self.value.shape}")
        if self.centre is not None and self.centre.shape != self.value.shape:
            raise InvalidValue("centre", self.centre.shape, f"the shape of value, {self.value.shape}")
        if self.labels is not None and len(self.labels) != len(self.value):
            raise InvalidValue("labels", len(self.labels), f"{len(self.value)} names, one per value")
        if self.bounds is not None:
            low, high = (float(end) for end in self.bounds)
            if not low <= high:
                raise InvalidValue("bounds", self.bounds, "a number, and one that is no smaller")
            object.__setattr__(self, "bounds", (low, high))
        if self.bias not in get_args(Bias):
            raise InvalidValue("bias", self.bias, f"one of {', '.join(get_args(Bias))}")

    def __len__(self) -> int:
        return len(self.value)

    @property
    def stderr(self) -> Floats:
        """Standard errors."""
        return np.sqrt(self.variance)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Normal intervals that cover the truth with probability `level`, one value at a time.

        They are not cut at 0 or 1: an interval that reaches below 0 says "not distinguishable from 0" (`possible` gives
        cut intervals, for people). Where the value is smoothed, they are centred on `centre` and cover the truth with
        at least that probability, however the truth changes. Where nothing is known they are infinite.

        Example:
            >>> low, high = Estimate(value=[0.0], variance=[1.0], n=10).interval(0.9)
            >>> round(float(high[0]), 3)
            1.645
            >>> [end.tolist() for end in Estimate(value=[0.0], variance=[0.0], n=10, centre=[1.0]).interval()]
            [[0.0], [1.0]]
        """
        reach = normal_reach(level) * self.stderr
        middle = self._middle
        return np.minimum(self.value, middle - reach), np.maximum(self.value, middle + reach)

    @property
    def _middle(self) -> Floats:
        return self.value if self.centre is None else self.centre

    def possible(self, level: float = 0.95) -> tuple[Floats, Floats, Floats]:
        """The values and their intervals, clipped to `bounds`: what to show to people.

        The truth lies within `bounds`, so that a clipped interval covers it exactly when the interval itself does. An
        interval outside of `bounds` becomes the nearest possible number. A clipped value is biased: use `value` for
        sums and further estimates.

        Example:
            >>> value, low, high = Estimate(value=[1.02, -0.01], variance=[1e-4, 1e-4], n=50).possible()
            >>> value.tolist(), low.round(3).tolist(), high.round(3).tolist()
            ([1.0, 0.0], [1.0, 0.0], [1.0, 0.01])
        """
        low, high = self.interval(level)
        least, most = self._bounds
        return np.clip(self.value, least, most), np.clip(low, least, most), np.clip(high, least, most)

    @property
    def _bounds(self) -> tuple[float, float]:
        anything = (0.0, 1.0) if self.kind == "share" else (-np.inf, np.inf)
        return anything if self.bounds is None else self.bounds

    def counts(self) -> Floats:
        """Shares scaled to numbers of people.

        Example:
            >>> Estimate(value=[0.25], variance=[0.0], n=8).counts().tolist()
            [2.0]
        """
        if self.kind != "share":
            raise InvalidValue("kind", self.kind, "shares: a quantity has no counts")
        return self.value * self.n

    def linear(self, weights: ArrayLike) -> Estimate:
        """The estimate of a weighted sum of the values, or of several sums (one row of weights each).

        The variance uses the declared covariance: values estimated from the same reports are not always independent.
        Where none is declared, it is the largest that any covariance allows: (sum of |weight| times standard error)^2.

        Example:
            >>> estimate = Estimate(value=[0.5, 0.3], variance=[1e-4, 1e-4], n=1000)
            >>> both = estimate.linear([1, 1])
            >>> both.value.tolist(), both.variance.round(9).tolist()
            ([0.8], [0.0004])
            >>> replace(estimate, noise=Noise(floor=1e-4, slope=0.0)).linear([1, 1]).variance.tolist()  # independent
            [0.0002]
        """
        rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if rows.ndim != 2 or rows.shape[1] != len(self) or not np.isfinite(rows).all():
            raise InvalidValue("weights", np.shape(weights), f"{len(self)} finite weights a row")
        value = rows @ self.value
        is_known = np.isfinite(self.variance)
        finite = np.where(is_known, self.variance, 0.0)
        variance = rows**2 @ finite
        if self.noise is not None and self.noise.knows_pairs:
            variance = variance + self.noise.cross_terms(self._middle, rows)
        else:
            several = (rows != 0).sum(axis=1) > 1
            variance = np.where(several, (np.abs(rows) @ np.sqrt(finite)) ** 2, variance)
        variance[(rows[:, ~is_known] != 0).any(axis=1)] = np.inf  # nothing is known of one of the values
        variance = np.maximum(variance, 0.0)
        centre = None if self.centre is None else rows @ self.centre
        return Estimate(value, variance, self.n, self.bias, self.kind, bounds=self._bounds_of(rows), centre=centre)

    def _bounds_of(self, rows: Floats) -> tuple[float, float] | None:
        """Bounds of all the weighted sums."""
        if not all(map(math.isfinite, self._bounds)):
            return None
        left, right = (end * rows for end in self._bounds)
        lowest, highest = np.minimum(left, right).sum(axis=1), np.maximum(left, right).sum(axis=1)
        return float(lowest.min(initial=0.0)), float(highest.max(initial=0.0))

    def of_population(self, size: int) -> Estimate:
        """The same values as estimates of a larger population, of which the n people who answered are a random sample.

        Adds the sampling variance f(1-f)/n (1 - n/size) as a separate term; for a mean, `spread` replaces f(1-f).

        Example:
            >>> Estimate(value=[0.5], variance=[0.0], n=100).of_population(200).variance.tolist()
            [0.00125]
        """
        if size < self.n:
            raise InvalidValue("size", size, f"at least the {self.n} who answered")
        if self.noise is not None and self.noise.sampling:
            raise InvalidValue("size", size, "an estimate that is not yet one of a larger population")
        return self._sampled((1 - self.n / size) / max(self.n, 1))

    def of_groups(self, groups: int, people: float | None = None) -> Estimate:
        """The same values as estimates of all people, if they are of one of several random groups of one size.

        Adds the sampling variance f(1-f)/people (1 - 1/groups). One group has everyone.

        Parameters
        ----------
        people
            How many people the group has; the n who answered unless given.
        """
        people = self.n if people is None else people
        return self if groups == 1 or not people else self._sampled((1 - 1 / groups) / people)

    def _sampled(self, rate: float) -> Self:
        """The same values with the variance of a sample: f(1-f), or the spread, times a rate."""
        if self.kind != "share":
            if self.spread is None:
                raise InvalidValue("spread", None, "shares, or a mean whose spread is known")
            return replace(self, variance=self.variance + self.spread * rate)
        share = np.clip(self.value, 0.0, 1.0)
        noise = None if self.noise is None else self.noise.with_sampling(rate)
        return replace(self, variance=self.variance + rate * share * (1 - share), noise=noise)

    def top(self, k: int) -> Ints:
        """The positions of the k largest values, largest first.

        Example:
            >>> Estimate(value=[0.1, 0.7, 0.2], variance=[0, 0, 0], n=9).top(2).tolist()
            [1, 2]
        """
        return np.argsort(-self.value, kind="stable")[:k]

    def names(self) -> Sequence[str]:
        """The labels, or the positions as text."""
        return self.labels if self.labels is not None else [str(code) for code in range(len(self))]

    def table(self, *, most: int = 20, level: float = 0.95) -> Table:
        """A rich table of the largest values with their intervals."""
        with needs("analytics"):
            from rich.markup import escape
            from rich.table import Table
        value, low, high = self.possible(level)
        names = self.names()
        table = Table(title=f"{self.n:,} reports", caption=f"bias: {self.bias}")
        for heading in ("value", self.kind, f"{level:.0%} interval"):
            table.add_column(heading, justify="left" if heading == "value" else "right")
        for i in self.top(most):
            style = None if low[i] > 0 else "dim"
            table.add_row(escape(names[i]), f"{value[i]:.4g}", f"{low[i]:.4g} to {high[i]:.4g}", style=style)
        if len(self) > most:
            table.add_row(f"... {len(self) - most} more", "", "", style="dim")
        return table

    def __rich__(self) -> Table:
        return self.table()

    def plot(self, *, most: int = 20, level: float = 0.95, ax: Axes | None = None, **options: Any) -> Axes:
        """A bar chart of the largest values with their intervals; returns matplotlib's axes.

        Example:
            >>> import matplotlib
            >>> matplotlib.use("agg")
            >>> Estimate(value=[0.6, 0.4], variance=[1e-3, 1e-3], n=99, labels=("a", "b")).plot().get_xlabel()
            'share of 99 reports'
        """
        with needs("analytics"):
            from matplotlib.figure import Figure
        positions = self.top(most)[::-1]
        if ax is None:
            ax = Figure(figsize=(7, 0.9 + 0.28 * len(positions)), layout="constrained").subplots()
        names = self.names()
        value, low, high = self.possible(level)
        plain = [names[i].replace("$", r"\$") for i in positions]  # a dollar would begin a formula
        ax.barh(plain, value[positions], **{"color": "#4c78a8", **options})
        for row, i in enumerate(positions):
            ax.plot([low[i], high[i]], [row, row], color="#333333", linewidth=1.5)
        ax.axvline(0, color="#999999", linewidth=0.8)
        ax.set_xlabel(f"{self.kind} of {self.n:,} reports")
        return ax

    def _repr_html_(self) -> str:
        from html import escape

        value, low, high = self.possible()
        names = self.names()
        rows = "".join(
            f"<tr><td>{escape(names[i])}</td><td>{value[i]:.4g}</td><td>{low[i]:.4g} to {high[i]:.4g}</td></tr>"
            for i in self.top(20)
        )
        return f"<table><tr><th>value</th><th>{self.kind}</th><th>95% interval</th></tr>{rows}</table>"

    def __repr__(self) -> str:
        value, low, high = self.possible()
        names = self.names()
        values = ", ".join(f"{names[i]}: {value[i]:.4g} [{low[i]:.4g}, {high[i]:.4g}]" for i in self.top(5))
        more = ", ..." if len(self) > 5 else ""
        return f"Estimate({values}{more}; n={self.n}, bias={self.bias})"
