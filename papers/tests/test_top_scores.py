"""The true top items and itemsets of people against brute force, and the scores of what was found."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.data.baskets import Baskets
from hubbub.random.source import Random
from hubbub_papers.top_scores import hits, ncr, squared_error, top_items, top_itemsets

RANKED = ["a", "b", "c", "d"]


def test_ncr_counts_ranks_and_not_places_in_the_list():
    assert ncr(RANKED, RANKED) == ncr(RANKED[::-1], RANKED) == 1.0
    assert ncr(["d", "x"], RANKED) == pytest.approx(1 / 10)
    assert ncr(["a", "b"], RANKED) == pytest.approx(7 / 10)
    assert ncr([], RANKED) == 0.0


def test_hits_are_those_of_the_top():
    assert hits(["d", "x", "a"], RANKED) == 2


def test_the_squared_error_is_of_the_found_top_values_alone():
    true = {"a": 100.0, "b": 50.0, "c": 10.0, "d": 5.0}
    assert squared_error({"a": 90.0, "d": 8.0, "x": 1e6}, true, RANKED) == pytest.approx((100 + 9) / 2)
    assert math.isnan(squared_error({"x": 1.0}, true, RANKED))


def test_a_value_twice_is_refused():
    with pytest.raises(InvalidValue, match="found"):
        ncr(["a", "a"], RANKED)
    with pytest.raises(InvalidValue, match="ranked"):
        hits(["a"], ["a", "a"])
    with pytest.raises(InvalidValue, match="ranked"):
        ncr(["a"], [])


def baskets_of(sets: list[set[int]], domain: int) -> Baskets:
    offsets = np.cumsum([0, *map(len, sets)])
    return Baskets(offsets, np.array([item for items in sets for item in sorted(items)], dtype=np.int64), domain)


def some_baskets(seed: int) -> list[set[int]]:
    rng = Random(seed=seed)
    chance = 2 ** np.arange(16, 8, -1)  # items 0 to 7, each held half as often as the one before
    return [{item for item in range(8) if rng.below(1 << 16, 1)[0] < chance[item]} for _ in range(200)]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_the_top_is_that_of_a_list_of_all_itemsets(seed: int, k: int):
    sets = some_baskets(seed)
    itemsets = [itemset for size in range(1, 9) for itemset in combinations(range(8), size)]
    supports = {itemset: sum(items.issuperset(itemset) for items in sets) for itemset in itemsets}
    top = top_itemsets(baskets_of(sets, 8), k)
    assert list(top.values()) == sorted(supports.values(), reverse=True)[:k]
    assert all(supports[itemset] == support for itemset, support in top.items())


def test_the_example_of_the_chapter():
    sets = [set(word) for word in ("ace", "bde", "abe", "ade", "af")]
    top = top_itemsets(baskets_of([{ord(item) - ord("a") for item in items} for items in sets], 6), 3)
    assert top == {(0,): 4, (4,): 4, (0, 4): 3}


def test_no_more_than_there_are():
    assert top_itemsets(baskets_of([{1}, set(), {1, 2}], 9), 50) == {(1,): 2, (2,): 1, (1, 2): 1}
    assert top_items(baskets_of([set(), set()], 9), 50) == {}
    assert top_itemsets(baskets_of([set(), set()], 9), 50) == {}


def test_no_top_of_nothing():
    with pytest.raises(InvalidValue, match="k"):
        top_itemsets(baskets_of([{1}], 9), 0)
