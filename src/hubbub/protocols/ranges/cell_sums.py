"""A query as a weighted sum of cells, which are products of intervals of several dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ranges.dimension import Codes, Cover, Dimension, Floats, Selection
from hubbub.protocols.ranges.least_squares import least_squares

Level = tuple[int, ...]
"""A level of each dimension. The cells of the combined level are the products of the dimensions' intervals."""
MOST_CELLS = 1 << 26


@dataclass(frozen=True, eq=False)
class LevelCells:
    """The cells of one level that a query uses, and the weight of each."""

    level: Level
    cells: Codes
    weights: Floats


@dataclass(frozen=True, eq=False)
class CellSum:
    """A query as a weighted sum of cells, level by level, plus `known` times the total of all people, which is known."""

    terms: list[LevelCells]
    known: float

    @property
    def cells(self) -> int:
        """How many cells the sum has."""
        return sum(term.cells.size for term in self.terms)


def cells_of(dimensions: Sequence[Dimension], level: Level) -> int:
    """How many cells a level has."""
    return prod(dimension.nodes(depth) for dimension, depth in zip(dimensions, level, strict=True))


def cell_of(dimensions: Sequence[Dimension], level: Level, records: Codes) -> Codes:
    """The cell of a level that each record (row) falls in."""
    cell = np.zeros(len(records), dtype=np.int64)
    for column, (dimension, depth) in enumerate(zip(dimensions, level, strict=True)):
        cell = cell * dimension.nodes(depth) + dimension.node_of(records[:, column], depth)
    return cell


def decomposition(dimensions: Sequence[Dimension], box: Sequence[Selection]) -> CellSum:
    """A box as the products of the fewest intervals of each dimension (Eq 7.19)."""
    covers = [dimension.decompose(selection) for dimension, selection in zip(dimensions, box, strict=True)]
    return _products(dimensions, [covers], [1.0])


def single_values(dimensions: Sequence[Dimension], box: Sequence[Selection]) -> CellSum:
    """A box as the sum of all cells of the last level in it (Eq 7.9)."""
    empty: Codes = np.zeros(0, dtype=np.int64)
    covers: list[Cover] = []
    for dimension, selection in zip(dimensions, box, strict=True):
        values = np.concatenate([np.arange(low, high + 1) for low, high in dimension.runs(selection)])
        covers.append([(empty, np.zeros(0))] * (dimension.levels - 1) + [(values, np.ones(values.size))])
    return _products(dimensions, [covers], [1.0])


def consistent_terms(dimensions: Sequence[Dimension], box: Sequence[Selection]) -> CellSum:
    """A box as the least-squares combination of all cells of all levels, given the total of all people.

    That the total is known is used by subtracting a multiple of the whole domain's weights that makes the root's weight
    0.
    """
    box_covers = [least_squares(dimension, selection) for dimension, selection in zip(dimensions, box, strict=True)]
    whole_covers = [least_squares(dimension, None) for dimension in dimensions]
    share = prod(float(part[0][1][0] / whole[0][1][0]) for part, whole in zip(box_covers, whole_covers, strict=True))
    terms = _products(dimensions, [box_covers, whole_covers], [1.0, -share])
    return CellSum(terms.terms, share)


def _products(dimensions: Sequence[Dimension], covers: list[list[Cover]], factors: list[float]) -> CellSum:
    """The sum of several products of covers, each times its factor; all covers have the same intervals."""
    terms, known = [], 0.0
    for level in product(*(range(dimension.levels) for dimension in dimensions)):
        nodes = [covers[0][column][depth][0] for column, depth in enumerate(level)]
        count = prod(codes.size for codes in nodes)
        if not count:
            continue
        if count > MOST_CELLS:
            raise InvalidValue("box", count, f"a query of at most {MOST_CELLS:,} cells of a level")
        cells, weights = np.zeros(1, dtype=np.int64), np.zeros(count)
        for dimension, codes, depth in zip(dimensions, nodes, level, strict=True):
            cells = (cells[:, None] * dimension.nodes(depth) + codes).reshape(-1)
        for cover, factor in zip(covers, factors, strict=True):
            product_weights = np.full(1, factor)
            for column, depth in enumerate(level):
                product_weights = np.multiply.outer(product_weights, cover[column][depth][1]).reshape(-1)
            weights += product_weights
        if any(level):
            terms.append(LevelCells(level, cells, weights))
        else:
            known = float(weights[0])
    return CellSum(terms, known)
