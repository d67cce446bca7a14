"""People's keys and values, and prices' moves: what they hold, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.data import KeyValues, price_moves
from hubbub.random.source import Random

LABELS = ["Alien", "Big", "Crash"]


def made(**changes: Any) -> KeyValues:
    columns: dict[str, Any] = {
        "person": [0, 0, 2],
        "key": [0, 2, 2],
        "value": [1.0, -0.5, 0.5],
        "labels": LABELS,
        "n": 4,
    }
    return KeyValues(**{**columns, **changes})


def test_what_it_holds() -> None:
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
def test_what_it_refuses(field: str, value: object) -> None:
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
    rows = {tuple(row.tolist()) for row in dense(drawn)}
    assert rows == {(1.0, 0.0, -0.5), (0.0, 0.5, 0.0), (0.0, 0.0, 0.0)}
    # A quarter each is one of the first two kinds: deviations of 0.007, six of them.
    assert np.abs(drawn.ternary().frequencies() - 0.25).max() < 0.042


def dense(people: KeyValues) -> np.ndarray:
    rows = np.zeros((people.n, people.dimension))
    rows[people.person, people.key] = people.value
    return rows


def test_moves_are_counted_from_the_last_one() -> None:
    assert price_moves([[100, 102, 104]]).tolist() == [[0, 0, 1]]  # 2% is not over 2%; 4% since the first is
    assert price_moves([[100, 97, 94], [50, 50, 60]]).tolist() == [[0, -1, -1], [0, 0, 1]]
    assert price_moves([[100, 97, 94]], least=0.05).tolist() == [[0, 0, -1]]
    assert price_moves(np.empty((0, 5))).shape == (0, 5)


@pytest.mark.parametrize("prices", [[[1.0, 0.0]], [[1.0, -2.0]], [[1.0, np.nan]], [[[1.0]]]])
def test_prices_there_are_none_of(prices: object) -> None:
    with pytest.raises(InvalidValue, match="prices"):
        price_moves(prices)  # type: ignore[arg-type]
