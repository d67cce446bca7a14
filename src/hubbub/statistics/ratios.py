"""Ratios of two estimates from the same reports: shares and means within a group, and how two groups differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hubbub.core.comparison import moments_of_both
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats, Ints
from hubbub.core.spec import Json

_POINTS = 201
"""How many values of either ratio are tried for the interval of a difference: its ends are exact to a 200th of it."""


class Difference(NamedTuple):
    """One ratio minus another, and the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Ratios(Estimate):
    """Numbers that are each one unbiased sum of shares divided by another: a share within a group, or a mean.

    Intervals are Fieller's: all r for which above - r below, whose variance is known exactly, is compatible with 0.
    They cover the truth also where the group is too small to be distinguished from nobody; there they are all of
    `bounds`.

    Parameters
    ----------
    moments
        Three rows: the variance of `above`, the covariance of both, the variance of `below`.
    pair
        The covariance of two shares i and j of different groups: pair[0] + pair[1] (f_i + f_j).
    weights
        The sums of the weights of the shares in `above` and in `below`.
    """

    above: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    below: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    moments: Floats = field(default_factory=lambda: np.zeros((3, 0)), repr=False)
    pair: tuple[float, float] = (0.0, 0.0)
    weights: tuple[float, float] = (0.0, 0.0)
    normal: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, shape in (("above", (len(self),)), ("below", (len(self),)), ("moments", (3, len(self)))):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape:
                raise InvalidValue(name, array.shape, f"the shape {shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.bounds is None:
            raise InvalidValue("bounds", None, "the least and the most that a value can be")

    @staticmethod
    def of(
        above: Floats,
        below: Floats,
        moments: Floats,
        n: int,
        *,
        bounds: tuple[float, float],
        kind: str = "share",
        labels: tuple[str, ...] | None = None,
        pair: tuple[float, float] = (0.0, 0.0),
        weights: tuple[float, float] = (0.0, 0.0),
    ) -> Ratios:
        """The ratios, with variances by the delta method; NaN where `below` is not above 0."""
        known = below > 0
        safe = np.where(known, below, 1.0)
        value = np.where(known, np.clip(above / safe, *bounds), np.nan)
        ratio = np.where(known, value, 0.0)
        spread = np.maximum(moments[0] - 2 * ratio * moments[1] + ratio**2 * moments[2], 0.0)
        variance = np.where(known, spread / safe**2, np.inf)
        return Ratios(
            value,
            variance,
            n,
            "ratio",
            "share" if kind == "share" else "quantity",
            labels,
            bounds=bounds,
            above=above,
            below=below,
            moments=moments,
            pair=pair,
            weights=weights,
        )

    def taken(self, places: Ints) -> Ratios:
        """The values at some positions."""
        part = super().taken(places)
        sums = {"above": self.above[places], "below": self.below[places], "moments": self.moments[:, places]}
        return replace(part, **sums)  # type: ignore[return-value, arg-type]

    def parts(self) -> dict[str, Json]:
        """Everything except the values and variances, as JSON: what intervals and differences are computed from."""
        ends: list[Json] = list(self.ends)
        rows = {"above": self.above, "below": self.below}
        plain: dict[str, Json] = {name: row.tolist() for name, row in rows.items()}
        pair: list[Json] = list(self.pair)
        weights: list[Json] = list(self.weights)
        return {**plain, "moments": self.moments.tolist(), "pair": pair, "weights": weights, "bounds": ends}

    @staticmethod
    def from_parts(parts: Mapping[str, Any], value: Floats, variance: Floats) -> Ratios:
        """Read back what `parts` wrote."""
        bounds, pair, weights = (
            (float(a), float(b)) for a, b in (parts[name] for name in ("bounds", "pair", "weights"))
        )
        arrays: dict[str, Any] = {
            name: np.array(parts[name], dtype=np.float64) for name in ("above", "below", "moments")
        }
        return Ratios(value, variance, 0, "ratio", "quantity", bounds=bounds, pair=pair, weights=weights, **arrays)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Fieller's intervals, one value at a time; all of `bounds` where nothing is known of the group's size.

        Where values were adjusted (`centre`), they are extended to include them.
        """
        low, high = fieller(self.above, self.below, self.moments, normal_reach(level), self.ends)
        return (low, high) if self.centre is None else (np.fmin(low, self.value), np.fmax(high, self.value))

    def difference(self, first: int, second: int, level: float = 0.95) -> Difference:
        """The value of one group minus that of another, by their positions.

        The interval contains all r - s for which the two sums that are 0 at the true ratios r and s are jointly
        compatible with 0: it covers the truth also where one of the groups is small.
        """
        reach, (least, most) = normal_reach(level), self.ends
        places = [first, second]
        if first == second or not all(0 <= place < len(self) for place in places):
            raise InvalidValue("groups", places, f"two different numbers from 0 to {len(self) - 1}")
        clear = bool((self.below[places] ** 2 > reach**2 * self.moments[2, places]).all())
        # For a group that cannot be distinguished from nobody no ratio fits: the error of both sums counts.
        most_score = reach**2 if clear else -2 * math.log(1 - level)
        ends = fieller(self.above, self.below, self.moments, math.sqrt(most_score), self.ends)
        (low, other_low), (high, other_high) = (end[places] for end in ends)
        r, s = np.linspace(low, high, _POINTS)[:, None], np.linspace(other_low, other_high, _POINTS)[None, :]
        sums = [self._zero(place, ratio) for place, ratio in zip(places, (r, s), strict=True)]
        (sum_r, variance_r, weight_r), (sum_s, variance_s, weight_s) = sums
        covariance = self.pair[0] * weight_r * weight_s + self.pair[1] * (sum_r * weight_s + sum_s * weight_r)
        free = np.maximum(variance_r * variance_s - covariance**2, 0.0)
        score = sum_r**2 * variance_s - 2 * sum_r * sum_s * covariance + sum_s**2 * variance_r
        possible = score <= most_score * free * (1 + 1e-9)
        apart = (r - s)[possible] if possible.any() else np.array([low - other_high, high - other_low])
        low, high = np.clip([apart.min(), apart.max()], least - most, most - least)
        value = float(self.value[first] - self.value[second])
        return Difference(value, float(np.nanmin([low, value])), float(np.nanmax([high, value])))

    def _zero(self, place: int, ratio: Floats) -> tuple[Floats, Floats, Floats]:
        """The sum that is 0 at the true ratio, its variance, and the sum of its weights."""
        tops, both, belows = self.moments[:, place]
        variance = np.maximum(tops - 2 * ratio * both + ratio**2 * belows, 0.0)
        return self.above[place] - ratio * self.below[place], variance, self.weights[0] - ratio * self.weights[1]


@dataclass(frozen=True, eq=False, repr=False)
class LogRatios(Ratios):
    """Natural logarithms of ratios, with the logarithms of Fieller's intervals."""

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """The logarithms of the ends; infinite where a ratio cannot be told from 0, or from infinity."""
        low, high = fieller(self.above, self.below, self.moments, normal_reach(level), (0.0, math.inf))
        with np.errstate(divide="ignore"):
            return np.log(low), np.log(high)


def ratio(first: Estimate, second: Estimate) -> Ratios:
    """How many times as large each value is as another one, with Fieller's interval.

    Both are parts of one estimate whose mechanism declares their covariance, or rest on different reports; others are
    refused. The interval covers the truth also where the second value cannot be told from 0: then it is unbounded.

    Example:
        >>> from hubbub.core.noise import Noise
        >>> drinks = Estimate([0.5, 0.2], [1e-4, 1e-4], 1000, labels=("tea", "coffee"), noise=Noise(1e-4, 0.0))
        >>> ratio(drinks["tea"], drinks["coffee"])
        Ratios(tea / coffee: 2.5 [2.258, 2.79]; n=1000, bias=ratio)
    """
    first, second, moments, people = moments_of_both(first, second)
    least = 0.0 if first.ends[0] >= 0 and second.ends[0] >= 0 else -math.inf
    names = tuple(f"{a} / {b}" for a, b in zip(first.names(), second.names(), strict=True))
    labels = first.labels if first.labels == second.labels else names
    return Ratios.of(
        first.middle, second.middle, moments, people, bounds=(least, math.inf), kind="quantity", labels=labels
    )


def log_ratio(first: Estimate, second: Estimate) -> LogRatios:
    """The logarithm of `ratio`: its intervals are as wide upwards as downwards, and those of 1 / ratio are its mirror.

    Example:
        >>> before, after = (Estimate([share], [1e-4], 1000, labels=("tea",)) for share in (0.2, 0.4))
        >>> log_ratio(after, before)
        LogRatios(tea: 0.6931 [0.5869, 0.8067]; n=2000, bias=ratio)
    """
    plain = ratio(first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, variance = np.log(plain.value), plain.variance / plain.value**2
    parts = {part.name: getattr(plain, part.name) for part in fields(plain) if part.init}
    return LogRatios(**{**parts, "value": value, "variance": variance, "bounds": (-math.inf, math.inf)})


def fieller(
    above: Floats, below: Floats, moments: Floats, reach: float, bounds: tuple[float, float]
) -> tuple[Floats, Floats]:
    """The smallest and the largest r with (above - r below)^2 <= reach^2 Var(above - r below), for each ratio.

    Where `below` cannot be distinguished from 0 these r are unbounded, and are cut at `bounds`.
    """
    least, most = bounds
    a = below**2 - reach**2 * moments[2]
    b = above * below - reach**2 * moments[1]
    c = above**2 - reach**2 * moments[0]
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([(b - root) / a, (b + root) / a]), axis=0)
    closed = a > 0
    # Otherwise all r are possible except those between the two ends, if any.
    gap = ~closed & (b**2 - a * c > 0) & np.isfinite(ends).all(axis=0)
    under, over = gap & (ends[0] >= least), gap & (ends[1] <= most)
    one_side = under | over
    low = np.where(closed, ends[0], np.where(one_side & ~under, np.clip(ends[1], least, most), least))
    high = np.where(closed, ends[1], np.where(one_side & ~over, np.clip(ends[0], least, most), most))
    return low, high
