"""Hybrid-dimensional grids (HDG): coarse grids of pairs of dimensions, and finer grids of single dimensions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from hubbub.consistency.normalise import project_simplex
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import units_of
from hubbub.core.reports import Floats, Ints
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Dimension, Scored
from hubbub.protocols.ranges.hierarchy import LevelReports, cell_oracle, check_records
from hubbub.random.source import Random

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

    `dimensions`: the private dimensions. Those without levels between root and values are categorical, and never
    coarsened. `n`: how many people are expected: it decides how fine the grids are.

    References
    ----------
    Yang et al., 2021.
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

    def cell_of(self, grid: Grid, records: Ints) -> Ints:
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


ROUNDS = 100
"""The most iterations of consistency, and of fitting."""
CLOSE = 1e-6
"""Iteration ends when shares change by less than this."""


class GridModel:
    """The shares of all cells, made consistent, and the joint distribution of each pair of dimensions.

    Grids that share a dimension are given the same marginal of it, the mean weighted by precision; in alternation with
    that, negative shares are removed (Norm-Sub). The response matrix of a pair then is the evenest table with the
    shares of both finer grids and of the pair's own grid.

    `grids`: the mechanism that defines the grids. `shares`: the estimated shares of the cells of each grid.
    """

    def __init__(self, grids: HDG, shares: Mapping[Grid, Floats]) -> None:
        self._grids = grids
        self.shares = {grid: np.array(shares[grid], dtype=np.float64).reshape(grids.shape(grid)) for grid in shares}
        self._agree()
        self._matrices: dict[Grid, Floats] = {grid: self._matrix(grid) for grid in self.shares if len(grid) == 2}

    def share(self, box: tuple[Scored, ...]) -> float:
        """The share of people in a box; numbers from 0 to 1 instead of a selection count people in part."""
        columns = [column for column, selection in enumerate(box) if selection is not None]
        parts = {column: self._part(column, box[column]) for column in columns}
        if not columns:
            return 1.0
        if len(columns) == 1:
            return float(parts[columns[0]] @ self.shares[columns[0],])
        quadrants: dict[Grid, Floats] = {pair: self._quadrants(pair, parts) for pair in combinations(columns, 2)}
        if len(columns) == 2:
            return float(quadrants[columns[0], columns[1]][0, 0])
        return _conjunction(columns, quadrants)

    def edges(self, column: int) -> tuple[Ints, Ints]:
        """For each coarse cell of a dimension, the number of its first fine cell, and how many fine cells it has."""
        ratio = self._grids.plane_width(column) // self._grids.line_width(column)
        fine = self._grids.line_cells(column)
        starts = np.arange(0, fine, ratio)
        return starts, np.diff(np.append(starts, fine))

    def _agree(self) -> None:
        for _ in range(ROUNDS):
            before = {grid: shares.copy() for grid, shares in self.shares.items()}
            for column in range(len(self._grids.dimensions)):
                self._agree_on(column)
            for grid, shares in self.shares.items():
                self.shares[grid] = project_simplex(shares.reshape(-1)).reshape(shares.shape)
            if max(np.abs(shares - before[grid]).max() for grid, shares in self.shares.items()) < CLOSE:
                return

    def _agree_on(self, column: int) -> None:
        """Give all grids of a dimension the same shares of its coarse cells: the weighted mean of least variance."""
        starts, counts = self.edges(column)
        sums: dict[Grid, Floats] = {}
        members: dict[Grid, Ints] = {}
        for grid, shares in self.shares.items():
            if grid == (column,):
                sums[grid], members[grid] = np.add.reduceat(shares, starts), counts
            elif column in grid:
                other = 1 - grid.index(column)
                sums[grid] = shares.sum(axis=other)
                members[grid] = np.full(starts.size, shares.shape[other])
        weight = sum(1 / count for count in members.values())
        mean = sum(sums[grid] / members[grid] for grid in sums) / weight
        for grid in sums:
            step = (mean - sums[grid]) / members[grid]
            if grid == (column,):
                self.shares[grid] = self.shares[grid] + np.repeat(step, counts)
            else:
                self.shares[grid] = self.shares[grid] + np.expand_dims(step, 1 - grid.index(column))

    def _matrix(self, pair: Grid) -> Floats:
        """The response matrix of a pair, over the fine cells of both dimensions."""
        first, second = pair
        volumes = [self._volumes(column) for column in pair]
        matrix = np.multiply.outer(*volumes)
        (starts, counts), (other_starts, other_counts) = self.edges(first), self.edges(second)
        for _ in range(ROUNDS):
            before = matrix
            matrix = matrix * _factor(self.shares[first,], matrix.sum(axis=1))[:, None]
            matrix = matrix * _factor(self.shares[second,], matrix.sum(axis=0))
            blocks = np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), other_starts, axis=1)
            factor = _factor(self.shares[pair], blocks)
            matrix = matrix * np.repeat(np.repeat(factor, counts, axis=0), other_counts, axis=1)
            if np.abs(matrix - before).sum() < CLOSE:
                break
        return matrix

    def _volumes(self, column: int) -> Floats:
        """The part of a dimension's values that is in each fine cell."""
        size, width = self._grids.dimensions[column].size, self._grids.line_width(column)
        return np.diff(np.append(np.arange(0, size, width), size)) / size

    def _part(self, column: int, selection: Scored) -> Floats:
        """The part of each fine cell that is selected; people are assumed to be spread evenly within the cell."""
        dimension, width = self._grids.dimensions[column], self._grids.line_width(column)
        selected = dimension.numbers(selection)
        starts = np.arange(0, dimension.size, width)
        return np.add.reduceat(selected, starts) / np.diff(np.append(starts, dimension.size))

    def _quadrants(self, pair: Grid, parts: Mapping[int, Floats]) -> Floats:
        """The 2x2 shares of people inside and outside the two ranges of a pair."""
        sides = [np.stack([parts[column], 1 - parts[column]]) for column in pair]
        return np.asarray(sides[0] @ self._matrices[pair] @ sides[1].T)


def _factor(target: Floats, present: Floats) -> Floats:
    return np.divide(target, present, out=np.zeros_like(present), where=present > 0)


def _conjunction(columns: list[int], quadrants: Mapping[Grid, Floats]) -> float:
    """The share of people in all ranges, in the maximum-entropy distribution with the given quadrants of every pair."""
    count = len(columns)
    table = np.full((2,) * count, 0.5**count)
    for _ in range(ROUNDS):
        before = table
        for pair, target in quadrants.items():
            axes = tuple(columns.index(column) for column in pair)
            rest = tuple(axis for axis in range(count) if axis not in axes)
            present = table.sum(axis=rest)
            table = table * np.expand_dims(_factor(target, present), rest)
        if np.abs(table - before).sum() < CLOSE:
            break
    return float(table[(0,) * count])
