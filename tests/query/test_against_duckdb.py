"""Without noise, answers are those of DuckDB on the records themselves.

Everybody reports on every level (HI), or their whole cell (MG), and epsilon is so large that nothing is
flipped. HIO would not do: a person reports on one level of several, and who reports on which is drawn at random.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.query.generated import Generator, world


def compared(seed: int, count: int, method: str, consistent: bool | None) -> int:
    """Ask so many queries of both; returns how many had an answer with a row in it."""
    generator, both = Generator(seed), world(method, consistent)
    answered = 0
    for _ in range(count):
        text, keys = generator.query()
        ours = both.engine.sql(text)
        expected = both.truth.execute(text).fetchall()
        mine = [tuple(row[:keys]) + tuple(cell.value for cell in row[keys:]) for row in ours.rows]
        if "ORDER BY" not in text:
            mine, expected = sorted(mine, key=_order), sorted(expected, key=_order)
        assert len(mine) == len(expected), text
        for got, want in zip(mine, expected, strict=True):
            for place, (left, right) in enumerate(zip(got, want, strict=True)):
                assert _same(left, right, place >= keys), f"{text}\n{got}\n{want}"
        answered += bool(expected)
    return answered


def _order(row: tuple[Any, ...]) -> list[str]:
    return [f"{cell is None}{cell}" for cell in row]


def _same(left: Any, right: Any, estimate: bool) -> bool:
    if not estimate:
        return left == right
    if right is None:  # a sum over nobody is 0, and any other aggregate of nobody is unknown
        return math.isnan(left) or abs(left) < 1e-6
    return math.isclose(left, float(right), rel_tol=1e-7, abs_tol=1e-5)


@pytest.mark.parametrize(("method", "consistent"), [("HI", None), ("HI", False), ("MG", None)])
def test_generated_queries_have_the_answers_of_duckdb(method: str, consistent: bool | None) -> None:
    assert compared(1, 80, method, consistent) > 60
