"""Consistency over a hierarchy: the weight of every interval in the least-squares answer."""

from __future__ import annotations

import numpy as np

from hubbub.protocols.ranges.dimension import Cover, Dimension, Floats, Selection


def least_squares(dimension: Dimension, selection: Selection) -> Cover:
    """The weights of all intervals in the least-squares estimate of the sum over the selected values.

    With y the estimates of all intervals and A the 0-1 matrix from values to intervals, the least-squares values x are
    (A'A)^-1 A'y, so that the sum r'x over the selected values has the weights A (A'A)^-1 r. A'A is solved from the
    leaves up: on the values of an interval it is block-diagonal with the matrices of its children, plus a matrix of
    ones (Sherman and Morrison). The weights of several dimensions multiply, as A'A of a product of hierarchies is a
    product.
    """
    solution, ones = np.zeros(dimension.size), np.ones(dimension.size)  # the matrix of a single value is 1
    for low, high in dimension.runs(selection):
        solution[low : high + 1] = 1.0
    for level in range(dimension.levels - 2, -1, -1):
        sums, totals = _sums(dimension, level, solution), _sums(dimension, level, ones)
        node = np.arange(dimension.size) // dimension.widths[level]
        solution = solution - (sums / (1 + totals))[node] * ones
        ones = ones / (1 + totals)[node]
    return [(np.arange(dimension.nodes(level)), _sums(dimension, level, solution)) for level in range(dimension.levels)]


def _sums(dimension: Dimension, level: int, values: Floats) -> Floats:
    """The sums of the values over each interval of a level."""
    return np.add.reduceat(values, np.arange(0, dimension.size, dimension.widths[level]))
