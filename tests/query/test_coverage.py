"""Intervals of COUNT, SUM and AVG hold the truth as often as they say; that of a planted bug does not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.query.engine import QueryEngine
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

N = 4000
QUERIES = {
    "count": "SELECT COUNT(*) FROM people WHERE age BETWEEN 5 AND 17 AND state <> 'a'",
    "sum": "SELECT SUM(price) FROM people WHERE age < 15 OR state = 'b'",
    "public": "SELECT SUM(price * 2) FROM people WHERE os = 'ios' AND age >= 8",
    "mixed": "SELECT COUNT(*) FROM people WHERE (os = 'ios' AND age < 9) OR (price > 4 AND state = 'a') OR age = 20",
    "avg": "SELECT AVG(price) FROM people WHERE age BETWEEN 3 AND 19",
    "group": "SELECT os, AVG(price) FROM people WHERE age >= 6 GROUP BY os ORDER BY os LIMIT 1",
    "stddev": "SELECT STDDEV(price) FROM people WHERE age >= 4",
    "median": "SELECT MEDIAN(price) FROM people WHERE age >= 4",
}


@cache
def people() -> tuple[np.ndarray[Any, Any], dict[str, Any], dict[str, float]]:
    """Records, public columns, and the true answers."""
    import duckdb

    generator = np.random.default_rng(3)
    ages, states = generator.binomial(24, 0.5, N), generator.integers(0, 3, N)
    os = np.array(["ios", "web"])[generator.integers(0, 2, N)]
    price = np.round(generator.exponential(3.0, N) + ages / 8, 2)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (age BIGINT, state VARCHAR, os VARCHAR, price DOUBLE)")
    names = np.array(["a", "b", "c"])[states]
    connection.executemany(
        "INSERT INTO people VALUES (?, ?, ?, ?)",
        list(zip(ages.tolist(), names.tolist(), os.tolist(), price.tolist(), strict=True)),
    )
    truths = {name: float(connection.execute(text).fetchall()[0][-1]) for name, text in QUERIES.items()}
    return np.stack([ages, states], axis=1), {"os": os.tolist(), "price": price}, truths


def held(names: Sequence[str], runs: int, *, method: str = "HIO", consistent: bool | None = None) -> dict[str, float]:
    """How often the intervals of some queries held the truth."""
    records, public, truths = people()
    schema = TableSchema(
        "people",
        (PrivateColumn("age", hb.Ordinal(25)), PrivateColumn("state", hb.Categorical(["a", "b", "c"]))),
        (PublicColumn("os", "VARCHAR"), PublicColumn("price", "DOUBLE")),
        method=method,
        epsilon=6.0 if method == "SC" else 4.0,
    )
    inside = dict.fromkeys(names, 0)
    table = MemoryTable(schema, schema.mechanism.randomize(records, hb.Random(seed=0)), public)
    for run in range(runs):
        again = table.with_reports(schema.mechanism.randomize(records, hb.Random(seed=run)))
        engine = QueryEngine(again, consistent=consistent)
        for name in names:
            cell = engine.sql(QUERIES[name]).rows[0][-1]
            inside[name] += cell.low <= truths[name] <= cell.high
    return {name: count / runs for name, count in inside.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "consistent"), [("HIO", None), ("HIO", False), ("MG", None)])
def test_intervals_cover_93_to_97_percent(method: str, consistent: bool | None) -> None:
    """800 runs: a coverage of 95% is seen outside of 93% to 97% once in 105 cases by chance."""
    names = ["count", "sum", "public", "mixed", "avg", "group"]
    found = held(names, 800, method=method, consistent=consistent)
    assert all(0.93 <= coverage <= 0.97 for coverage in found.values()), found


@pytest.mark.slow
def test_intervals_of_sc_hold_the_truth_a_little_less_often() -> None:
    """Scores are products with long tails, and so is their estimated variance: of 2,000 people 92% are held."""
    found = held(["count", "sum", "public", "mixed", "avg", "group"], 800, method="SC")
    assert all(0.9 <= coverage <= 0.97 for coverage in found.values()), found


@pytest.mark.slow
def test_intervals_of_spreads_and_quantiles_cover() -> None:
    """By the delta method, and by values that are not told apart, which are no fewer than needed."""
    found = held(["stddev", "median"], 500)
    assert 0.92 <= found["stddev"] <= 0.98, found
    assert found["median"] >= 0.93, found


def test_intervals_cover_in_a_few_runs() -> None:
    """30 runs: fewer than 23 of them hold the truth once in 10^4 cases by chance, if 95% do."""
    assert held(["avg"], 30, consistent=False)["avg"] >= 23 / 30


def test_a_third_of_the_error_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: variances are a ninth of what they are; 48% are held, and 23 of 30 once in 700 cases."""
    from hubbub.query import outputs

    whole = outputs.JointEstimate.variance
    monkeypatch.setattr(outputs.JointEstimate, "variance", lambda self, weights: whole(self, weights) / 9)
    assert held(["avg"], 30, consistent=False)["avg"] < 23 / 30
