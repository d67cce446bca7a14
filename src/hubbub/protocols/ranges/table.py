"""A table of reports on private dimensions, with public measures: it answers queries over boxes, with their error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.estimate import Estimate
from hubbub.protocols.ranges.cell_sums import CellSum, Level, LevelCells
from hubbub.protocols.ranges.errors_of_sums import SumVariance
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, RangeReports
from hubbub.protocols.ranges.measures import Measure, find_measure, read_measures
from hubbub.protocols.ranges.query import RangeQuery
from hubbub.protocols.ranges.supports import MOST_KEPT, Supports


class RangeTable:
    """The reports of n people, and public measures of them.

    Answers are unbiased. Their variances are those of the randomisation, given the people; where a variance depends on
    the shares of people, their estimates are used. Supports that were counted for a query are kept for later ones.

    Parameters
    ----------
    mechanism, reports
        How people reported, and their reports.
    measures
        Measures by name, with a number for each person (row).
    most_kept
        How many supports are kept for later queries.
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
        self._measures: dict[str, Measure] = {}
        self._level_weights: dict[str, dict[Level, NDArray[np.int64]]] = {}
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

        Parameters
        ----------
        query
            The box and the measure.
        consistent
            Whether the answer is by least squares over all levels, given the total. The error is smaller, but the first
            such query counts every cell of every level.
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

    def _add(self, term: LevelCells, name: str | None, measure: Measure | None, variance: SumVariance) -> float:
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
