"""Sums for SC tables, where people report on each column separately: scores are multiplied per person, then summed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.protocols.ranges.dimension import RangeQuery
from hubbub.protocols.ranges.split import SC, SplitReports, SplitTable
from hubbub.query.boxes import Box, SignedBoxes, ways_to_add
from hubbub.query.codes import as_selection, size_of
from hubbub.query.formula import ALWAYS, Formula
from hubbub.query.sandbox import check_time
from hubbub.query.schema import PrivateTable
from hubbub.query.strata import GroupPart, Strata, SumsMethod
from hubbub.query.sums import Floats, JointEstimate, SumsWithError, independent

MOST_CACHED = 4096
"""How many sums are cached for later queries."""


class SplitMethod(SumsMethod):
    """Estimates a sum as the weighted sum of scores.

    A person's score s is an unbiased estimate of 1 if the formula holds for them, else 0. Its variance is estimated
    without bias by s^2 - s (`SplitTable`).

    Parameters
    ----------
    table, mechanism
        Whose reports are asked, and how they were made.
    """

    def __init__(self, table: PrivateTable, mechanism: SC) -> None:
        self._table = table
        self._mechanism = mechanism
        self._sizes = [dimension.size for dimension in mechanism.dimensions]
        self._cache: OrderedDict[object, SumsWithError] = OrderedDict()
        self._passes = 0

    @property
    def passes(self) -> int:
        return self._passes

    def measure(self, strata: Strata, parts: Sequence[GroupPart]) -> list[SumsWithError]:
        keys = [(strata.strata[place].name, strata.weights, formula) for place, formula in parts]
        missing = {key: part for key, part in zip(keys, parts, strict=True) if key not in self._cache}
        if missing:
            self._cache.update(self._pass(strata, missing))
        sums = [self._cache[key] for key in keys]
        while len(self._cache) > MOST_CACHED:
            self._cache.popitem(last=False)
        return sums

    def _pass(self, strata: Strata, missing: dict[Any, GroupPart]) -> dict[object, SumsWithError]:
        size = len(strata.weights)
        sums = {key: (np.zeros(size), np.zeros((size, size))) for key in missing}
        for key, (place, formula) in missing.items():
            if formula == ALWAYS:
                sums[key][0][:] = [strata.strata[place].totals[weight] for weight in strata.weights]
        scored = {key: part for key, part in missing.items() if part[1] != ALWAYS}
        self._passes += bool(scored)
        for rows, block in strata.blocks(strata.weights) if scored else ():
            weights = np.array([block.weights[weight] for weight in strata.weights]).reshape(size, -1)
            for place in sorted({place for place, _ in scored.values()}):
                spots = np.flatnonzero(block.strata == place)
                if not spots.size:
                    continue
                table = self._people(rows, block.rows[spots])
                for key, (own, formula) in scored.items():
                    if own == place:
                        score = self._scores(table, formula)
                        sums[key][0][:] += weights[:, spots] @ score
                        sums[key][1][:] += (weights[:, spots] * (score**2 - score)) @ weights[:, spots].T
        return {
            key: SumsWithError(value, covariance, float(key in scored)) for key, (value, covariance) in sums.items()
        }

    def step(self, part: SumsWithError) -> float:
        return part.step  # 1 where scores are added: a report that is not of the own value moves a sum by a person

    def _people(self, rows: range, chosen: Any) -> SplitTable:
        """The reports of some people of a block."""
        levels = {}
        for level in self._mechanism.levels:
            group = self._table.reports(level, rows)
            assert group is not None
            levels[level] = group.reports[np.searchsorted(group.rows, chosen)]
        return SplitTable(self._mechanism, SplitReports(len(chosen), levels))

    def _scores(self, table: SplitTable, formula: Formula) -> Floats:
        score = np.zeros(table.reports.n)
        for sign, box in self._boxes(formula):
            for rows, part in table.scores(self._query(box)):
                check_time()
                score[rows] += sign * part
        return score

    def _boxes(self, formula: Formula) -> SignedBoxes:
        return min((boxes for _, boxes in ways_to_add(formula, self._sizes)), key=len)

    def _query(self, box: Box) -> RangeQuery:
        return RangeQuery([as_selection(runs, size) for runs, size in zip(box, self._sizes, strict=True)])

    def predict(self, strata: Strata, parts: Sequence[GroupPart]) -> list[SumsWithError]:
        predicted = []
        for place, formula in parts:
            totals = strata.strata[place].totals
            factor = sum(self._mechanism.expected_stderr(self._query(box), 1) ** 2 for _, box in self._boxes(formula))
            value = np.array([totals[weight] for weight in strata.weights]) * self._share(formula)
            products = np.array([[totals[a * b] for b in strata.weights] for a in strata.weights])
            predicted.append(SumsWithError(value, products * (0.0 if formula == ALWAYS else factor)))
        return predicted

    def _share(self, formula: Formula) -> float:
        shares = (
            sign * np.prod([size_of(runs) / size for runs, size in zip(box, self._sizes, strict=True)])
            for sign, box in self._boxes(formula)
        )
        return float(sum(shares))

    def joint(self, parts: Sequence[tuple[Any, Floats]]) -> JointEstimate:
        return independent(parts)

    def describe(self, strata: Strata, part: GroupPart) -> list[str]:
        if part[1] == ALWAYS:
            return ["known exactly: no private column decides"]
        boxes = self._boxes(part[1])
        return [f"scores of every person, multiplied over columns, {len(boxes)} box{'es' if len(boxes) > 1 else ''}"]
