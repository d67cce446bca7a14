"""`hubbub plan --column ... --query ...`: tables of private columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import Result

from hubbub.planning.ranges import choose_ranges
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery

SETTING = ("plan", "--column", "age:100", "--column", "state:50:words", "--n", 300_000, "--epsilon", 1)


def test_the_rows_are_those_of_choose_ranges(answer: Callable[..., Any]) -> None:
    rows = answer(*SETTING, "--query", "age=30-40,state=3")
    columns = [Dimension.ordinal(100), Dimension.categorical(50)]
    box = RangeQuery([(30, 40), (3, 3)])
    ways = choose_ranges(epsilon=1.0, dimensions=columns, queries=[box], n=300_000)
    assert [(row["way"], row["stderr"]) for row in rows] == [(way.name, way.stderr) for way in ways]
    assert [row["picked"] for row in rows] == [True] + [False] * (len(ways) - 1)
    sure = answer(*SETTING, "--query", "age=30-40,state=3", "--unbiased")
    assert all(row["unbiased"] for row in sure)


def test_a_part_of_a_column_is_any_range_of_that_size(answer: Callable[..., Any]) -> None:
    single_column = ("plan", "--column", "age:1024", "--n", 1_000_000, "--epsilon", 2, "--unbiased")
    wide, narrow = (answer(*single_column, "--query", f"age={part}%") for part in (50, 0.1))
    assert wide[0]["way"] == "HIO, consistent"
    assert narrow[0]["way"] == "MG"


def test_the_table_says_what_it_expects(hubbub: Callable[..., Result]) -> None:
    result = hubbub("plan", "--column", "age:1024", "--query", "age=50%", "--n", 100_000, "--epsilon", 1)
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "AdaptiveHierarchy has the smallest expected error of a count" in text
    assert "spread evenly inside cells" in text
    assert "Without that: HIO, consistent (--unbiased)." in text
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "age", "--query", "age=3"), "--column: got 'age'"),
        (("--column", "age:9", "--column", "age:8", "--query", "age=3"), "--column: got 'age:8'"),
        (("--column", "age:1", "--query", "age=0"), "size: got 1"),
        (("--column", "age:9", "--query", "aeg=3"), "--query: got 'aeg=3'"),
        (("--column", "age:9", "--query", "age=3,age=4"), "--query: got 'age=3,age=4'"),
        (("--column", "age:9", "--query", "age=0%"), "--query: got 'age=0%'"),
        (("--column", "age:9", "--query", "age=3-12"), "range: got (3, 12)"),
        (("--column", "age:9"), "--column: got ['age:9']; allowed: only together with --query"),
        (("--query", "age=3"), "--query: got ['age=3']; allowed: only together with --column"),
        (("--column", "age:9", "--query", "age=3", "--sets", 4), "--sets: got 4"),
    ],
)
def test_what_does_not_fit_is_refused(refused: Callable[..., str], options: tuple[Any, ...], message: str) -> None:
    assert message in refused("plan", *options, "--n", 1000, "--epsilon", 1)
