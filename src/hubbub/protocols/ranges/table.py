"""A table of reports on private dimensions, with public measures: it answers queries over boxes, with their error."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Array, Ints, Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import CellSum, Level, LevelCells, SumVariance
from hubbub.protocols.ranges.dimension import RangeQuery
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, RangeReports

_NO_CELLS: Ints = np.zeros(0, dtype=np.int64)
MOST_KEPT = 1 << 24
"""How many cells the cache holds, at 24 bytes each."""
KEY_CELLS = 32
"""A key and its arrays take as much memory as the supports of this number of cells."""


class Supports:
    """The supports of cells by level and measure. The least recently used are dropped first."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._cache: OrderedDict[object, tuple[Ints, Array, Array]] = OrderedDict()
        self._size = 0
        self.counted = 0
        """How many cells were counted so far."""

    def of(
        self,
        level: object,
        measure: str | None,
        cells: Ints,
        oracle: FrequencyOracle,
        reports: Reports,
        weights: Callable[[], Ints] | None = None,
    ) -> tuple[Ints, Ints]:
        """The sums of the weights and squared weights of the reports that support each cell, and of all reports."""
        key = level, measure
        missing = self.missing(key, cells)
        if missing.size:
            self.keep(key, missing, *_count(oracle, reports, missing, None if weights is None else weights()))
        result = self.find(key, cells)
        self.forget()
        return result

    def missing(self, key: object, cells: Ints) -> Ints:
        """The cells that are not counted yet, each once."""
        return np.setdiff1d(cells, self._cache[key][0]) if key in self._cache else np.unique(cells)

    def keep(self, key: object, cells: Ints, counts: Array, totals: Array) -> None:
        """Add the supports of cells that were missing, a row for each sum, and the totals of all reports."""
        known, before, _ = self._cache.pop(key, (_NO_CELLS, counts[:, :0], totals))
        self.counted += cells.size
        self._size += cells.size + (0 if known.size else KEY_CELLS)
        order = np.argsort(np.concatenate([known, cells]), kind="stable")
        merged = np.concatenate([before, counts], axis=1)[:, order]
        self._cache[key] = np.concatenate([known, cells])[order], merged, totals

    def find(self, key: object, cells: Ints) -> tuple[Array, Array]:
        """The supports of cells that were counted, and the totals of all reports."""
        known, counts, totals = self._cache[key]
        self._cache.move_to_end(key)
        return counts[:, np.searchsorted(known, cells)], totals

    def forget(self) -> None:
        """Drop the least recently used supports until the cache is no larger than it may be."""
        while self._size > self._most:
            _, (known, _, _) = self._cache.popitem(last=False)
            self._size -= known.size + KEY_CELLS

    def drop(self, measure: str) -> None:
        """Drop all supports that were counted for a measure."""
        for key in [key for key in self._cache if isinstance(key, tuple) and key[1] == measure]:
            self._size -= self._cache.pop(key)[0].size + KEY_CELLS


def _count(oracle: FrequencyOracle, reports: Reports, cells: Ints, weights: Ints | None) -> tuple[Ints, Ints]:
    if weights is None:
        counts = oracle.supports(reports, cells.astype(np.uint64))
        return np.array([counts, counts]), np.full(2, len(reports))
    counts = oracle.weighted_supports(reports, cells.astype(np.uint64), weights)
    return counts[:, :-1], counts[:, -1]


_MOST_EXPONENT = 500  # of a scale of 2: its square is a float


@dataclass(frozen=True, eq=False)
class ScaledNumbers:
    """A number for each person that the server knows, as an integer: the number times `scale`."""

    weights: Ints
    scale: float

    @staticmethod
    def of(name: str, values: ArrayLike) -> ScaledNumbers:
        """Integers stay as they are; other numbers are rounded, as finely as the sum of their squares allows."""
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise InvalidValue(name, array, "finite numbers, one per person")
        numbers = array.astype(np.float64)
        largest = float(np.abs(numbers).max(initial=0.0))
        most = math.isqrt((1 << 62) // max(numbers.size, 1))  # squares are added up in 64 bits
        if largest <= most and (numbers == np.rint(numbers)).all():
            return ScaledNumbers(np.rint(numbers).astype(np.int64), 1.0)
        exponent = math.floor(math.log2(most) - math.log2(largest))
        if exponent < -_MOST_EXPONENT:
            raise InvalidValue(name, largest, "numbers whose squares are finite")
        scale = 2.0 ** min(exponent, _MOST_EXPONENT)
        return ScaledNumbers(np.rint(numbers * scale).astype(np.int64), scale)

    @cached_property
    def total(self) -> float:
        """The sum over all people."""
        return int(self.weights.sum()) / self.scale

    @cached_property
    def squares(self) -> float:
        """The sum of the squares over all people."""
        return int(self.weights @ self.weights) / self.scale**2


def read_measures(values_by_name: Mapping[str, ArrayLike] | None, n: int) -> dict[str, ScaledNumbers]:
    """The measures of n people, by name."""
    measures = {name: ScaledNumbers.of(name, values) for name, values in (values_by_name or {}).items()}
    for name, measure in measures.items():
        if measure.weights.size != n:
            raise InvalidValue(name, measure.weights.size, f"{n} numbers, one per person")
    return measures


def find_measure(measures: Mapping[str, ScaledNumbers], name: str | None) -> ScaledNumbers | None:
    """The measure that a query names; None if it counts people."""
    if name is not None and name not in measures:
        raise InvalidValue("measure", name, f"one of {', '.join(measures) or 'no measures'}")
    return None if name is None else measures[name]


class RangeTable:
    """The reports of n people, and public measures of them.

    Answers are unbiased. Their variances are those of the randomisation, given the people; where a variance depends on
    the shares of people, their estimates are used. Supports that were counted for a query are kept for later ones.

    `measures`: measures by name, with a number for each person (row). `most_kept`: how many supports are kept for later
    queries.
    """

    def __init__(
        self,
        mechanism: IntervalMechanism,
        reports: RangeReports,
        measures: Mapping[str, ArrayLike] | None = None,
        *,
        most_kept: int = MOST_KEPT,
    ) -> None:
        self.mechanism = mechanism
        self.reports = reports
        self.supports = Supports(most_kept)
        self._measures: dict[str, ScaledNumbers] = {}
        self._level_weights: dict[str, dict[Level, Ints]] = {}
        for name, values in (measures or {}).items():
            self.measure(name, values)

    @property
    def n(self) -> int:
        """How many people there are."""
        return self.reports.n

    def measure(self, name: str, values: ArrayLike) -> None:
        """Add a measure, or replace the one of this name."""
        measure = read_measures({name: values}, self.n)[name]
        self.supports.drop(name)
        self._measures[name] = measure
        # sorted by level only once: to select them out of all people costs more than the hashes of a query
        everyone = not self.mechanism.divided
        self._level_weights[name] = {
            level: measure.weights if everyone else measure.weights[group.rows]
            for level, group in self.reports.levels.items()
        }

    def forget(self, name: str) -> None:
        """Drop a measure and its supports."""
        self._measures.pop(name, None)
        self._level_weights.pop(name, None)
        self.supports.drop(name)

    def answer(self, query: RangeQuery, *, consistent: bool = False) -> Estimate:
        """The number of people in a box, or the sum of a measure over them.

        `consistent`: whether the answer is by least squares over all levels, given the total. The error is smaller, but
        the first such query counts every cell of every level.
        """
        query.check(self.mechanism.dimensions)
        return self.weigh(self.mechanism.terms(query.box, consistent=consistent), query.measure)

    def weigh(self, terms: CellSum, measure: str | None = None) -> Estimate:
        """The estimate of a weighted sum of cells."""
        weights = find_measure(self._measures, measure)
        total, squares = (float(self.n), float(self.n)) if weights is None else (weights.total, weights.squares)
        value = terms.known * total
        variance = SumVariance(self.n, squares, terms.known, divided=self.mechanism.divided)
        for term in terms.terms:
            value += self._add(term, measure, weights, variance)
        bounds = (0.0, float(self.n)) if weights is None else None
        return Estimate(np.array([value]), np.array([variance.total()]), self.n, kind="quantity", bounds=bounds)

    def _add(self, term: LevelCells, name: str | None, measure: ScaledNumbers | None, variance: SumVariance) -> float:
        """Add the variance of one level's cells to `variance`, and return their weighted sum."""
        oracle = self.mechanism.oracle(term.level)
        group = self.reports.levels.get(term.level)
        if group is None:
            zeros = np.zeros(term.cells.size)
            variance.add(oracle, 0, term.weights, zeros, zeros)
            return 0.0
        weights = None if name is None else lambda: self._level_weights[name][term.level]
        counts, totals = self.supports.of(term.level, name, term.cells, oracle, group.reports, weights)
        moments = oracle.moments()
        scale = self.n / group.rows.size if self.mechanism.divided else 1.0
        sums, squares = (
            (row - moments.false_mean * total) / (moments.true_mean - moments.false_mean) * scale
            for row, total in zip(counts, totals, strict=True)
        )
        if measure is not None:
            sums, squares = sums / measure.scale, squares / measure.scale**2
        variance.add(oracle, group.rows.size, term.weights, sums, squares)
        return float(term.weights @ sums)
