"""Sums for HIO, HI and MG tables, where people report the interval that holds their value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.cell_sums import LevelCells, cells_of, report_variance
from hubbub.protocols.ranges.dimension import Codes
from hubbub.protocols.ranges.hierarchy import IntervalMechanism
from hubbub.query.boxes import MOST_WEIGHED, FormulaTerms, formula_terms, may_be_consistent
from hubbub.query.formula import Formula
from hubbub.query.sandbox import check_time
from hubbub.query.schema import Level, PrivateTable
from hubbub.query.strata import GroupPart, Strata, Stratum, SumsMethod
from hubbub.query.sums import Floats, JointEstimate, Monomial, monomials_to_count, with_products
from hubbub.query.support_counts import LevelSums, StratumSums, SupportCounts, joint_intervals, typical_step

CellAmounts = Callable[[Sequence[Monomial], LevelCells], Floats]
"""Estimates the sum of each weight (row) over the people in each cell of a level (column)."""


@dataclass(frozen=True, eq=False)
class OracleReport:
    """The oracle of a level; how often a report supports a wrong cell, and how much more often the right one."""

    oracle: FrequencyOracle
    false_mean: float
    gap: float


class IntervalMethod(SumsMethod):
    """Estimates a sum from the cells that make up its boxes, or from all cells of all levels by least squares.

    Parameters
    ----------
    table
        The table with the reports.
    mechanism
        The mechanism that made them.
    consistent
        Whether all levels are combined by least squares. None: where they have few enough cells.
    """

    def __init__(self, table: PrivateTable, mechanism: IntervalMechanism, *, consistent: bool | None = None) -> None:
        self._mechanism = mechanism
        self._n = table.n
        self._consistent = consistent
        self._sizes = table.level_sizes()
        self.counts = SupportCounts(table, mechanism)
        self._terms: dict[tuple[Formula, bool], FormulaTerms] = {}
        self._cached_cells = 0  # of all terms
        self._reports: dict[Level, OracleReport] = {}

    @property
    def passes(self) -> int:
        return self.counts.passes

    def measure(self, strata: Strata, parts: Sequence[GroupPart]) -> list[StratumSums]:
        terms = [self._cells(strata, formula) for _, formula in parts]
        needs: dict[int, dict[Level, list[Codes]]] = {}
        for (place, _), chosen in zip(parts, terms, strict=True):
            for term in chosen.terms.terms:
                if self._sizes.get(term.level):
                    needs.setdefault(place, {}).setdefault(term.level, []).append(term.cells)
        unions = {p: {lv: np.unique(np.concatenate(cs)) for lv, cs in levels.items()} for p, levels in needs.items()}
        monomials = monomials_to_count(with_products(strata.weights))
        self.counts.count(strata, unions, monomials)
        sums = []
        for (place, _), chosen in zip(parts, terms, strict=True):
            amounts = self._counted(strata, place, monomials)
            sums.append(self._sums(strata, strata.strata[place], chosen, amounts))
        self.counts.supports.forget()
        return sums

    def predict(self, strata: Strata, parts: Sequence[GroupPart]) -> list[StratumSums]:
        def even(stratum: Stratum) -> CellAmounts:
            def amounts(monomials: Sequence[Monomial], term: LevelCells) -> Floats:
                cells = cells_of(self._mechanism.dimensions, term.level)
                totals = np.array([stratum.totals[monomial] for monomial in monomials])
                return np.repeat(totals[:, None] / cells, term.cells.size, axis=1)

            return amounts

        return [
            self._sums(strata, strata.strata[place], self._cells(strata, formula), even(strata.strata[place]))
            for place, formula in parts
        ]

    def joint(self, parts: Sequence[tuple[Any, Floats]]) -> JointEstimate:
        return joint_intervals(self._n, self._mechanism.divided, parts)

    def step(self, part: StratumSums) -> float:
        return part.step

    def describe(self, strata: Strata, part: GroupPart) -> list[str]:
        chosen = self._cells(strata, part[1])
        if not chosen.terms.terms:
            return ["known exactly: no private column decides"]
        levels = len(chosen.terms.terms)
        every = f"{chosen.terms.cells:,} cells of {levels} level{'s' if levels > 1 else ''}"
        if chosen.consistent:
            return [f"{every}, all of them, by least squares"]
        lines = [f"{every}{f', and {chosen.terms.known:g} times everybody' if chosen.terms.known else ''}"]
        for term in chosen.terms.terms[:12]:
            oracle = self._report(term.level).oracle
            cells = prod(d.nodes(depth) for d, depth in zip(self._mechanism.dimensions, term.level, strict=True))
            people = self._sizes.get(term.level, 0)
            lines.append(
                f"  level {'.'.join(map(str, term.level))}: {term.cells.size:,} of {cells:,} cells, "
                f"{type(oracle).__name__}, {people:,} reports"
            )
        if len(chosen.terms.terms) > 12:
            lines.append(f"  and {len(chosen.terms.terms) - 12} more levels")
        return lines

    def _cells(self, strata: Strata, formula: Formula) -> FormulaTerms:
        check_time()
        consistent = self._consistent
        if consistent is None:
            consistent = may_be_consistent(self._mechanism, len(strata.strata), self._sizes, strata.formulas)
        key = formula, consistent
        if key not in self._terms:
            chosen = formula_terms(self._mechanism, formula, self._n, consistent=consistent)
            self._cached_cells += chosen.terms.cells
            if len(self._terms) > 4096 or self._cached_cells > MOST_WEIGHED:
                self._terms.clear()
                self._cached_cells = chosen.terms.cells
            self._terms[key] = chosen
        return self._terms[key]

    def _scale(self, level: Level) -> float:
        size = self._sizes.get(level, 0)
        if not size:
            return np.inf
        return self._n / size if self._mechanism.divided else 1.0

    def _counted(self, strata: Strata, place: int, monomials: Sequence[Monomial]) -> CellAmounts:
        """Estimates, from the counted supports, what is in each cell."""
        sources = {Monomial(m.base, 2 * m.power): (m, 1) for m in monomials if m.power}
        sources |= {monomial: (monomial, 0) for monomial in monomials}

        def amounts(monomials: Sequence[Monomial], term: LevelCells) -> Floats:
            report = self._report(term.level)
            rows = []
            for source, row in (sources[monomial] for monomial in monomials):
                counts, totals = self.counts.of(strata, place, source, term.level, term.cells)
                rows.append(counts[row] - report.false_mean * totals[row])
            return np.array(rows) * (self._scale(term.level) / report.gap)

        return amounts

    def _report(self, level: Level) -> OracleReport:
        if level not in self._reports:
            oracle = self._mechanism.oracle(level)
            moments = oracle.moments()
            self._reports[level] = OracleReport(oracle, moments.false_mean, moments.true_mean - moments.false_mean)
        return self._reports[level]

    def _sums(self, strata: Strata, stratum: Stratum, chosen: FormulaTerms, amounts: CellAmounts) -> StratumSums:
        check_time()
        weights = strata.weights
        size = len(weights)
        every = with_products(weights)
        own = [every.index(weight) for weight in weights]
        pairs = np.array([[every.index(a * b) for b in weights] for a in weights]).reshape(size, size)
        totals = np.array([stratum.totals[monomial] for monomial in every])
        levels = {}
        added = []
        for term in chosen.terms.terms:
            scale = self._scale(term.level)
            if not np.isfinite(scale):  # nobody reported on the level: the sum is unknown
                nothing = np.full((size, size), np.nan)
                levels[term.level] = LevelSums(1.0, (np.nan, 0.0, 0.0), np.zeros(size), nothing, nothing)
                continue
            rows = amounts(every, term)
            first, second = rows @ term.weights, rows @ term.weights**2
            report = self._report(term.level)
            noise = report_variance(report.oracle, term.weights)
            levels[term.level] = LevelSums(scale, noise, first[own], first[pairs], second[pairs])
            added.append((scale, report.oracle.size, term.weights / report.gap))
        return StratumSums(typical_step(added), chosen.terms.known, totals[own], totals[pairs], levels)
