"""Answers from the reports of grids (HDG), with an error estimated from how parts of the reports differ."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats, Ints
from hubbub.protocols.ranges.dimension import RangeQuery
from hubbub.protocols.ranges.grids import HDG, Grid, GridModel, GridReports
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.protocols.ranges.table import find_measure, read_measures

PARTS = 8
"""The number of parts of the reports from whose different answers the noise is estimated."""


class GridTable:
    """The reports of n people by HDG, and public measures of them: answers queries over boxes of any dimensions.

    Answers are not unbiased: negative shares are removed, people are assumed to be spread evenly inside fine cells, and
    three or more dimensions are combined from pairs. The variance covers the noise and the random choice of grids, and
    is estimated from the answers of eight parts of the reports. It does not cover the error of the assumptions (`bias`
    is "heuristic").
    """

    def __init__(self, mechanism: HDG, reports: GridReports, measures: Mapping[str, ArrayLike] | None = None) -> None:
        self.mechanism = mechanism
        self.reports = reports
        missing = [grid for grid in mechanism.grids if grid not in reports.grids]
        if missing:
            raise InvalidValue("reports", missing, "reports on every grid: more people, or fewer dimensions")
        self._measures = read_measures(measures, reports.n)
        for name, measure in self._measures.items():
            if measure.weights.min(initial=0) < 0 or not measure.weights.any():
                raise InvalidValue(
                    name, int(measure.weights.min(initial=0)), "numbers of at least 0, not all of them 0"
                )
        self._models: dict[str | None, list[GridModel]] = {}

    def answer(self, query: RangeQuery) -> Estimate:
        """The number of people in a box, or the sum of a measure over them."""
        query.check(self.mechanism.dimensions)
        measure = find_measure(self._measures, query.measure)
        if query.measure not in self._models:
            self._models[query.measure] = self._fitted(query.measure)
        model, *part_models = self._models[query.measure]
        total = float(self.reports.n) if measure is None else measure.total
        shares = np.array([part.share(query.box) for part in part_models])
        variance = shares.var(ddof=1) / len(part_models) if len(part_models) > 1 else np.inf
        value = model.share(query.box) * total
        return Estimate(
            np.array([value]),
            np.array([variance * total**2]),
            self.reports.n,
            bias="heuristic",
            kind="quantity",
            bounds=(0.0, total),
        )

    def _fitted(self, name: str | None) -> list[GridModel]:
        """The model of all reports, then the models of their parts if every grid has enough reports."""
        groups = self.reports.grids
        models = [GridModel(self.mechanism, self._shares(groups, name))]
        if min(group.rows.size for group in groups.values()) >= PARTS:
            for part in range(PARTS):
                part_groups = {grid: _part_of(group, part) for grid, group in groups.items()}
                models.append(GridModel(self.mechanism, self._shares(part_groups, name)))
        return models

    def _shares(self, groups: Mapping[Grid, LevelReports], name: str | None) -> dict[Grid, Floats]:
        return {grid: self._share(grid, group, name) for grid, group in groups.items()}

    def _share(self, grid: Grid, group: LevelReports, name: str | None) -> Floats:
        """The unbiased shares of the people in a grid's cells, or of their measure."""
        oracle = self.mechanism.oracle(grid)
        moments = oracle.moments()
        cells: Ints = np.arange(oracle.size)
        if name is None:
            counts, total = oracle.supports(group.reports, cells.astype(np.uint64)), group.rows.size
        else:
            weights = self._measures[name].weights[group.rows]
            counts, total = oracle.support(group.reports, cells, weights).counts[0, :-1], int(weights.sum())
        if total == 0:
            return np.full(oracle.size, 1 / oracle.size)
        return np.asarray((counts / total - moments.false_mean) / (moments.true_mean - moments.false_mean))


def _part_of(group: LevelReports, part: int) -> LevelReports:
    """One part of a grid's reports: every eighth report."""
    rows = np.arange(part, group.rows.size, PARTS)
    return LevelReports(group.rows[rows], group.reports[rows])
