"""Chooses the cells that add up to a formula: of several decompositions into boxes, the one with the least error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ranges.cell_sums import CellSum, Level, LevelCells, cells_of
from hubbub.protocols.ranges.choose import MOST_COUNTED
from hubbub.protocols.ranges.forecast import terms_stderr
from hubbub.protocols.ranges.hierarchy import MG, IntervalMechanism
from hubbub.query.boxes import SignedBoxes, ways_to_add
from hubbub.query.errors import QueryError
from hubbub.query.formula import ALWAYS, Formula
from hubbub.query.runs import as_selection
from hubbub.query.time_limit import check_time

MOST_HASHES = 1 << 34
"""Least squares is used only if it looks at most at so many pairs of a report and a cell."""
MOST_WEIGHED = 1 << 25
"""Least squares is used only if it computes at most so many weights: one for every cell, box and group."""
MOST_PENDING = 1 << 20
"""The cells of several boxes are merged as soon as they are so many."""
MOST_TRIED = 64
"""Decompositions into more boxes than this are tried only if there is no other."""


@dataclass(frozen=True, eq=False)
class FormulaTerms:
    """The decomposition of a formula into boxes, its name, and the cells that add up to it."""

    way: str
    boxes: SignedBoxes
    terms: CellSum
    consistent: bool


def formula_terms(mechanism: IntervalMechanism, formula: Formula, n: int, *, consistent: bool) -> FormulaTerms:
    """The cells whose weighted sum is the number of people for whom a formula holds.

    Parameters
    ----------
    mechanism
        The mechanism of the reports.
    formula
        The condition.
    n
        The number of people.
    consistent
        Whether all levels are combined by least squares, if that is not too much work.
    """
    sizes = [dimension.size for dimension in mechanism.dimensions]
    ways = ways_to_add(formula, sizes)
    if formula == ALWAYS:
        return FormulaTerms("everybody", ways[0][1], CellSum([], 1.0), False)
    if consistent:  # least squares gives the same whichever way, and weighs every cell for every box
        fewest = min(ways, key=lambda way: len(way[1]))
        every = sum(cells_of(mechanism.dimensions, level) for level in mechanism.levels)
        consistent = len(fewest[1]) * every <= MOST_WEIGHED
    if consistent:
        return FormulaTerms(fewest[0], fewest[1], _terms(mechanism, fewest[1], True), True)
    tried = [way for way in ways if len(way[1]) <= MOST_TRIED] or ways[:1]
    chosen = [FormulaTerms(name, boxes, _terms(mechanism, boxes, False), False) for name, boxes in tried]
    return min(chosen, key=lambda way: (terms_stderr(mechanism, way.terms, max(n, 1)), way.terms.cells))


def may_be_consistent(mechanism: IntervalMechanism, strata: int, sizes: Mapping[Level, int], formulas: int = 1) -> bool:
    """Whether least squares over all cells of all levels is not too much work.

    Parameters
    ----------
    mechanism
        The mechanism of the reports.
    strata
        The number of strata, each of which is counted separately.
    sizes
        The number of reports on each level.
    formulas
        The number of conditions, each of which has weights of all cells.
    """
    if isinstance(mechanism, MG):
        return False
    cells = {level: cells_of(mechanism.dimensions, level) for level in mechanism.levels}
    hashes = sum(sizes.get(level, 0) * count for level, count in cells.items())
    every = sum(cells.values())
    return every * max(strata, 1) <= MOST_COUNTED and hashes <= MOST_HASHES and every * formulas <= MOST_WEIGHED


def _terms(mechanism: IntervalMechanism, boxes: SignedBoxes, consistent: bool) -> CellSum:
    sizes = [dimension.size for dimension in mechanism.dimensions]
    return add_cell_sums(_box_terms(mechanism, boxes, sizes, consistent))


def _box_terms(
    mechanism: IntervalMechanism, boxes: SignedBoxes, sizes: Sequence[int], consistent: bool
) -> Iterator[tuple[int, CellSum]]:
    for factor, box in boxes:
        check_time()
        selections = [as_selection(runs, size) for runs, size in zip(box, sizes, strict=True)]
        whole = all(selection is None for selection in selections)
        try:
            terms = CellSum([], 1.0) if whole else mechanism.terms(selections, consistent=consistent)
        except InvalidValue as error:
            raise QueryError(f"the condition is too fine: {error}", "ask for wider ranges") from None
        yield factor, terms


def add_cell_sums(sums: Iterable[tuple[int, CellSum]]) -> CellSum:
    """Merge weighted sums of cells into one, without holding all of them in memory. Weights that cancel are left out."""
    levels: dict[Level, list[LevelCells]] = {}
    known = 0.0
    for factor, part in sums:
        known += factor * part.known
        for term in part.terms:
            parts = levels.setdefault(term.level, [])
            parts.append(LevelCells(term.level, term.cells, factor * term.weights))
            if sum(pending.cells.size for pending in parts[1:]) > max(MOST_PENDING, parts[0].cells.size):
                levels[term.level] = [_together(parts)]
    terms = []
    for level, parts in levels.items():
        whole = _together(parts)
        nonzero = np.abs(whole.weights) > 1e-12
        if nonzero.any():
            terms.append(LevelCells(level, whole.cells[nonzero], whole.weights[nonzero]))
    return CellSum(terms, known)


def _together(parts: Sequence[LevelCells]) -> LevelCells:
    """Merge lists of weighted cells of one level, so that each cell stands once."""
    cells, places = np.unique(np.concatenate([part.cells for part in parts]), return_inverse=True)
    weights = np.zeros(cells.size)
    np.add.at(weights, places, np.concatenate([part.weights for part in parts]))
    return LevelCells(parts[0].level, cells, weights)
