"""Decomposes a formula over private columns into boxes, and chooses the cells that add up to it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.planning.ranges import MOST_COUNTED, terms_stderr
from hubbub.protocols.ranges.cell_sums import CellSum, Level, LevelCells, cells_of
from hubbub.protocols.ranges.dimension import Scored, Selection
from hubbub.protocols.ranges.hierarchy import MG, IntervalMechanism
from hubbub.query.codes import Runs, as_selection, both, runs_of, without
from hubbub.query.errors import QueryError
from hubbub.query.formula import NO_FACTOR, AllOf, AnyOf, CodeScore, Formula, PrivateAtom, PrivateFactor
from hubbub.query.sandbox import check_time

Box = tuple[Runs, ...]
"""For each private column the codes that the box holds."""
SignedBoxes = tuple[tuple[int, Box], ...]
"""Boxes with factors: the people in each box count as often as its factor says."""
MOST_BOXES = 1024
MOST_OVERLAPPING = 6
"""The greatest number of boxes for which inclusion and exclusion is tried."""


def boxes_of(formula: Formula, sizes: Sequence[int]) -> list[Box]:
    """Boxes, which may overlap, whose union is the set of records for which a formula holds."""
    whole: Box = tuple(((0, size - 1),) for size in sizes)
    if isinstance(formula, PrivateAtom):
        boxes = [tuple(formula.runs if k == formula.column else runs for k, runs in enumerate(whole))]
        return [box for box in boxes if all(box)]
    assert isinstance(formula, AllOf | AnyOf)
    if isinstance(formula, AnyOf):
        return merged([box for part in formula.parts for box in boxes_of(part, sizes)])
    boxes = [whole]
    for part in formula.parts:
        check_time()
        meeting = boxes_of(part, sizes)
        if len(boxes) * len(meeting) > MOST_BOXES:
            raise QueryError("the condition has too many combinations of AND and OR", "ask several simpler queries")
        boxes = merged([cut for box in boxes for other in meeting if (cut := overlap(box, other)) is not None])
    return boxes


def overlap(left: Box, right: Box) -> Box | None:
    """The intersection of two boxes; None if it is empty."""
    shared = tuple(both(a, b) for a, b in zip(left, right, strict=True))
    return shared if all(shared) else None


def merged(boxes: list[Box]) -> list[Box]:
    """Fewer boxes with the same union: boxes inside others are dropped, boxes that differ in one column are merged."""
    left = list(dict.fromkeys(boxes))
    before = 0
    while len(left) != before:
        before = len(left)
        left = _outermost(left)
        for k in range(len(left[0]) if left else 0):
            alike: dict[tuple[Runs, ...], list[Runs]] = {}
            for box in left:
                alike.setdefault((*box[:k], *box[k + 1 :]), []).append(box[k])
            left = [
                (*rest[:k], runs_of(run for runs in every for run in runs), *rest[k:]) for rest, every in alike.items()
            ]
    return left


def _outermost(boxes: list[Box]) -> list[Box]:
    """The boxes that are inside no other box."""
    if len(boxes) < 2:
        return boxes
    low = np.array([[runs[0][0] for runs in box] for box in boxes])
    high = np.array([[runs[-1][1] for runs in box] for box in boxes])
    outermost = []
    for place, box in enumerate(boxes):
        check_time()
        wider = ((low <= low[place]) & (high >= high[place])).all(axis=1)
        wider[place] = False
        if not any(overlap(boxes[other], box) == box for other in np.flatnonzero(wider)):
            outermost.append(box)
    return outermost


def minus(box: Box, taken: Box) -> list[Box]:
    """Disjoint boxes whose union is one box without another."""
    if overlap(box, taken) is None:
        return [box]
    pieces = []
    rest = box
    for k in range(len(box)):
        outside = without(rest[k], taken[k])
        if outside:
            pieces.append((*rest[:k], outside, *rest[k + 1 :]))
        rest = (*rest[:k], both(rest[k], taken[k]), *rest[k + 1 :])
    return pieces


def disjoint(boxes: Sequence[Box]) -> list[Box]:
    """Disjoint boxes with the same union."""
    apart: list[Box] = []
    for box in boxes:
        pieces = [box]
        for earlier in apart:
            check_time()
            pieces = [piece for whole in pieces for piece in minus(whole, earlier)]
            if len(apart) + len(pieces) > MOST_BOXES:
                raise QueryError("the condition has too many combinations of AND and OR", "ask several simpler queries")
        apart += pieces
    return merged(apart)


def ways_to_add(formula: Formula, sizes: Sequence[int]) -> list[tuple[str, SignedBoxes]]:
    """The decompositions of a formula: disjoint boxes, inclusion and exclusion, or everything minus the complement."""
    boxes = boxes_of(formula, sizes)
    ways: list[tuple[str, SignedBoxes]] = [("disjoint", tuple((1, box) for box in disjoint(boxes)))]
    if 1 < len(boxes) <= MOST_OVERLAPPING:
        ways.append(("inclusion and exclusion", _inclusion(boxes)))
    if boxes:
        whole: Box = tuple(((0, size - 1),) for size in sizes)
        rest = [whole]
        for box in boxes:
            check_time()
            rest = [piece for part in rest for piece in minus(part, box)]
            if len(rest) > MOST_BOXES:
                break
        if 0 < len(rest) <= MOST_BOXES:
            ways.append(("all but the rest", ((1, whole), *((-1, box) for box in merged(rest)))))
    return ways


def selected(boxes: SignedBoxes, sizes: Sequence[int]) -> list[tuple[int, tuple[Selection, ...]]]:
    """Boxes with factors, as range queries select them; None stands for all values of a column."""
    return [(factor, tuple(map(as_selection, box, sizes))) for factor, box in boxes]


def _inclusion(boxes: Sequence[Box]) -> SignedBoxes:
    signed: list[tuple[int, Box]] = []
    meeting: list[tuple[int, Box]] = []  # a factor and an intersection of boxes so far
    for box in boxes:
        more = [(1, box), *((-sign, cut) for sign, old in meeting if (cut := overlap(old, box)) is not None)]
        meeting += more
        signed += more
    factors: dict[Box, int] = {}
    for sign, cut in signed:
        factors[cut] = factors.get(cut, 0) + sign
    return tuple((factor, cut) for cut, factor in factors.items() if factor)


MOST_HASHES = 1 << 34
"""The greatest number of pairs of a report and a cell for which least squares is used."""
MOST_WEIGHED = 1 << 25
"""The greatest number of weights for which least squares is used: one for every cell, box and group."""
MOST_PENDING = 1 << 20
"""The number of cells of several boxes from which on they are merged."""
MOST_TRIED = 64
"""Decompositions into more boxes than this are tried only if there is no other."""


@dataclass(frozen=True, eq=False)
class FormulaTerms:
    """The decomposition of a formula into boxes, its name, and the cells that add up to it."""

    way: str
    boxes: SignedBoxes
    terms: CellSum
    consistent: bool


def formula_terms(mechanism: IntervalMechanism, factor: PrivateFactor, n: int, *, consistent: bool) -> FormulaTerms:
    """The cells whose weighted sum is the sum of a factor over all people; of a formula, how many it holds for.

    `factor`: the condition, and the scores of those who meet it. `consistent`: whether all levels are combined by least
    squares, if that is not too much work.
    """
    sizes = [dimension.size for dimension in mechanism.dimensions]
    ways = ways_to_add(factor.formula, sizes)
    if factor == NO_FACTOR:
        return FormulaTerms("everybody", ways[0][1], CellSum([], 1.0), False)
    if consistent:  # least squares gives the same whichever way, and weighs every cell for every box
        fewest = min(ways, key=lambda way: len(way[1]))
        every = sum(cells_of(mechanism.dimensions, level) for level in mechanism.levels)
        consistent = len(fewest[1]) * every <= MOST_WEIGHED
    if consistent:
        return FormulaTerms(fewest[0], fewest[1], _terms(mechanism, fewest[1], factor.scores, True), True)
    tried = [way for way in ways if len(way[1]) <= MOST_TRIED] or ways[:1]
    chosen = [FormulaTerms(name, boxes, _terms(mechanism, boxes, factor.scores, False), False) for name, boxes in tried]
    return min(chosen, key=lambda way: (terms_stderr(mechanism, way.terms, max(n, 1)), way.terms.cells))


def may_be_consistent(mechanism: IntervalMechanism, strata: int, sizes: Mapping[Level, int], formulas: int = 1) -> bool:
    """Whether least squares over all cells of all levels is not too much work.

    `strata`: the number of strata, each of which is counted separately. `formulas`: the number of conditions, each of
    which has weights of all cells.
    """
    if isinstance(mechanism, MG):
        return False
    cells = {level: cells_of(mechanism.dimensions, level) for level in mechanism.levels}
    hashes = sum(sizes.get(level, 0) * count for level, count in cells.items())
    every = sum(cells.values())
    return every * max(strata, 1) <= MOST_COUNTED and hashes <= MOST_HASHES and every * formulas <= MOST_WEIGHED


def scored_box(box: Box, scores: Sequence[CodeScore], sizes: Sequence[int]) -> list[Scored]:
    """A box as a selection of each dimension, or the scores of what it selects."""
    selections: list[Scored] = [as_selection(runs, size) for runs, size in zip(box, sizes, strict=True)]
    for score in scores:
        numbers = np.zeros(sizes[score.column])
        for low, high in box[score.column]:
            numbers[low : high + 1] = score.values[low : high + 1]
        selections[score.column] = numbers
    return selections


def _terms(mechanism: IntervalMechanism, boxes: SignedBoxes, scores: Sequence[CodeScore], consistent: bool) -> CellSum:
    sizes = [dimension.size for dimension in mechanism.dimensions]
    return add_cell_sums(_box_terms(mechanism, boxes, scores, sizes, consistent))


def _box_terms(
    mechanism: IntervalMechanism,
    boxes: SignedBoxes,
    scores: Sequence[CodeScore],
    sizes: Sequence[int],
    consistent: bool,
) -> Iterator[tuple[int, CellSum]]:
    for factor, box in boxes:
        check_time()
        selections = scored_box(box, scores, sizes)
        whole = all(selection is None for selection in selections)
        try:
            terms = CellSum([], 1.0) if whole else mechanism.terms(selections, consistent=consistent)
        except InvalidValue as error:
            raise QueryError(f"the condition is too fine: {error}", "ask for wider ranges") from None
        yield factor, terms


def add_cell_sums(sums: Iterable[tuple[int, CellSum]]) -> CellSum:
    """Merge weighted sums of cells into one, with few in memory at a time. Weights that cancel are left out."""
    levels: dict[Level, list[LevelCells]] = {}
    known = 0.0
    for factor, part in sums:
        known += factor * part.known
        for term in part.terms:
            parts = levels.setdefault(term.level, [])
            parts.append(LevelCells(term.level, term.cells, factor * term.weights))
            if sum(pending.cells.size for pending in parts[1:]) > max(MOST_PENDING, parts[0].cells.size):
                levels[term.level] = [_merged(parts)]
    terms = []
    for level, parts in levels.items():
        whole = _merged(parts)
        nonzero = np.abs(whole.weights) > 1e-12
        if nonzero.any():
            terms.append(LevelCells(level, whole.cells[nonzero], whole.weights[nonzero]))
    return CellSum(terms, known)


def _merged(parts: Sequence[LevelCells]) -> LevelCells:
    """Merge lists of weighted cells of one level, so that each cell stands once."""
    cells, places = np.unique(np.concatenate([part.cells for part in parts]), return_inverse=True)
    weights = np.zeros(cells.size)
    np.add.at(weights, places, np.concatenate([part.weights for part in parts]))
    return LevelCells(parts[0].level, cells, weights)
