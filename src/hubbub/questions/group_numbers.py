"""Numbers by group: a device reports its group and its value together; the server estimates shares or means."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from hubbub.core.domain import Ordinal
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of
from hubbub.core.noise import Noise
from hubbub.core.reports import Floats, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.driver import MAIN
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import View
from hubbub.protocols.views.records import Axis, GridAxis, Joint
from hubbub.questions.statistic import MOST_BYTES, named_mechanism
from hubbub.statistics.ratios import Ratios

_ORACLES = ("GRR", "OUE", "OLH")


def breakdown_name(field: str, main: bool) -> str:
    """What a release calls the numbers by one of its fields."""
    return MAIN if main else f"by {field}"


def group_shares_name(field: str) -> str:
    """What a release calls the shares of the groups themselves."""
    return f"groups of {field}"


@dataclass(frozen=True)
class GroupNumbers(Statistic):
    """In each group, the share of each value, or the mean of a number among those who have one.

    A device reports the cell of its groups and its value by one frequency oracle. The estimate for a group is a ratio
    of sums of its cells' shares, whose error follows from the oracle's covariance. A number is first rounded at random
    to a coarse grid, which does not change its mean and adds at most a quarter of the squared distance of two grid
    points to its variance.

    Parameters
    ----------
    value
        The field that is estimated by group, read as codes, cells, or points of a grid.
    labels
        For each field in `by`, the names of its groups; then the names of the values.
    main
        The field of `by` whose numbers are the main estimate.
    oracle
        A named oracle.
    asked_share
        The share of the devices that is asked: that the others are not asked adds to the error.
    """

    by: tuple[Axis, ...]
    value: Axis
    labels: tuple[tuple[str, ...], ...]
    main: str = ""
    oracle: str | None = None
    asked_share: float = 1.0

    @property
    def view(self) -> View:  # type: ignore[override]
        """The cell of the groups and the value."""
        return Joint((*self.by, self.value))

    @property
    def cells(self) -> int:
        """How many cells a report can name."""
        return math.prod(axis.size for axis in self.by) * self.value.size

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many numbers the main estimate has."""
        return self._groups(self.main or self.by[0].field) * len(self.numerators)

    @property
    def kind(self) -> Literal["share", "quantity"]:  # type: ignore[override]
        """Shares, or numbers in the field's own unit."""
        return "quantity" if isinstance(self.value, GridAxis) else "share"

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest number that is possible."""
        return (self.value.low, self.value.high) if isinstance(self.value, GridAxis) else (0.0, 1.0)

    @cached_property
    def numerators(self) -> Floats:
        """The weights of a group's cells in a ratio's numerator: a row for each number that is estimated."""
        if not isinstance(self.value, GridAxis):
            return np.eye(self.value.size)
        points = np.linspace(self.value.low, self.value.high, self.value.points)
        return np.append(points, 0.0)[None, :]

    @cached_property
    def denominator(self) -> Floats:
        """The weights of a group's cells in a ratio's denominator: 1 for all, or for those with a number."""
        counted = np.ones(self.value.size)
        if isinstance(self.value, GridAxis):
            counted[-1] = 0.0
        return counted

    @property
    def _step(self) -> float:
        """The distance of two points of the grid; 0 where nothing is rounded."""
        return (self.value.high - self.value.low) / (self.value.points - 1) if isinstance(self.value, GridAxis) else 0.0

    def mechanism(self, units: int) -> FrequencyOracle:
        return _chosen(self, units)

    def named(self, name: str, units: int) -> FrequencyOracle:
        """The oracle of a name, over all cells."""
        kind = named_mechanism(name, FrequencyOracle)
        oracle: FrequencyOracle = kind(epsilon=epsilon_of(units), domain=Ordinal(self.cells))
        return oracle

    # -- estimates --------------------------------------------------------------------------------------------

    def read(self, mechanism: ReportFormat, sketch: Sketch, candidates: Any = None) -> Estimate:
        return self.answers(mechanism, sketch)[breakdown_name(self.main, main=True)]

    def answers(
        self, mechanism: ReportFormat, sketch: Sketch, candidates: Any = None, groups: int = 1
    ) -> Mapping[str, Estimate]:
        shares = mechanism.estimate(sketch)
        assert shares.noise is not None
        noise = replace(shares.noise, sampling=(1 - self.asked_share / groups) / shares.n)
        table = shares.value.reshape(*(axis.size for axis in self.by), self.value.size)
        numbers: dict[str, Estimate] = {}
        group_shares: dict[str, Estimate] = {}
        for place, (axis, labels) in enumerate(zip(self.by, self.labels, strict=False)):
            others = tuple(other for other in range(len(self.by)) if other != place)
            cells = table.sum(axis=others)
            name = breakdown_name(axis.field, axis.field == self.main)
            numbers[name] = self._ratios(cells, noise, shares.n, labels)
            group_shares[group_shares_name(axis.field)] = self._shares_of_groups(cells, noise, shares.n, labels)
        return {**numbers, **group_shares}

    def _ratios(self, cells: Floats, noise: Noise, n: int, labels: tuple[str, ...]) -> Ratios:
        merged, rows = self._merged(len(cells)), self.numerators
        top = cells @ rows.T
        below = np.repeat((cells @ self.denominator)[:, None], len(rows), axis=1)
        variance_below = self._covariance(cells, self.denominator, self.denominator, noise, merged)
        tops = np.stack([self._covariance(cells, row, row, noise, merged) for row in rows], axis=1)
        both = np.stack([self._covariance(cells, row, self.denominator, noise, merged) for row in rows], axis=1)
        belows = np.repeat(variance_below[:, None], len(rows), axis=1)
        tops = tops + self._step**2 / 4 * np.maximum(below, 0.0) / n
        moments = np.stack([tops.ravel(), both.ravel(), belows.ravel()])
        names = tuple(
            f"{group}: {value}" if len(self.numerators) > 1 else group for group in labels for value in self._values
        )
        return Ratios.of(
            top.ravel(),
            below.ravel(),
            moments,
            n,
            bounds=self.bounds,
            kind=self.kind,
            labels=names,
            pair=(noise.pair_floor, noise.pair_slope),
            weights=(merged * float(self.numerators[0].sum()), merged * float(self.denominator.sum())),
        )

    def _shares_of_groups(self, cells: Floats, noise: Noise, n: int, labels: tuple[str, ...]) -> Estimate:
        every = np.ones(self.value.size)
        variance = self._covariance(cells, every, every, noise, self._merged(len(cells)))
        return Estimate(cells.sum(axis=1), np.maximum(variance, 0.0), n, labels=labels)

    @staticmethod
    def _covariance(cells: Floats, first: Floats, second: Floats, noise: Noise, merged: int) -> Floats:
        """The covariance of two weighted sums over the cells of each group, each of which is `merged` cells' sum."""
        both = cells @ (first * second)
        product = merged * float(first @ second)
        first_sum, second_sum = merged * float(first.sum()), merged * float(second.sum())
        own = noise.floor * product + noise.slope * both
        apart = noise.pair_floor * (first_sum * second_sum - product)
        tilt = noise.pair_slope * (cells @ first * second_sum + cells @ second * first_sum - 2 * both)
        return own + apart + tilt + noise.sampling * (both - (cells @ first) * (cells @ second))

    def _merged(self, groups: int) -> int:
        """How many cells are added up for one cell of a group and a value."""
        return self.cells // (groups * self.value.size)

    def _groups(self, field: str) -> int:
        return next(axis.size for axis in self.by if axis.field == field)

    @property
    def _values(self) -> tuple[str, ...]:
        return self.labels[-1]

    # -- what to expect ---------------------------------------------------------------------------------------

    def error(self, units: int, n: float, like: Floats) -> float:
        """The mean variance of a number, if groups and values are all alike, over all fields in `by`."""
        return self.error_with(self.mechanism(units), n)

    def error_with(self, oracle: FrequencyOracle, n: float) -> float:
        """The same with the given oracle."""
        noise, ratio = replace(oracle.noise(1), sampling=1 - self.asked_share), float(np.mean(self.bounds))
        total = 0.0
        for axis in self.by:
            cells = np.full((1, self.value.size), 1.0) * self.denominator / self.denominator.sum() / axis.size
            merged = self.cells // (axis.size * self.value.size)
            for row in self.numerators:
                share = ratio if self.kind == "quantity" else float(row @ cells[0]) * axis.size
                weights = row - share * self.denominator
                variance = float(self._covariance(cells, weights, weights, noise, merged)[0])
                total += (variance * axis.size**2 + self._step**2 / 4 * axis.size) / len(self.numerators)
        return total / len(self.by) / n

    def spread(self, like: Floats) -> float:
        return 0.0  # everyone is asked


@lru_cache(maxsize=256)
def _chosen(statistic: GroupNumbers, units: int) -> FrequencyOracle:
    """The named oracle; else, of the oracles that every client knows, the one with the smallest typical error."""
    if statistic.oracle is not None:
        return statistic.named(statistic.oracle, units)
    names = [name for name in _ORACLES if name != "OUE" or statistic.cells <= 8 * MOST_BYTES]
    oracles = [statistic.named(name, units) for name in names]
    return min(oracles, key=lambda oracle: float(f"{statistic.error_with(oracle, 1):.9g}"))
