"""Estimates: values with their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.drawing import Bar, Bars
from hubbub.core.errors import InvalidValue, needs
from hubbub.core.noise import Noise, normal_reach
from hubbub.core.reports import Floats, Ints

if TYPE_CHECKING:
    import pyarrow

Bias = Literal["none", "ratio", "consistent", "heuristic"]


class Origin(NamedTuple):
    """The estimate that another one is made of, and the weights of each of its values; None for all as they are."""

    root: Estimate
    rows: Floats | None

    def weights(self, size: int) -> Floats:
        """The weights as a matrix."""
        return np.eye(size) if self.rows is None else self.rows


@dataclass(frozen=True, eq=False)
class Estimate(Bars):
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
    reports
        The digests of the sketches that it rests on, as far as they are known: two estimates from the same reports are
        not independent.
    origin
        The estimate that this one is a part or a sum of. What changes a value or a variance forgets it.

    Example:
        >>> estimate = Estimate(value=[0.5, 0.3, 0.2], variance=[1e-4] * 3, n=1000)
        >>> low, high = estimate.interval(0.95)
        >>> [round(float(x), 4) for x in (low[0], high[0])]
        [0.4804, 0.5196]
        >>> estimate.counts().value.tolist()
        [500.0, 300.0, 200.0]
    """

    normal: ClassVar[bool] = True
    """Whether the errors are normal, so that sums and differences have intervals."""
    __iter__: ClassVar[None] = None
    __contains__: ClassVar[None] = None

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
    reports: frozenset[str] = field(default=frozenset(), repr=False)
    origin: Origin | None = field(default=None, repr=False, init=False)

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
            reports: frozenset[str] = frozenset(),
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

    def __getitem__(self, name: str | int | Sequence[str | int]) -> Estimate:
        """One value by its label or position, or several.

        Example:
            >>> drinks = Estimate(value=[0.5, 0.3], variance=[1e-4, 1e-4], n=1000, labels=("tea", "coffee"))
            >>> drinks["tea"]
            Estimate(tea: 0.5 [0.4804, 0.5196]; n=1000, bias=none)
            >>> drinks[["coffee", "tea"]].value.tolist()
            [0.3, 0.5]
        """
        from hubbub.core.comparison import part

        return part(self, name)

    def taken(self, places: Ints) -> Estimate:
        """The values at some positions, with all that belongs to each."""
        spread = self.spread[places] if isinstance(self.spread, np.ndarray) else self.spread
        labels = tuple(self.names()[place] for place in places.tolist())
        centre = None if self.centre is None else self.centre[places]
        value, variance = self.value[places], self.variance[places]
        return replace(self, value=value, variance=variance, spread=spread, labels=labels, centre=centre)

    def __sub__(self, other: Estimate) -> Estimate:
        """How much larger each value is than another one, with its interval: see `hubbub.core.comparison`.

        Example:
            >>> monday = Estimate(value=[0.30], variance=[1e-4], n=1000, labels=("tea",))
            >>> friday = Estimate(value=[0.36], variance=[1e-4], n=1000, labels=("tea",))
            >>> friday - monday
            Estimate(tea: 0.06 [0.03228, 0.08772]; n=2000, bias=none)
        """
        from hubbub.core.comparison import difference

        return difference(self, other)

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
        middle = self.middle
        return np.minimum(self.value, middle - reach), np.maximum(self.value, middle + reach)

    @property
    def middle(self) -> Floats:
        """The middles of the intervals: unbiased estimates, unless the estimate has a bias."""
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
        least, most = self.ends
        return np.clip(self.value, least, most), np.clip(low, least, most), np.clip(high, least, most)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest possible value; infinite where it is not known."""
        anything = (0.0, 1.0) if self.kind == "share" else (-np.inf, np.inf)
        return anything if self.bounds is None else self.bounds

    def counts(self) -> Estimate:
        """Shares scaled to numbers of people, with their intervals.

        Example:
            >>> Estimate(value=[0.25], variance=[0.0001], n=1000, labels=("tea",)).counts()
            Estimate(tea: 250 [230.4, 269.6]; n=1000, bias=none)
        """
        if self.kind != "share":
            raise InvalidValue("kind", self.kind, "shares: a quantity has no counts")
        low, high = self.ends
        centre = None if self.centre is None else self.centre * self.n
        return replace(
            self,
            value=self.value * self.n,
            variance=self.variance * self.n**2,
            kind="quantity",
            noise=None,
            bounds=(low * self.n, high * self.n),
            centre=centre,
        )

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
            variance = variance + self.noise.cross_terms(self.middle, rows)
        else:
            several = (rows != 0).sum(axis=1) > 1
            variance = np.where(several, (np.abs(rows) @ np.sqrt(finite)) ** 2, variance)
        variance[(rows[:, ~is_known] != 0).any(axis=1)] = np.inf  # nothing is known of one of the values
        variance = np.maximum(variance, 0.0)
        centre = None if self.centre is None else rows @ self.centre
        sums = Estimate(value, variance, self.n, self.bias, self.kind, bounds=self._bounds_of(rows), centre=centre)
        return sums.made_of(self, rows)

    def made_of(self, other: Estimate, rows: Floats) -> Self:
        """The same estimate, which now knows that it is weighted sums of another one."""
        root, before = other.origin or Origin(other, None)
        made = replace(self, reports=root.reports or frozenset([f"estimate {id(root)}"]))
        object.__setattr__(made, "origin", Origin(root, rows if before is None else rows @ before))
        return made

    def _bounds_of(self, rows: Floats) -> tuple[float, float] | None:
        """Bounds of all the weighted sums."""
        if not all(map(math.isfinite, self.ends)):
            return None
        left, right = (end * rows for end in self.ends)
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

    def of_groups(self, groups: int, people: float | None = None) -> Self:
        """The same values as estimates of all people, if they are of one of several random groups of one size.

        Adds the sampling variance f(1-f)/people (1 - 1/groups). One group has everyone.

        `people`: how many people the group has; the n who answered unless given.
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

    def bars(self, *, most: int = 20, level: float = 0.95) -> list[Bar]:
        """The largest values as people see them, clipped to what is possible, with their intervals."""
        value, low, high = self.possible(level)
        names = self.names()
        return [Bar(names[i], float(value[i]), float(low[i]), float(high[i])) for i in self.top(most)]

    @property
    def quantity(self) -> str:
        return self.kind

    @property
    def basis(self) -> tuple[str, str]:
        return f"{self.n:,} reports", f"bias: {self.bias}"

    def to_arrow(self, *, level: float = 0.95) -> pyarrow.Table:
        """The label, the value, the ends of its interval and the standard error of each value, none of them clipped.

        Example:
            >>> Estimate(value=[0.6], variance=[1e-4], n=99, labels=("a",)).to_pandas().round(3).to_dict("records")
            [{'label': 'a', 'value': 0.6, 'low': 0.58, 'high': 0.62, 'stderr': 0.01}]
        """
        with needs("analytics"):
            import pyarrow
        low, high = self.interval(level)
        columns = {"label": list(self.names()), "value": self.value, "low": low, "high": high, "stderr": self.stderr}
        return pyarrow.table(columns)

    def __repr__(self) -> str:
        values = ", ".join(f"{bar.name}: {bar.value:.4g} [{bar.low:.4g}, {bar.high:.4g}]" for bar in self.bars(most=5))
        more = ", ..." if len(self) > 5 else ""
        return f"{type(self).__name__}({values}{more}; n={self.n}, bias={self.bias})"
