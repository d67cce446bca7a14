"""Some people's baskets, some items of them, and baskets made of independent items."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.data.baskets import Baskets
from hubbub.data.synthetic_baskets import independent_baskets

SETS = [{4, 0}, set(), {4}, {1, 2, 3}, {0}]


@pytest.fixture
def five() -> Baskets:
    offsets = np.cumsum([0, *map(len, SETS)])
    return Baskets(offsets, np.array([item for held in SETS for item in sorted(held)]), domain=5)


def as_sets(baskets: Baskets) -> list[set[int]]:
    return [set(baskets[person].tolist()) for person in range(baskets.n)]


def test_the_baskets_of_some_people(five: Baskets) -> None:
    people = [3, 0, 1, 3]
    assert as_sets(five.of(people)) == [SETS[person] for person in people]
    assert as_sets(five.of([])) == []
    with pytest.raises(InvalidValue, match="people"):
        five.of([5])
    with pytest.raises(InvalidValue, match="people"):
        five.of([-1])


def test_some_items_of_baskets(five: Baskets) -> None:
    candidates = [3, 4, 0]
    wanted = [{candidates.index(item) for item in held if item in candidates} for held in SETS]
    assert as_sets(five.among(candidates)) == wanted
    assert five.among(candidates).domain == 3
    for bad in ([], [5], [-1], [1, 1]):
        with pytest.raises(InvalidValue, match="candidates"):
            five.among(bad)


def test_parts_are_baskets_that_pass_the_checks_and_do_not_change(five: Baskets) -> None:
    for part in (five.of([3, 0, 3]), five.among([0, 2]), five.of([])):
        assert as_sets(Baskets(part.offsets, part.items, part.domain)) == as_sets(part)
        assert not part.items.flags.writeable


def test_padded_rows_are_those_of_the_domain_of_sets(five: Baskets) -> None:
    assert (five.padded() == Sets(Ordinal(5), most=3).encode(SETS)).all()
    assert Baskets([0, 0], [], domain=5).padded().tolist() == [[-1]]


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
