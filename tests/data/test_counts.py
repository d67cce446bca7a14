from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import chdtrc

from hubbub.core.errors import InvalidValue
from hubbub.data import Baskets, Counts, Table
from hubbub.random.source import Random


def test_the_population_is_the_people_themselves() -> None:
    counts = Counts(["a", "b", "c"], [700, 0, 300])
    people = counts.population(Random(seed=1))
    assert people.dtype == np.int64
    assert np.bincount(people, minlength=3).tolist() == [700, 0, 300]
    assert (people != np.sort(people)).any()
    assert people.tolist() != counts.population(Random(seed=2)).tolist()
    assert people.tolist() == counts.population(Random(seed=1)).tolist()


def test_a_drawn_population_follows_the_counts() -> None:
    # A right sampler fails for one seed in a million; one that draws c a little too rarely always does.
    counts = Counts(["a", "b", "c", "d"], [5, 0, 2, 1])
    drawn = np.bincount(counts.population(Random(seed=3), n=80_000), minlength=4)
    assert drawn.sum() == 80_000
    assert drawn[1] == 0

    def p_value(expected: list[int]) -> float:
        held = drawn[[0, 2, 3]]
        return float(chdtrc(2, ((held - expected) ** 2 / expected).sum()))

    assert p_value([50_000, 20_000, 10_000]) > 1e-6
    assert p_value([49_000, 21_000, 10_000]) < 1e-6


def test_an_empty_draw_and_an_empty_crowd() -> None:
    assert Counts(["a"], [2]).population(Random(seed=1), n=0).size == 0
    assert Counts(["a"], [0]).population(Random(seed=1)).size == 0
    with pytest.raises(InvalidValue, match="at least one person"):
        Counts(["a"], [0]).population(Random(seed=1), n=1)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("counts", (["a"], [-1])),
        ("counts", (["a"], [1.5])),
        ("counts", ([], [])),
        ("counts", (["a", "b"], [2**62, 2**62])),
        ("labels", (["a"], [1, 2])),
        ("labels", ([1], [1])),
        ("groups", (["a"], [1], ["x", "y"])),
    ],
)
def test_what_counts_refuse(field: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidValue, match=field):
        Counts(*given)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("offsets", ([1, 2], [0, 0], 3)),
        ("offsets", ([0, 3], [0, 1], 3)),
        ("offsets", ([0, 2, 1, 2], [0, 1], 3)),
        ("offsets", ([], [], 3)),
        ("items", ([0, 1], [3], 3)),
        ("items", ([0, 1], [-1], 3)),
        ("items", ([0, 3], [1, 2, 1], 3)),
        ("items", ([0, 1], [0.5], 3)),
        ("domain", ([0, 1], [0], 0)),
    ],
)
def test_what_baskets_refuse(field: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidValue, match=field):
        Baskets(*given)


def test_a_basket_by_its_number() -> None:
    baskets = Baskets([0, 1, 1], [2], domain=3)
    assert [basket.tolist() for basket in baskets] == [[2], []]
    with pytest.raises(IndexError, match="there are 2 sets"):
        baskets[-1]


def test_nothing_can_be_changed() -> None:
    given = np.array([1, 2])
    counts = Counts(["a", "b"], given)
    baskets = Baskets([0, 2], given, domain=3)
    table = Table({"x": given})
    for held in (counts.counts, counts.labels, baskets.items, table["x"]):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = held[1]
    given[0] = 0
    assert counts.counts[0] == baskets.items[0] == table["x"][0] == 1


def test_what_a_table_refuses() -> None:
    for columns in ({}, {"a": np.array([1]), "b": np.array([1, 2])}, {"a": np.array([[1]])}, {"a": np.array([None])}):
        with pytest.raises(InvalidValue, match=r"a list of|the same length"):
            Table(columns)
    with pytest.raises(KeyError, match="there are the columns a"):
        Table({"a": np.array([1])})["b"]
