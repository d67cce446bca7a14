"""Bounds of sums for HDG tables that hold however people are spread inside the cells of grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from hubbub.protocols.ranges.cell_sums import CellSum, LevelCells
from hubbub.protocols.ranges.grids import HDG, Grid
from hubbub.query.box_terms import FormulaTerms
from hubbub.query.boxes import Box, boxes_of, disjoint
from hubbub.query.formula import ALWAYS, Formula
from hubbub.query.interval_method import IntervalMethod
from hubbub.query.monomials import Floats
from hubbub.query.private_table import PrivateTable
from hubbub.query.strata import Strata


class GridBound(IntervalMethod):
    """Sums over the cells of one grid: all that a formula touches (`upper`), or only those that it holds entirely.

    For weights that are never negative the expected sums are an upper and a lower bound of the sums over the people for
    whom the formula holds. They are unbiased sums of cells, so that their noise is known as for HIO. Of all grids the
    one is used whose bound is expected to be closest, if people are spread evenly.

    Parameters
    ----------
    table, mechanism
        Whose reports are asked, and how they were made.
    upper
        Which bound.
    """

    def __init__(self, table: PrivateTable, mechanism: HDG, *, upper: bool) -> None:
        grids: Any = mechanism  # a grid is a level: a person reports on one of them
        super().__init__(table, grids)
        self._grids = mechanism
        self._upper = upper

    def _cells(self, strata: Strata, formula: Formula) -> FormulaTerms:
        key = formula, False
        if key not in self._terms:
            if len(self._terms) > 4096:
                self._terms.clear()
            self._terms[key] = FormulaTerms("a grid", (), self._bound(formula), False)
        return self._terms[key]

    def _scale(self, level: Grid) -> float:
        size = self._sizes.get(level, 0)
        return self._n / size if size else math.inf

    def _bound(self, formula: Formula) -> CellSum:
        if formula == ALWAYS:
            return CellSum([], 1.0)
        boxes = disjoint(boxes_of(formula, [dimension.size for dimension in self._grids.dimensions]))
        chosen = [(grid, self._chosen(grid, boxes)) for grid in self._grids.grids]
        grid, cells = min(chosen, key=lambda choice: self._expected(*choice))
        places = np.flatnonzero(cells)
        return CellSum([LevelCells(grid, places, np.ones(places.size))] if places.size else [], 0.0)

    def _expected(self, grid: Grid, cells: Floats) -> float:
        """How far a bound is expected to be off, as a share of the people: what it leaves open, and twice the noise."""
        share = float(cells.mean())
        return (share if self._upper else -share) + 2 * math.sqrt(4 * self._grids.unit * float(cells.sum()))

    def _chosen(self, grid: Grid, boxes: Sequence[Box]) -> Floats:
        """Which cells of a grid count: 1 or 0."""
        hdg = self._grids
        widths = [hdg.line_width(c) if len(grid) == 1 else hdg.plane_width(c) for c in grid]
        starts = [np.arange(0, hdg.dimensions[c].size, width) for c, width in zip(grid, widths, strict=True)]
        sizes = [np.diff(np.append(s, hdg.dimensions[c].size)) for c, s in zip(grid, starts, strict=True)]
        covered = np.zeros(math.prod(hdg.shape(grid)))
        for box in boxes:
            whole = all(
                runs == ((0, dimension.size - 1),)
                for column, (runs, dimension) in enumerate(zip(box, hdg.dimensions, strict=True))
                if column not in grid
            )
            if whole or self._upper:
                held = [
                    np.add.reduceat(_selected(box[c], hdg.dimensions[c].size), s)
                    for c, s in zip(grid, starts, strict=True)
                ]
                covered += reduce(np.multiply.outer, held).reshape(-1)
        entire = reduce(np.multiply.outer, sizes).reshape(-1)
        return np.asarray(covered > 0 if self._upper else covered >= entire, dtype=np.float64)


def _selected(runs: Sequence[tuple[int, int]], size: int) -> Floats:
    selected = np.zeros(size)
    for low, high in runs:
        selected[low : high + 1] = 1.0
    return selected
