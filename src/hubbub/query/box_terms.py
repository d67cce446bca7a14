"""Which cells of which levels add up to a formula: of the ways to make it of boxes, the one that errs least."""

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
"""Least squares looks at every report of a level for each of its cells: not more often than this."""
MOST_WEIGHED = 1 << 25
"""Least squares weighs every cell for every box of every group: not more of them than this, or boxes are answered by
themselves."""
MOST_PENDING = 1 << 20
"""Cells of several boxes are added up as soon as they are so many."""
MOST_TRIED = 64
"""Ways of more boxes than this are tried only if there is no other."""


@dataclass(frozen=True, eq=False)
class FormulaTerms:
    """The boxes that a formula is made of, the way they are put together, and the cells that add up to them."""

    way: str
    boxes: SignedBoxes
    terms: CellSum
    consistent: bool


def formula_terms(mechanism: IntervalMechanism, formula: Formula, n: int, *, consistent: bool) -> FormulaTerms:
    """The cells whose weighted sum is the number of people for whom a formula holds.

    Parameters
    ----------
    mechanism
        How people reported.
    formula
        What must hold.
    n
        How many people there are.
    consistent
        Whether all levels answer together, by least squares.

    Example:
        >>> from hubbub.protocols.ranges.dimension import Dimension
        >>> from hubbub.protocols.ranges.hierarchy import HIO
        >>> from hubbub.query.formula import AnyOf, PrivateAtom
        >>> hio = HIO(1.0, (Dimension.ordinal(25), Dimension.ordinal(25)))
        >>> either = AnyOf((PrivateAtom(0, ((0, 9),)), PrivateAtom(1, ((0, 9),))))
        >>> chosen = formula_terms(hio, either, 10_000, consistent=False)
        >>> chosen.way, chosen.terms.cells
        ('inclusion and exclusion', 8)
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
    """Whether all cells of all levels are few enough to be counted for so many groups of people.

    Parameters
    ----------
    mechanism
        How people reported.
    strata
        How many groups of people are counted for themselves.
    sizes
        How many reports there are on each level.
    formulas
        For how many conditions all cells are weighed.

    Example:
        >>> from hubbub.protocols.ranges.dimension import Dimension
        >>> from hubbub.protocols.ranges.hierarchy import HIO
        >>> hio = HIO(1.0, (Dimension.ordinal(100),))
        >>> may_be_consistent(hio, 1, {(3,): 10**6}), may_be_consistent(hio, 1, {(3,): 10**9})
        (True, False)
        >>> may_be_consistent(hio, 1, {(3,): 10**6}, formulas=10**6)
        False
    """
    if isinstance(mechanism, MG):
        return False
    cells = {level: cells_of(mechanism.dimensions, level) for level in mechanism.levels}
    hashes = sum(sizes.get(level, 0) * count for level, count in cells.items())
    every = sum(cells.values())
    return every * max(strata, 1) <= MOST_COUNTED and hashes <= MOST_HASHES and every * formulas <= MOST_WEIGHED


def _terms(mechanism: IntervalMechanism, boxes: SignedBoxes, consistent: bool) -> CellSum:
    sizes = [dimension.size for dimension in mechanism.dimensions]
    return added(_box_terms(mechanism, boxes, sizes, consistent))


def _box_terms(
    mechanism: IntervalMechanism, boxes: SignedBoxes, sizes: Sequence[int], consistent: bool
) -> Iterator[tuple[int, CellSum]]:
    for factor, box in boxes:
        check_time()
        wanted = [as_selection(runs, size) for runs, size in zip(box, sizes, strict=True)]
        whole = all(selection is None for selection in wanted)
        try:
            terms = CellSum([], 1.0) if whole else mechanism.terms(wanted, consistent=consistent)
        except InvalidValue as error:
            raise QueryError(f"the condition is too fine: {error}", "ask for wider ranges") from None
        yield factor, terms


def added(sums: Iterable[tuple[int, CellSum]]) -> CellSum:
    """Several weighted sums of cells as one; cells whose weights cancel are left out. Never are all in memory at once.

    Example:
        >>> one = CellSum([LevelCells((1,), np.array([0, 2]), np.ones(2))], 0.0)
        >>> two = CellSum([LevelCells((1,), np.array([2, 3]), np.ones(2))], 1.0)
        >>> both = added([(1, one), (-1, two)])
        >>> both.terms[0].cells.tolist(), both.terms[0].weights.tolist(), both.known
        ([0, 3], [1.0, -1.0], -1.0)
    """
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
        kept = np.abs(whole.weights) > 1e-12
        if kept.any():
            terms.append(LevelCells(level, whole.cells[kept], whole.weights[kept]))
    return CellSum(terms, known)


def _together(parts: Sequence[LevelCells]) -> LevelCells:
    """Weighted cells of one level as one, each cell once."""
    cells, places = np.unique(np.concatenate([part.cells for part in parts]), return_inverse=True)
    weights = np.zeros(cells.size)
    np.add.at(weights, places, np.concatenate([part.weights for part in parts]))
    return LevelCells(parts[0].level, cells, weights)
