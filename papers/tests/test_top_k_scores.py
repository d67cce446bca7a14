"""What is made of a list of found values."""

from __future__ import annotations

import math

import pytest

from hubbub.core.errors import InvalidValue
from hubbub_papers.top_scores import hits, ncr, squared_error

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
