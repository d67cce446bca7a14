"""Sums over the hyperplanes of a projective space, by dynamic programming over the coordinates.

The points of the projective space over the integers modulo a prime q are the vectors of t coordinates whose first one
that is not 0 is 1. They are numbered: first the q^(t-1) that begin with 1, by their other coordinates as digits, then
those that begin with 0, as points of t - 1 coordinates.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Ints
from hubbub.kernels.compile import kernel
from hubbub.kernels.estimators import Number


def hyperplane_sums(numbers: NDArray[Number], order: int) -> NDArray[Number]:
    """For each point, the sum of the numbers of the points orthogonal to it: some `order` t operations a point."""
    if numbers.size == 1:
        return np.zeros_like(numbers)
    affine = _affine_points(numbers.size, order)
    rest = numbers[affine:]
    lower, planes = hyperplane_sums(rest, order), _plane_sums(numbers[:affine], order)
    direction, inverse = _directions(affine, order)
    sums = np.empty_like(numbers)
    # Orthogonal to (1, w) are the (1, y) with y w = -1, and the (0, y) with y w = 0; where w is 0, all of the latter.
    sums[:affine] = planes[direction, (order - inverse) % order] + lower[direction]
    sums[0] = rest.sum()
    sums[affine:] = planes[:, 0] + lower
    return sums


def _affine_points(points: int, order: int) -> int:
    """How many of the points begin with 1."""
    return (points * (order - 1) + 1) // order


def _plane_sums(numbers: NDArray[Number], order: int) -> NDArray[Number]:
    """For each direction w (a point) and each s, the sum of the numbers of the vectors y with y w = s."""
    tables = numbers.reshape(-1, 1, order)  # of the last coordinate alone
    while len(tables) > 1:
        slices = tables.reshape(-1, order, *tables.shape[1:])
        vectors = tables.shape[1] * (order - 1) + 1
        direction, inverse = _directions(vectors, order)
        tables = np.zeros((len(slices), vectors + tables.shape[1], order), dtype=numbers.dtype)
        _joined(slices, direction, inverse, tables)
    return np.asarray(tables[0])


@lru_cache(maxsize=16)
def _directions(vectors: int, order: int) -> tuple[Ints, Ints]:
    """For each vector, as digits: the point in its direction, and the inverse of the factor between them; 0 for 0."""
    inverses = np.array([0] + [pow(number, -1, order) for number in range(1, order)], dtype=np.int64)
    direction, inverse = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    divided = np.zeros((order, 1), dtype=np.int64)  # for each factor, the vectors of the digits so far over it
    while direction.size < vectors:
        size = direction.size
        direction = np.concatenate([np.where(inverse > 0, size + direction, 0), divided[1:].reshape(-1)])
        inverse = np.concatenate([inverse, np.repeat(inverses[1:], size)])
        digits = np.arange(order) * inverses[:, None] % order
        divided = (
            (digits[:, :, None] * size + divided[:, None, :]).reshape(order, -1) if size * order < vectors else divided
        )
    return direction, inverse


@kernel
def _joined(slices, direction, inverse, tables):
    """Add one coordinate in front: slice c of a table has the vectors that begin with c."""
    count, order, directions, _ = slices.shape
    for b in range(count):
        for c in range(order):
            for s in range(order):
                tables[b, 0, c] += slices[b, c, 0, s]  # w = (1, 0): s is the first coordinate
            for w in range(1, direction.size):  # w = (1, f k): y' k = (s - c)/f
                k, step = direction[w], inverse[w]
                place = (order - c) * step % order
                for s in range(order):
                    tables[b, w, s] += slices[b, c, k, place]
                    place += step
                    if place >= order:
                        place -= order
            for k in range(directions):  # w = (0, k)
                for s in range(order):
                    tables[b, direction.size + k, s] += slices[b, c, k, s]
