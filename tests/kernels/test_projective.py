"""Sums over hyperplanes: every one by hand, in small geometries."""

from itertools import product

import numpy as np
import pytest

import hubbub as hb
from hubbub.kernels.projective import hyperplane_sums


def points(order: int, dimension: int) -> list[tuple[int, ...]]:
    """Vectors whose first number that is not 0 is 1, those that begin with it first."""
    if not dimension:
        return []
    return [(1, *rest) for rest in product(range(order), repeat=dimension - 1)] + [
        (0, *rest) for rest in points(order, dimension - 1)
    ]


@pytest.mark.parametrize(("order", "dimension"), [(2, 2), (2, 6), (3, 2), (3, 4), (5, 3), (7, 3)])
def test_every_hyperplane_by_hand(order: int, dimension: int):
    every = np.array(points(order, dimension))
    numbers = np.random.default_rng(1).integers(-50, 50, len(every))
    by_hand = (every @ every.T % order == 0) @ numbers
    assert np.array_equal(hyperplane_sums(numbers, order), by_hand)
    assert np.allclose(hyperplane_sums(numbers / 3, order), by_hand / 3)
    oracle = hb.PGR(epsilon=1.0, domain=len(every), order=order)
    assert np.array_equal(oracle._coordinates(np.arange(len(every))), every)
    assert np.array_equal(oracle._numbered(every * (order - 1)), np.arange(len(every)))
