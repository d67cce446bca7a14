"""A query as a weighted sum of cells, which are products of intervals of several dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Cover, Dimension, Scored


def least_squares(dimension: Dimension, selection: Scored) -> Cover:
    """The weights of all intervals in the least-squares estimate of the sum over the selected values.

    With y the estimates of all intervals and A the 0-1 matrix from values to intervals, the least-squares values x are
    (A'A)^-1 A'y, so that the sum r'x over the selected values has the weights A (A'A)^-1 r. A'A is solved from the
    leaves up: on the values of an interval it is block-diagonal with the matrices of its children, plus a matrix of
    ones (Sherman and Morrison). The weights of several dimensions multiply, as A'A of a product of hierarchies is a
    product.
    """
    solution, ones = dimension.numbers(selection), np.ones(dimension.size)  # the matrix of a single value is 1
    for level in range(dimension.levels - 2, -1, -1):
        sums, totals = _sums(dimension, level, solution), _sums(dimension, level, ones)
        node = np.arange(dimension.size) // dimension.widths[level]
        solution = solution - (sums / (1 + totals))[node] * ones
        ones = ones / (1 + totals)[node]
    return [(np.arange(dimension.nodes(level)), _sums(dimension, level, solution)) for level in range(dimension.levels)]


def _sums(dimension: Dimension, level: int, values: Floats) -> Floats:
    """The sums of the values over each interval of a level."""
    return np.add.reduceat(values, np.arange(0, dimension.size, dimension.widths[level]))


Level = tuple[int, ...]
"""A level of each dimension. The cells of the combined level are the products of the dimensions' intervals."""
MOST_CELLS = 1 << 26


@dataclass(frozen=True, eq=False)
class LevelCells:
    """The cells of one level that a query uses, and the weight of each."""

    level: Level
    cells: Ints
    weights: Floats


@dataclass(frozen=True, eq=False)
class CellSum:
    """A query as a weighted sum of cells by level, plus `known` times the known total of all people."""

    terms: list[LevelCells]
    known: float

    @property
    def cells(self) -> int:
        return sum(term.cells.size for term in self.terms)


def cells_of(dimensions: Sequence[Dimension], level: Level) -> int:
    """How many cells a level has."""
    return prod(dimension.nodes(depth) for dimension, depth in zip(dimensions, level, strict=True))


def cell_of(dimensions: Sequence[Dimension], level: Level, records: Ints) -> Ints:
    """The cell of a level that each record (row) falls in."""
    cell = np.zeros(len(records), dtype=np.int64)
    for column, (dimension, depth) in enumerate(zip(dimensions, level, strict=True)):
        cell = cell * dimension.nodes(depth) + dimension.node_of(records[:, column], depth)
    return cell


def decomposition(dimensions: Sequence[Dimension], box: Sequence[Scored]) -> CellSum:
    """A box as the products of the fewest intervals of each dimension (Eq 7.19)."""
    covers = [dimension.decompose(selection) for dimension, selection in zip(dimensions, box, strict=True)]
    return _products(dimensions, [covers], [1.0])


def single_values(dimensions: Sequence[Dimension], box: Sequence[Scored]) -> CellSum:
    """A box as the sum of all cells of the last level in it (Eq 7.9)."""
    empty: Ints = np.zeros(0, dtype=np.int64)
    covers: list[Cover] = []
    for dimension, selection in zip(dimensions, box, strict=True):
        if isinstance(selection, np.ndarray):
            values = np.flatnonzero(selection)
            numbers = selection[values]
        else:
            values = np.concatenate([np.arange(low, high + 1) for low, high in dimension.runs(selection)])
            numbers = np.ones(values.size)
        covers.append([(empty, np.zeros(0))] * (dimension.levels - 1) + [(values, numbers)])
    return _products(dimensions, [covers], [1.0])


def consistent_terms(dimensions: Sequence[Dimension], box: Sequence[Scored]) -> CellSum:
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


class SumVariance:
    """Adds up the variance of a weighted sum of cells, level by level, given the true or estimated sums of the cells.

    A person of measure w adds (n/n_l) w sum_v c_v (s(v)-q)/(p-q) if they report on level l, where c are the weights of
    its cells. The randomisation has the variance (n/n_l) sum_i w_i^2 N_l(c_i), where c_i is the weight of person i's
    cell and N_l(c) = A + B c + C c^2 is the variance of one report. Dividing n people at random into groups of sizes
    n_l adds n (sum_l (n/n_l) S_l - S): S_l is the variance among people of w_i c_i, and S that of the sum over levels,
    which is w_i times (1 if in the box, else 0, minus the multiple of the known total). For one cell, OLH's p = 1/2 and
    groups drawn person by person this is Prop 7.2.2: of its 2k-1, k is due to the oracle and k-1 to the division.

    `known`: the multiple of the known total that the query adds. `divided`: whether a person reports on one level only.
    """

    def __init__(self, n: int, squares: float, known: float, *, divided: bool) -> None:
        self._n, self._squares, self._known, self._divided = n, squares, known, divided
        self._noise = 0.0
        self._spread = 0.0
        self._sum = 0.0
        self._sum_squares = 0.0

    def add(self, oracle: FrequencyOracle, size: int, weights: Floats, sums: Floats, squares: Floats) -> None:
        """Add a level: how many reported, the weights of the cells, and each cell's sums of w and w^2."""
        if size == 0:
            self._noise = np.inf
            return
        scale = self._n / size if self._divided else 1.0
        constant, slope, curve = report_variance(oracle, weights)
        weighted, twice_weighted = float(weights @ squares), float(weights**2 @ squares)
        self._noise += scale * (constant * self._squares + slope * weighted + curve * twice_weighted)
        level_sum = float(weights @ sums)
        self._spread += scale * (twice_weighted - level_sum**2 / self._n)
        self._sum += level_sum
        self._sum_squares += weighted

    def total(self) -> float:
        """The variance of the sum over all levels that were added."""
        if not self._divided or self._n < 2:
            return max(self._noise, 0.0)
        known = self._known
        # People in the box have w (1 - known), others -w known; `_sum_squares` is sum w^2 (1 in the box - known).
        both = self._sum_squares * (1 - 2 * known) + known * (1 - known) * self._squares
        sampling = (self._spread - (both - self._sum**2 / self._n)) * self._n / (self._n - 1)
        return max(self._noise, 0.0) + max(sampling, 0.0)


def report_variance(oracle: FrequencyOracle, weights: Floats) -> tuple[float, float, float]:
    """A, B and C of the variance A + B c + C c^2 of one report's weighted supports, c its cell's weight."""
    moments = oracle.moments()
    holder, neither = oracle.pair_covariance() or (0.0, 0.0)
    gap = (moments.true_mean - moments.false_mean) ** 2
    total, squares = float(weights.sum()), float(weights @ weights)
    constant = moments.false_variance * squares + neither * (total**2 - squares)
    slope = 2 * (holder - neither) * total
    curve = moments.true_variance - moments.false_variance - 2 * (holder - neither)
    return constant / gap, slope / gap, curve / gap
