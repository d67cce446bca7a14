"""The expected error of answers from grids (HDG)."""

from __future__ import annotations

import math
from itertools import combinations

from hubbub.protocols.ranges.grids import HDG, LINE_ALPHA, PLANE_ALPHA
from hubbub.protocols.ranges.query import RangeQuery


def grid_error(grids: HDG, query: RangeQuery) -> float:
    """The error of a share by HDG: the noise of the cells in a box, and the uneven spread of people within cells.

    Where the box restricts several dimensions it is the error of the worst pair.
    """
    restricted = [column for column, selection in enumerate(query.box) if selection is not None]
    parts = {
        column: sum(high - low + 1 for low, high in grids.dimensions[column].runs(query.box[column]))
        / grids.dimensions[column].size
        for column in restricted
    }
    if not restricted:
        return 0.0
    if len(restricted) == 1:
        (column,) = restricted
        cells, uneven = grids.line_cells(column) * parts[column], LINE_ALPHA / grids.line_cells(column)
        return math.hypot(math.sqrt(4 * grids.unit * cells), _uneven(grids, column, uneven))
    errors = []
    for first, second in combinations(restricted, 2):
        cells = math.prod(grids.plane_cells(column) * parts[column] for column in (first, second))
        uneven = sum(_uneven(grids, column, PLANE_ALPHA / grids.plane_cells(column)) for column in (first, second))
        errors.append(math.hypot(math.sqrt(4 * grids.unit * cells), uneven))
    return max(errors)


def _uneven(grids: HDG, column: int, error: float) -> float:
    """The error of an uneven spread along a dimension: none where cells are single values."""
    return 0.0 if grids.line_width(column) == 1 and grids.plane_width(column) == 1 else error
