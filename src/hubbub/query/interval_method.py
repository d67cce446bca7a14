"""Sums for HIO, HI and MG tables, where people report the interval that holds their value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hubbub.core.reports import Floats, Ints
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.planning.range_bounds import bound_name, boxes_bound
from hubbub.protocols.ranges.cell_sums import cells_of
from hubbub.protocols.ranges.hierarchy import IntervalMechanism
from hubbub.query.boxes import MOST_WEIGHED, FormulaTerms, formula_terms, may_be_consistent, selected
from hubbub.query.formula import PrivateFactor
from hubbub.query.sandbox import check_time
from hubbub.query.schema import Level, PrivateTable
from hubbub.query.strata import GroupPart, Strata, Stratum, SumsMethod
from hubbub.query.sums import JointEstimate, Monomial, monomials_to_count, with_products
from hubbub.query.support_counts import (
    LevelSums,
    StratumSums,
    SupportCounts,
    joint_intervals,
    report_covariances,
    typical_step,
)

CellAmounts = Callable[[Sequence[Monomial], Level, Ints], Floats]
"""Estimates the sum of each public weight (row) over the people in each cell of a level (column)."""


@dataclass(frozen=True, eq=False)
class ChosenCells:
    """What private columns multiply each weight of a part, and each product of two weights, with.

    `cells` add up to each different factor of these.
    """

    own: Sequence[PrivateFactor]
    pairs: Sequence[PrivateFactor]
    cells: Mapping[PrivateFactor, FormulaTerms]


@dataclass(frozen=True, eq=False)
class OracleReport:
    """The oracle of a level; how often a report supports a wrong cell, and how much more often the right one."""

    oracle: FrequencyOracle
    false_mean: float
    gap: float


class IntervalMethod(SumsMethod[StratumSums]):
    """Estimates a sum from the cells that make up its boxes, or from all cells of all levels by least squares.

    Parameters
    ----------
    consistent
        Whether all levels are combined by least squares. None: where they have few enough cells.
    """

    def __init__(self, table: PrivateTable, mechanism: IntervalMechanism, *, consistent: bool | None = None) -> None:
        self._mechanism = mechanism
        self._n = table.n
        self._consistent = consistent
        self._sizes = table.level_sizes()
        self.counts = SupportCounts(table, mechanism)
        self._terms: dict[tuple[PrivateFactor, bool], FormulaTerms] = {}
        self._cached_cells = 0  # of all terms
        self._reports: dict[Level, OracleReport] = {}

    @property
    def passes(self) -> int:
        return self.counts.passes

    def measure(self, strata: Strata, parts: Sequence[GroupPart]) -> list[StratumSums]:
        every = with_products(strata.weights)
        needs: dict[int, dict[Level, list[Ints]]] = {}
        chosen_of = [self._chosen(strata, part) for part in parts]
        for part, chosen in zip(parts, chosen_of, strict=True):
            for terms in chosen.cells.values():
                for term in terms.terms.terms:
                    if self._sizes.get(term.level):
                        needs.setdefault(part[0], {}).setdefault(term.level, []).append(term.cells)
        unions = {p: {lv: np.unique(np.concatenate(cs)) for lv, cs in levels.items()} for p, levels in needs.items()}
        monomials = monomials_to_count({monomial.public for monomial in every})
        self.counts.count(strata, unions, monomials)
        sums = [
            self._sums(strata, part, chosen, self._counted(strata, part[0], monomials))
            for part, chosen in zip(parts, chosen_of, strict=True)
        ]
        self.counts.supports.forget()
        return sums

    def predict(self, strata: Strata, parts: Sequence[GroupPart]) -> list[StratumSums]:
        def even(stratum: Stratum) -> CellAmounts:
            def amounts(monomials: Sequence[Monomial], level: Level, cells: Ints) -> Floats:
                every = cells_of(self._mechanism.dimensions, level)
                totals = np.array([stratum.totals[monomial] for monomial in monomials])
                return np.repeat(totals[:, None] / every, cells.size, axis=1)

            return amounts

        return [self._sums(strata, p, self._chosen(strata, p), even(strata.strata[p[0]])) for p in parts]

    def joint(self, parts: Sequence[tuple[StratumSums, Floats]]) -> JointEstimate:
        return joint_intervals(self._n, self._mechanism.divided, parts)

    def bound(self, strata: Strata, part: GroupPart) -> tuple[str, float] | None:
        if part[1].scores:
            return None
        people = sum(self._sizes.values()) if self._mechanism.divided else max(self._sizes.values(), default=0)
        boxes = selected(self._cells(strata, part[1]).boxes, [d.size for d in self._mechanism.dimensions])
        bound = boxes_bound(self._mechanism, boxes, asked=people / self._n) if people else np.inf
        return bound_name(self._mechanism), bound

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

    def _chosen(self, strata: Strata, part: GroupPart) -> ChosenCells:
        """The cells of each different factor that private columns multiply a weight, or two weights, with."""
        weights = strata.weights
        own = strata.factors(part, weights)
        pairs = strata.pair_factors(part, [a * b for a in weights for b in weights])
        factors = dict.fromkeys((*own, *pairs))
        return ChosenCells(own, pairs, {factor: self._cells(strata, factor, len(factors)) for factor in factors})

    def _cells(self, strata: Strata, factor: PrivateFactor, others: int = 1) -> FormulaTerms:
        check_time()
        consistent = self._consistent
        if consistent is None:
            formulas = strata.formulas * others
            consistent = may_be_consistent(self._mechanism, len(strata.strata), self._sizes, formulas)
        key = factor, consistent
        if key not in self._terms:
            chosen = formula_terms(self._mechanism, factor, self._n, consistent=consistent)
            self._cached_cells += chosen.terms.cells
            if len(self._terms) > 4096 or self._cached_cells > MOST_WEIGHED:
                self._terms.clear()
                self._cached_cells = chosen.terms.cells
            self._terms[key] = chosen
        return self._terms[key]

    def _scale(self, level: Level) -> float:
        size = self._sizes.get(level, 0)
        return self._n / size if size else np.inf

    def _counted(self, strata: Strata, place: int, monomials: Sequence[Monomial]) -> CellAmounts:
        """Estimates, from the counted supports, what is in each cell."""
        sources = {Monomial(m.base, 2 * m.power): (m, 1) for m in monomials if m.power}
        sources |= {monomial: (monomial, 0) for monomial in monomials}

        def amounts(monomials: Sequence[Monomial], level: Level, cells: Ints) -> Floats:
            report = self._report(level)
            rows = []
            for source, row in (sources[monomial] for monomial in monomials):
                counts, totals = self.counts.of(strata, place, source, level, cells)
                rows.append(counts[row] - report.false_mean * totals[row])
            return np.array(rows) * (self._scale(level) / report.gap)

        return amounts

    def _report(self, level: Level) -> OracleReport:
        if level not in self._reports:
            oracle = self._mechanism.oracle(level)
            moments = oracle.moments()
            self._reports[level] = OracleReport(oracle, moments.false_mean, moments.true_mean - moments.false_mean)
        return self._reports[level]

    def _sums(self, strata: Strata, part: GroupPart, chosen: ChosenCells, amounts: CellAmounts) -> StratumSums:
        check_time()
        weights, totals = strata.weights, strata.strata[part[0]].totals
        size = len(weights)
        pairs = [a * b for a in weights for b in weights]
        own = list(dict.fromkeys(chosen.own))
        places = [own.index(factor) for factor in chosen.own]
        publics = sorted({monomial.public for monomial in (*weights, *pairs)})
        rows_of, rows_of_pairs = ([publics.index(weight.public) for weight in group] for group in (weights, pairs))
        left, right = np.repeat(places, size), np.tile(places, size)  # of each pair
        known = np.array([chosen.cells[factor].terms.known for factor in chosen.own])
        products = np.array([totals[pair.public] for pair in pairs]).reshape(size, size)
        inside = self._known_inside(chosen).reshape(size, size) * products
        levels, added = {}, []
        for level in dict.fromkeys(term.level for terms in chosen.cells.values() for term in terms.terms.terms):
            scale = self._scale(level)
            if not np.isfinite(scale):  # nobody reported on the level: the sums are unknown
                nothing = np.full((size, size), np.nan)
                levels[level] = LevelSums(1.0, np.zeros(size), nothing, nothing, nothing)
                continue
            cells, numbers = _aligned(chosen.cells, level)
            amount, report = amounts(publics, level, cells), self._report(level)
            mine = np.array([numbers[factor] for factor in own])
            constant, slope, curve = report_covariances(report.oracle, mine)
            weighed = amount @ mine.T
            first = weighed[rows_of_pairs, left].reshape(size, size)
            crossed = np.array([(amount * row) @ mine.T for row in mine])  # by one factor, the weight, the other
            second = crossed[left, rows_of_pairs, right].reshape(size, size)
            turned = first * mine.sum(axis=1)[places]
            noise = constant[np.ix_(places, places)] * products + slope * (turned + turned.T) + curve * second
            levels[level] = LevelSums(scale, weighed[rows_of, places], noise, first, second)
            inside = inside + self._inside(chosen, numbers, amount[rows_of_pairs], first, second)
            added.append((scale, report.oracle.size, mine / report.gap))
        step = typical_step(added, len(own))[np.ix_(places, places)]
        own_totals = np.array([totals[weight.public] for weight in weights])
        return StratumSums(step, known, own_totals, products, inside, levels)

    def _known_inside(self, chosen: ChosenCells) -> Floats:
        """What times the total of each pair of weights is added to its sum over the people inside."""
        return np.array([chosen.cells[factor].terms.known for factor in chosen.pairs])

    def _inside(
        self,
        chosen: ChosenCells,
        numbers: Mapping[PrivateFactor, Floats],
        amount: Floats,
        first: Floats,
        second: Floats,
    ) -> Floats:
        """A level's part of the sums of all products of two weights and their factors (`StratumSums.inside`)."""
        sums = [float(row @ numbers[factor]) for row, factor in zip(amount, chosen.pairs, strict=True)]
        return np.reshape(sums, second.shape)


def _aligned(chosen: Mapping[PrivateFactor, FormulaTerms], level: Level) -> tuple[Ints, Mapping[PrivateFactor, Floats]]:
    """The cells of a level that any of some factors has, and their weights for each factor."""
    found = {factor: next((t for t in c.terms.terms if t.level == level), None) for factor, c in chosen.items()}
    terms = [term for term in found.values() if term is not None]
    cells = terms[0].cells
    if any(not np.array_equal(term.cells, cells) for term in terms[1:]):
        cells = np.unique(np.concatenate([term.cells for term in terms]))
    numbers = {}
    for factor, term in found.items():
        numbers[factor] = np.zeros(cells.size)
        if term is not None:
            numbers[factor][np.searchsorted(cells, term.cells)] = term.weights
    return cells, numbers
