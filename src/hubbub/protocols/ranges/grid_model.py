"""The share of any box from the estimated cells of grids: consistency, response matrices, and several dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from hubbub.consistency.simplex import project_simplex
from hubbub.protocols.ranges.dimension import Codes, Floats, Selection
from hubbub.protocols.ranges.grids import HDG, Grid

ROUNDS = 100
"""The most iterations of consistency, and of fitting."""
CLOSE = 1e-6
"""Iteration ends when shares change by less than this."""


class GridModel:
    """The shares of all cells, made consistent, and the joint distribution of each pair of dimensions.

    Grids that share a dimension are given the same marginal of it, the mean weighted by precision; in alternation with
    that, negative shares are removed (Norm-Sub). The response matrix of a pair then is the evenest table with the
    shares of both finer grids and of the pair's own grid.

    Parameters
    ----------
    grids
        The mechanism that defines the grids.
    shares
        The estimated shares of the cells of each grid.
    """

    def __init__(self, grids: HDG, shares: Mapping[Grid, Floats]) -> None:
        self._grids = grids
        self._shares = {grid: np.array(shares[grid], dtype=np.float64).reshape(grids.shape(grid)) for grid in shares}
        self._agree()
        self._matrices: dict[Grid, Floats] = {grid: self._matrix(grid) for grid in self._shares if len(grid) == 2}

    def share(self, box: tuple[Selection, ...]) -> float:
        """The share of people in a box."""
        columns = [column for column, selection in enumerate(box) if selection is not None]
        parts = {column: self._part(column, box[column]) for column in columns}
        if not columns:
            return 1.0
        if len(columns) == 1:
            return float(parts[columns[0]] @ self._shares[columns[0],])
        quadrants: dict[Grid, Floats] = {pair: self._quadrants(pair, parts) for pair in combinations(columns, 2)}
        if len(columns) == 2:
            return float(quadrants[columns[0], columns[1]][0, 0])
        return _conjunction(columns, quadrants)

    def _edges(self, column: int) -> tuple[Codes, Codes]:
        """For each coarse cell of a dimension, the number of its first fine cell, and how many fine cells it has."""
        ratio = self._grids.plane_width(column) // self._grids.line_width(column)
        fine = self._grids.line_cells(column)
        starts = np.arange(0, fine, ratio)
        return starts, np.diff(np.append(starts, fine))

    def _agree(self) -> None:
        for _ in range(ROUNDS):
            before = {grid: shares.copy() for grid, shares in self._shares.items()}
            for column in range(len(self._grids.dimensions)):
                self._agree_on(column)
            for grid, shares in self._shares.items():
                self._shares[grid] = project_simplex(shares.reshape(-1)).reshape(shares.shape)
            if max(np.abs(shares - before[grid]).max() for grid, shares in self._shares.items()) < CLOSE:
                return

    def _agree_on(self, column: int) -> None:
        """Give all grids of a dimension the same shares of its coarse cells: the weighted mean of least variance."""
        starts, counts = self._edges(column)
        sums: dict[Grid, Floats] = {}
        members: dict[Grid, Codes] = {}
        for grid, shares in self._shares.items():
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
                self._shares[grid] = self._shares[grid] + np.repeat(step, counts)
            else:
                self._shares[grid] = self._shares[grid] + np.expand_dims(step, 1 - grid.index(column))

    def _matrix(self, pair: Grid) -> Floats:
        """The response matrix of a pair, over the fine cells of both dimensions."""
        first, second = pair
        volumes = [self._volumes(column) for column in pair]
        matrix = np.multiply.outer(*volumes)
        (starts, counts), (other_starts, other_counts) = self._edges(first), self._edges(second)
        for _ in range(ROUNDS):
            before = matrix
            matrix = matrix * _factor(self._shares[first,], matrix.sum(axis=1))[:, None]
            matrix = matrix * _factor(self._shares[second,], matrix.sum(axis=0))
            blocks = np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), other_starts, axis=1)
            factor = _factor(self._shares[pair], blocks)
            matrix = matrix * np.repeat(np.repeat(factor, counts, axis=0), other_counts, axis=1)
            if np.abs(matrix - before).sum() < CLOSE:
                break
        return matrix

    def _volumes(self, column: int) -> Floats:
        """The part of a dimension's values that is in each fine cell."""
        size, width = self._grids.dimensions[column].size, self._grids.line_width(column)
        return np.diff(np.append(np.arange(0, size, width), size)) / size

    def _part(self, column: int, selection: Selection) -> Floats:
        """The part of each fine cell that is selected; people are assumed to be spread evenly within the cell."""
        dimension, width = self._grids.dimensions[column], self._grids.line_width(column)
        selected = np.zeros(dimension.size)
        for low, high in dimension.runs(selection):
            selected[low : high + 1] = 1.0
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
