"""Tables whose people reported on every column by itself (SC): each person's scores are multiplied and added up."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.protocols.ranges.query import RangeQuery
from hubbub.protocols.ranges.split import SC, SplitReports, SplitTable
from hubbub.query.boxes import Box, SignedBoxes, ways_to_add
from hubbub.query.formula import ALWAYS, Formula
from hubbub.query.joint import JointEstimate, SumsWithError, independent
from hubbub.query.monomials import Floats
from hubbub.query.private_table import PrivateTable
from hubbub.query.runs import as_selection, size_of
from hubbub.query.strata import Strata
from hubbub.query.sums_method import SumsMethod, Wanted
from hubbub.query.time_limit import check_time

MOST_KEPT = 4096
"""So many sums are kept for later queries."""


class SplitMethod(SumsMethod):
    """Sums of scores.

    A person's score is an unbiased estimate of whether a formula holds for them; by how much its square is above itself
    adds up to the variance, without bias (`SplitTable`).

    Parameters
    ----------
    table, mechanism
        Whose reports are asked, and how they were made.

    Example:
        >>> from hubbub.query.engine import QueryEngine
        >>> from hubbub.query.example_table import example_table
        >>> engine = QueryEngine(example_table(method="SC", epsilon=8.0))
        >>> count = engine.sql("SELECT COUNT(*) FROM people WHERE age < 10").value()
        >>> count.low < 1000 < count.high
        True
    """

    def __init__(self, table: PrivateTable, mechanism: SC) -> None:
        self._table = table
        self._mechanism = mechanism
        self._sizes = [dimension.size for dimension in mechanism.dimensions]
        self._kept: OrderedDict[object, SumsWithError] = OrderedDict()
        self._passes = 0

    @property
    def repeats(self) -> int:
        return self._passes

    def measure(self, strata: Strata, wanted: Sequence[Wanted]) -> list[SumsWithError]:
        keys = [(strata.every[place].name, strata.weights, formula) for place, formula in wanted]
        missing = {key: part for key, part in zip(keys, wanted, strict=True) if key not in self._kept}
        if missing:
            self._kept.update(self._pass(strata, missing))
        sums = [self._kept[key] for key in keys]
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return sums

    def _pass(self, strata: Strata, missing: dict[Any, Wanted]) -> dict[object, SumsWithError]:
        size = len(strata.weights)
        sums = {key: (np.zeros(size), np.zeros((size, size))) for key in missing}
        for key, (place, formula) in missing.items():
            if formula == ALWAYS:
                sums[key][0][:] = [strata.every[place].totals[weight] for weight in strata.weights]
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
        return {key: SumsWithError(value, covariance) for key, (value, covariance) in sums.items()}

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

    def predict(self, strata: Strata, wanted: Sequence[Wanted]) -> list[SumsWithError]:
        predicted = []
        for place, formula in wanted:
            totals = strata.every[place].totals
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

    def describe(self, strata: Strata, wanted: Wanted) -> list[str]:
        if wanted[1] == ALWAYS:
            return ["known exactly: no private column decides"]
        boxes = self._boxes(wanted[1])
        return [f"scores of every person, multiplied over columns, {len(boxes)} box{'es' if len(boxes) > 1 else ''}"]
