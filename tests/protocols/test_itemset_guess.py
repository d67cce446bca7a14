"""Candidate itemsets: best first equals sorting all of them."""

from __future__ import annotations

from itertools import combinations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.protocols.itemsets.lengths import guess_itemsets, largest_guess


@given(st.dictionaries(st.integers(0, 50), st.integers(-3, 40), max_size=8), st.integers(0, 60), st.integers(2, 4))
def test_they_are_the_largest_products(counts: dict[int, int], most: int, largest: int) -> None:
    shares = {code: count / 100 for code, count in counts.items()}
    guesses = guess_itemsets(shares, most=most, largest=largest)
    positive = sorted(code for code, share in shares.items() if share > 0)
    all_sets = [items for size in range(2, largest + 1) for items in combinations(positive, size)]
    highest = max((shares[code] for code in positive), default=1.0)

    def guess(items: tuple[int, ...]) -> float:
        return prod(0.9 * shares[code] / highest for code in items)

    assert len(guesses) == len(set(guesses)) == min(most, len(all_sets))
    assert set(guesses) <= set(all_sets)
    values = [guess(items) for items in guesses]
    assert values == pytest.approx(sorted(map(guess, all_sets), reverse=True)[:most])


def test_the_most_frequent_item_lowers_the_guess_of_a_set_that_it_joins() -> None:
    assert guess_itemsets({1: 0.5, 2: 0.4, 3: 0.4}, most=9, largest=3)[-1] == (1, 2, 3)


@pytest.mark.parametrize(("k", "largest"), [(2, 2), (4, 2), (16, 3), (17, 4), (32, 4), (64, 5), (128, 6)])
def test_candidates_have_fewer_than_log2_k_items(k: int, largest: int) -> None:
    assert largest_guess(k) == largest
