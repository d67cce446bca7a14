"""Hybrid-dimensional grids (HDG): coarse grids of pairs of dimensions, and finer grids of single dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.core.random import Random
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Codes, Dimension
from hubbub.protocols.ranges.hierarchy import LevelReports, cell_oracle, check_records

LINE_ALPHA = 0.7
PLANE_ALPHA = 0.03
"""The assumed unevenness inside the cells of a dimension's own grid, and of a pair's grid (the authors' numbers)."""

NEAR = 1.5
"""A width that divides the values evenly is used if it is within this factor of the optimal width."""

Grid = tuple[int, ...]
"""The dimensions of a grid: one or two."""


@dataclass(frozen=True, eq=False)
class GridReports:
    """The reports of n people, by grid."""

    n: int
    grids: Mapping[Grid, LevelReports]


@dataclass(frozen=True)
class HDG:
    """A person reports their cell of one grid, drawn at random among the grids of all dimensions and of all pairs.

    More cells mean more noise; larger cells mean a larger error from the unknown spread of people within a cell. The
    number of cells minimises the sum of both errors, for a range of half of a dimension.

    Parameters
    ----------
    epsilon
        What a person's report may spend.
    dimensions
        The private dimensions. Those without levels between root and values are categorical, and never coarsened.
    n
        How many people are expected: it decides how fine the grids are.

    References
    ----------
    Yang, Wang, Li, Cheng, Su: Answering multi-dimensional range queries under local differential privacy. VLDB 2021.
    """

    epsilon: float
    dimensions: tuple[Dimension, ...]
    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", tuple(self.dimensions))
        units_of(self.epsilon)
        check_integer("n", self.n, 1)
        if not self.dimensions:
            raise InvalidValue("dimensions", self.dimensions, "at least one")

    @property
    def grids(self) -> tuple[Grid, ...]:
        """All grids: of single dimensions, then of pairs."""
        columns = range(len(self.dimensions))
        return (*combinations(columns, 1), *combinations(columns, 2))

    @property
    def unit(self) -> float:
        """A quarter of the variance of a cell's share: e^eps / (n (e^eps - 1)^2), where n people report on a grid."""
        power = math.exp(min(self.epsilon, 100.0))
        return len(self.grids) * power / (self.n * (power - 1) ** 2)

    def line_width(self, column: int) -> int:
        """How many values a cell of a dimension's own grid holds."""
        dimension = self.dimensions[column]
        if dimension.levels == 2:
            return 1
        cells = max(2.0, math.cbrt(LINE_ALPHA**2 / (2 * self.unit)))
        return even_width(dimension.size, dimension.size / cells)

    def plane_width(self, column: int) -> int:
        """How many values of a dimension a cell of a pair's grid holds: a multiple of `line_width`."""
        dimension, line = self.dimensions[column], self.line_width(column)
        if dimension.levels == 2:
            return 1
        cells = max(2.0, math.sqrt(2 * PLANE_ALPHA / math.sqrt(self.unit)))
        fine = self.line_cells(column)
        return line * min(even_width(fine, max(1.0, dimension.size / cells / line)), -(-fine // 2))

    def line_cells(self, column: int) -> int:
        """How many cells a dimension's own grid has."""
        return -(-self.dimensions[column].size // self.line_width(column))

    def plane_cells(self, column: int) -> int:
        """How many cells a pair's grid has along a dimension."""
        return -(-self.dimensions[column].size // self.plane_width(column))

    def shape(self, grid: Grid) -> tuple[int, ...]:
        """How many cells a grid has along each of its dimensions."""
        return tuple(self.line_cells(c) for c in grid) if len(grid) == 1 else tuple(self.plane_cells(c) for c in grid)

    def oracle(self, grid: Grid) -> FrequencyOracle:
        """The oracle of a grid's cells."""
        return cell_oracle(self.epsilon, math.prod(self.shape(grid)))

    def cell_of(self, grid: Grid, records: Codes) -> Codes:
        """The cell of a grid that each record (row) falls in."""
        cell = np.zeros(len(records), dtype=np.int64)
        for column, cells in zip(grid, self.shape(grid), strict=True):
            width = self.line_width(column) if len(grid) == 1 else self.plane_width(column)
            cell = cell * cells + records[:, column] // width
        return cell

    def randomize(self, records: ArrayLike, rng: Random) -> GridReports:
        """The reports of people whose records (rows) hold a code for each dimension."""
        codes = check_records(self.dimensions, records)
        chosen = rng.below(len(self.grids), len(codes))
        reports = {}
        for place, grid in enumerate(self.grids):
            rows = np.flatnonzero(chosen == place)
            if rows.size:
                reports[grid] = LevelReports(rows, self.oracle(grid).randomize(self.cell_of(grid, codes[rows]), rng))
        return GridReports(len(codes), reports)


def even_width(size: int, width: float) -> int:
    """The width nearest to `width` that divides the values evenly; `width` rounded if no such width is near enough.

    Queries more often end at multiples of 5 of 100 values, or of 4 of 64, than of 3; and a range that ends with a cell
    has no error from the spread of people within cells.
    """
    dividing = [candidate for candidate in range(1, size // 2 + 1) if size % candidate == 0]
    nearest = min(dividing, key=lambda candidate: abs(math.log(candidate / width)))
    return nearest if abs(math.log(nearest / width)) < math.log(NEAR) else max(1, round(width))
