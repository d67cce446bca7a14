"""From estimated cells of grids to the shares of any box: consistency, response matrices, and several dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from hubbub.consistency.simplex import project_simplex
from hubbub.protocols.ranges.dimension import Codes, Floats, Selection
from hubbub.protocols.ranges.grids import HDG, Grid

ROUNDS = 100
"""The most rounds of consistency, and of fitting."""
CLOSE = 1e-6
"""Shares that move less than this in a round have settled."""


class GridModel:
    """The shares of all cells, made to agree, and what they say of pairs of dimensions.

    Grids with a dimension in common get its shares from all of them, weighted by their variances; in turns with that,
    negative shares are taken away (Norm-Sub). A pair's response matrix then has the shares of both finer grids and of
    its own, and is as even as that allows.

    Parameters
    ----------
    grids
        Which grids there are.
    shares
        The estimated shares of the cells of each.

    Example:
        >>> from hubbub.protocols.ranges.dimension import Dimension
        >>> hdg = HDG(1.0, (Dimension.categorical(2),) * 2, 1000)
        >>> shares = {(0,): np.array([0.5, 0.6]), (1,): np.array([0.9, 0.3]), (0, 1): np.array([0.4, 0.1, 0.5, 0.1])}
        >>> model = GridModel(hdg, shares)
        >>> [round(model.share(box), 3) for box in (((0, 0), (0, 0)), ((0, 0), None), (None, (0, 0)))]
        [0.358, 0.45, 0.817]
    """

    def __init__(self, grids: HDG, shares: Mapping[Grid, Floats]) -> None:
        self._grids = grids
        self._shares = {grid: np.array(shares[grid], dtype=np.float64).reshape(grids.shape(grid)) for grid in shares}
        self._agree()
        self._matrices: dict[Grid, Floats] = {grid: self._matrix(grid) for grid in self._shares if len(grid) == 2}

    def share(self, box: tuple[Selection, ...]) -> float:
        """The share of people in a box."""
        asked = [column for column, wanted in enumerate(box) if wanted is not None]
        parts = {column: self._part(column, box[column]) for column in asked}
        if not asked:
            return 1.0
        if len(asked) == 1:
            return float(parts[asked[0]] @ self._shares[asked[0],])
        quadrants: dict[Grid, Floats] = {pair: self._quadrants(pair, parts) for pair in combinations(asked, 2)}
        if len(asked) == 2:
            return float(quadrants[asked[0], asked[1]][0, 0])
        return _conjunction(asked, quadrants)

    def _edges(self, column: int) -> tuple[Codes, Codes]:
        """Where the coarse cells begin among a dimension's fine ones, and how many fine ones each has."""
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
        """Give all grids of a dimension the same shares of its coarse cells: the mean of least variance."""
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
        """What part of a dimension's values each fine cell holds."""
        size, width = self._grids.dimensions[column].size, self._grids.line_width(column)
        return np.diff(np.append(np.arange(0, size, width), size)) / size

    def _part(self, column: int, wanted: Selection) -> Floats:
        """What part of each fine cell is wanted: people are taken to be spread evenly in it."""
        dimension, width = self._grids.dimensions[column], self._grids.line_width(column)
        chosen = np.zeros(dimension.size)
        for low, high in dimension.runs(wanted):
            chosen[low : high + 1] = 1.0
        starts = np.arange(0, dimension.size, width)
        return np.add.reduceat(chosen, starts) / np.diff(np.append(starts, dimension.size))

    def _quadrants(self, pair: Grid, parts: Mapping[int, Floats]) -> Floats:
        """The shares of people in both ranges of a pair, in one of them only, and in none."""
        sides = [np.stack([parts[column], 1 - parts[column]]) for column in pair]
        return np.asarray(sides[0] @ self._matrices[pair] @ sides[1].T)


def _factor(wanted: Floats, present: Floats) -> Floats:
    return np.divide(wanted, present, out=np.zeros_like(present), where=present > 0)


def _conjunction(asked: list[int], quadrants: Mapping[Grid, Floats]) -> float:
    """The share in all ranges, of the evenest distribution that has the quadrants of every pair."""
    count = len(asked)
    table = np.full((2,) * count, 0.5**count)
    for _ in range(ROUNDS):
        before = table
        for pair, wanted in quadrants.items():
            places = tuple(asked.index(column) for column in pair)
            rest = tuple(axis for axis in range(count) if axis not in places)
            present = table.sum(axis=rest)
            table = table * np.expand_dims(_factor(wanted, present), rest)
        if np.abs(table - before).sum() < CLOSE:
            break
    return float(table[(0,) * count])
