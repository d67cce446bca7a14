"""Baskets made of independent items."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.data.baskets import independent_baskets
from hubbub.random.source import Random


def test_independent_baskets_hold_each_item_as_often_as_they_should() -> None:
    n, weights = 40_000, [3.0, 1.0, 1.0, 0.0]
    baskets = independent_baskets(n, weights, 2.0, Random(seed=1))
    rates = 1 - np.exp(-2.0 * np.array(weights) / 5)
    support = baskets.support()
    # Five standard deviations: one of three items misses with probability below 2e-6.
    assert (abs(support - n * rates) <= 5 * np.sqrt(n * rates * (1 - rates))).all()
    rows = [set(baskets[person].tolist()) for person in range(n)]
    both = sum({0, 1} <= held for held in rows) / n
    expected = rates[0] * rates[1]
    assert abs(both - expected) < 5 * np.sqrt(expected / n)


@pytest.mark.parametrize(
    ("field", "given"),
    [("n", (-1, [1.0], 2.0)), ("weights", (5, [], 2.0)), ("mean", (5, [1.0], 0.0)), ("mean", (5, [1.0], 51.0))],
)
def test_what_independent_baskets_refuse(field: str, given: tuple[int, list[float], float]) -> None:
    with pytest.raises(InvalidValue, match=field):
        independent_baskets(*given, Random(seed=1))
