"""The error that answers from grids (HDG) are expected to have."""

from __future__ import annotations

import math
from itertools import combinations

from hubbub.protocols.ranges.grids import HDG, LINE_ALPHA, PLANE_ALPHA
from hubbub.protocols.ranges.query import RangeQuery


def grid_error(grids: HDG, query: RangeQuery) -> float:
    """The error of a share by HDG: the noise of the cells in a box, and people who are not spread evenly in a cell.

    Of several dimensions it is that of the pair that errs most.

    Example:
        >>> from hubbub.protocols.ranges.dimension import Dimension
        >>> round(grid_error(HDG(1.0, (Dimension.ordinal(64),) * 4, 300_000), RangeQuery([(0, 31)] * 4)), 4)
        0.0268
    """
    asked = [column for column, wanted in enumerate(query.box) if wanted is not None]
    parts = {
        column: sum(high - low + 1 for low, high in grids.dimensions[column].runs(query.box[column]))
        / grids.dimensions[column].size
        for column in asked
    }
    if not asked:
        return 0.0
    if len(asked) == 1:
        cells, uneven = grids.line_cells(asked[0]) * parts[asked[0]], LINE_ALPHA / grids.line_cells(asked[0])
        return math.hypot(math.sqrt(4 * grids.unit * cells), _uneven(grids, asked[0], uneven))
    errors = []
    for first, second in combinations(asked, 2):
        cells = math.prod(grids.plane_cells(column) * parts[column] for column in (first, second))
        uneven = sum(_uneven(grids, column, PLANE_ALPHA / grids.plane_cells(column)) for column in (first, second))
        errors.append(math.hypot(math.sqrt(4 * grids.unit * cells), uneven))
    return max(errors)


def _uneven(grids: HDG, column: int, error: float) -> float:
    """What unevenness costs along a dimension: nothing where cells are single values."""
    return 0.0 if grids.line_width(column) == 1 and grids.plane_width(column) == 1 else error
