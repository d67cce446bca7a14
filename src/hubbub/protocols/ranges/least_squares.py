"""Consistency over a hierarchy: what every interval contributes to the answer of least squares."""

from __future__ import annotations

import numpy as np

from hubbub.protocols.ranges.dimension import Cover, Dimension, Floats, Selection


def least_squares(dimension: Dimension, selection: Selection) -> Cover:
    """The weights of all intervals in the sum over the wanted values, after least squares has made levels agree.

    With y the estimates of all intervals and A the 0-1 matrix from values to intervals, the values of least squares
    are (A'A)^-1 A'y, so that the wanted sum r'x has the weights A (A'A)^-1 r. A'A is solved upwards: on the values
    below one interval it is that of the children, plus a matrix of ones (Sherman and Morrison). The weights of several
    dimensions multiply, as A'A of a product of hierarchies is the product of theirs.

    Example:
        >>> cover = least_squares(Dimension.ordinal(4, fanout=2), (0, 1))
        >>> [weights.round(3).tolist() for _, weights in cover]
        [[0.286], [0.476, -0.19], [0.238, 0.238, -0.095, -0.095]]
    """
    wanted = np.zeros(dimension.size)
    for low, high in dimension.runs(selection):
        wanted[low : high + 1] = 1.0
    solution, ones = wanted, np.ones(dimension.size)  # of single values the matrix is 1
    for level in range(dimension.levels - 2, -1, -1):
        sums, totals = _sums(dimension, level, solution), _sums(dimension, level, ones)
        node = np.arange(dimension.size) // dimension.widths[level]
        solution = solution - (sums / (1 + totals))[node] * ones
        ones = ones / (1 + totals)[node]
    every = [np.arange(dimension.nodes(level)) for level in range(dimension.levels)]
    return [(nodes, _sums(dimension, level, solution)) for level, nodes in enumerate(every)]


def _sums(dimension: Dimension, level: int, values: Floats) -> Floats:
    """The sums of the values over each interval of a level."""
    return np.add.reduceat(values, np.arange(0, dimension.size, dimension.widths[level]))
