"""What data sets are made of: counts, baskets, tables, people's keys and values, and prices' moves."""

from typing import Any

import numpy as np
import pytest
from scipy.special import chdtrc

from hubbub.core.errors import InvalidValue
from hubbub.data import Baskets, Counts, KeyValues, Table, price_moves
from hubbub.random.source import Random


def counts_of(labels: list[str], counts: list[int]) -> Counts:
    return Counts(np.array(labels), np.array(counts))


def test_the_population_is_the_people_themselves() -> None:
    counts = counts_of(["a", "b", "c"], [700, 0, 300])
    people = counts.population(Random(seed=1))
    assert people.dtype == np.int64
    assert np.bincount(people, minlength=3).tolist() == [700, 0, 300]
    assert (people != np.sort(people)).any()
    assert people.tolist() != counts.population(Random(seed=2)).tolist()
    assert people.tolist() == counts.population(Random(seed=1)).tolist()


def test_a_drawn_population_follows_the_counts() -> None:
    # A right sampler fails for one seed in a million; one that draws c a little too rarely always does.
    counts = counts_of(["a", "b", "c", "d"], [5, 0, 2, 1])
    drawn = np.bincount(counts.population(Random(seed=3), n=80_000), minlength=4)
    assert drawn.sum() == 80_000
    assert drawn[1] == 0

    def p_value(expected: list[int]) -> float:
        held = drawn[[0, 2, 3]]
        return float(chdtrc(2, ((held - expected) ** 2 / expected).sum()))

    assert p_value([50_000, 20_000, 10_000]) > 1e-6
    assert p_value([49_000, 21_000, 10_000]) < 1e-6


def test_an_empty_draw_and_an_empty_crowd() -> None:
    assert counts_of(["a"], [2]).population(Random(seed=1), n=0).size == 0
    assert counts_of(["a"], [0]).population(Random(seed=1)).size == 0
    with pytest.raises(InvalidValue, match="at least one person"):
        counts_of(["a"], [0]).population(Random(seed=1), n=1)


@pytest.mark.parametrize(
    ("kind", "field", "given"),
    [
        (Counts, "counts", (["a"], [-1])),
        (Counts, "counts", (["a"], [1.5])),
        (Counts, "counts", ([], [])),
        (Counts, "counts", (["a", "b"], [2**62, 2**62])),
        (Counts, "labels", (["a"], [1, 2])),
        (Counts, "labels", ([1], [1])),
        (Counts, "groups", (["a"], [1], ["x", "y"])),
        (Baskets, "offsets", ([1, 2], [0, 0], 3)),
        (Baskets, "offsets", ([0, 3], [0, 1], 3)),
        (Baskets, "offsets", ([0, 2, 1, 2], [0, 1], 3)),
        (Baskets, "offsets", ([], [], 3)),
        (Baskets, "items", ([0, 1], [3], 3)),
        (Baskets, "items", ([0, 1], [-1], 3)),
        (Baskets, "items", ([0, 3], [1, 2, 1], 3)),
        (Baskets, "items", ([0, 1], [0.5], 3)),
        (Baskets, "domain", ([0, 1], [0], 0)),
        (Baskets, "labels", ([0, 1], [0], 2, ["milk"])),
    ],
)
def test_what_counts_and_baskets_refuse(kind: type[Counts | Baskets], field: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidValue, match=field):
        kind(*given)


def test_a_basket_by_its_number() -> None:
    baskets = Baskets(np.array([0, 1, 1]), np.array([2]), domain=3)
    assert [basket.tolist() for basket in baskets] == [[2], []]
    with pytest.raises(IndexError, match="there are 2 sets"):
        baskets[-1]


def test_nothing_can_be_changed() -> None:
    given = np.array([1, 2])
    counts = Counts(np.array(["a", "b"]), given)
    baskets = Baskets(np.array([0, 2]), given, domain=3)
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


def made(**changes: Any) -> KeyValues:
    columns: dict[str, Any] = {"person": [0, 0, 2], "key": [0, 2, 2], "value": [1.0, -0.5, 0.5], "n": 4}
    return KeyValues(**{**columns, "labels": ["Alien", "Big", "Crash"], **changes})


def test_what_key_values_hold() -> None:
    few = made()
    assert (few.n, few.dimension, few.held.tolist()) == (4, 3, [2, 0, 1, 0])
    assert few.ternary().means().tolist() == [0.25, 0.0, 0.0]
    assert few.ternary().frequencies().tolist() == [0.25, 0.0, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        few.value[0] = 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("person", [0, 0, 4]),
        ("person", [0, 0, -1]),
        ("key", [0, 2, 3]),
        ("key", [0, 2]),
        ("key", [2, 2, 2]),
        ("value", [1.0, -0.5, 1.5]),
        ("value", [1.0, np.nan, 0.5]),
        ("n", 0),
        ("n", True),
    ],
)
def test_what_key_values_refuse(field: str, value: object) -> None:
    with pytest.raises(InvalidValue):
        made(**{field: value})


def test_only_some_keys_in_the_order_asked_for() -> None:
    few = made().only(["Crash", "Big"])
    assert (few.n, few.labels.tolist()) == (4, ["Crash", "Big"])
    assert few.ternary().frequencies().tolist() == [0.5, 0.0]
    with pytest.raises(InvalidValue, match="Dune"):
        made().only(["Dune"])
    with pytest.raises(InvalidValue, match="labels"):
        made().only([])


def test_resampled_people_are_whole_people() -> None:
    drawn = made(person=[2, 0, 0], key=[1, 0, 2], value=[0.5, 1.0, -0.5]).resampled(4000, Random(seed=1))
    assert drawn.n == 4000
    dense = np.zeros((drawn.n, drawn.dimension))
    dense[drawn.person, drawn.key] = drawn.value
    rows = {tuple(row.tolist()) for row in dense}
    assert rows == {(1.0, 0.0, -0.5), (0.0, 0.5, 0.0), (0.0, 0.0, 0.0)}
    # A quarter each is one of the first two kinds: deviations of 0.007, six of them.
    assert np.abs(drawn.ternary().frequencies() - 0.25).max() < 0.042


def test_moves_are_counted_from_the_last_one() -> None:
    assert price_moves([[100, 102, 104]]).tolist() == [[0, 0, 1]]  # 2% is not over 2%; 4% since the first is
    assert price_moves([[100, 97, 94], [50, 50, 60]]).tolist() == [[0, -1, -1], [0, 0, 1]]
    assert price_moves([[100, 97, 94]], least=0.05).tolist() == [[0, 0, -1]]
    assert price_moves(np.empty((0, 5))).shape == (0, 5)


@pytest.mark.parametrize("prices", [[[1.0, 0.0]], [[1.0, -2.0]], [[1.0, np.nan]], [[[1.0]]]])
def test_prices_there_are_none_of(prices: object) -> None:
    with pytest.raises(InvalidValue, match="prices"):
        price_moves(prices)  # type: ignore[arg-type]
