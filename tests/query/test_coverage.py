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
PLAIN, AVERAGES = ("count", "sum", "public", "mixed"), ("avg", "group")


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


def coverage_of(
    names: Sequence[str], runs: int, *, method: str = "HIO", consistent: bool | None = None
) -> dict[str, float]:
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
    """800 runs: a coverage of 95% is seen outside of 93% to 97% once in 105 cases by chance.

    Averages may cover more. That of "group" rests on the few reports that are outside of it: HIO without consistency
    covers 99%, with intervals whose median half width is 2.05 standard deviations of the estimate.
    """
    coverages = coverage_of([*PLAIN, *AVERAGES], 800, method=method, consistent=consistent)
    assert all(0.93 <= coverages[name] <= (0.97 if name in PLAIN else 1.0) for name in coverages), coverages


@pytest.mark.slow
def test_intervals_of_sc_cover_93_to_97_percent() -> None:
    """2,400 runs: a coverage of 95% is seen outside of 93% to 97% once in 140,000 cases by chance.

    Over 24,000 runs it is 94.8% to 95.0%. Of their 30 blocks of 800 runs, the first, of seeds 0 to 799, has the lowest
    coverage (92% for "group"); 800 runs are too few to tell this from intervals that are too short.
    """
    coverages = coverage_of([*PLAIN, *AVERAGES], 2400, method="SC")
    assert all(0.93 <= coverage <= 0.97 for coverage in coverages.values()), coverages


@pytest.mark.parametrize(("people_a_group", "epsilon"), [(30, 4.0), (120, 2.5), (30, 9.0)])
def test_intervals_of_sc_cover_in_small_groups(people_a_group: int, epsilon: float) -> None:
    """Each of 3,000 groups is a run of the same people: 95% are seen outside of 93% to 97% once in two million cases.

    At epsilon 9 few of 30 people send another value than their own. The error is a sum of few terms, not normal, and
    the variance that is estimated from them has a standard deviation of 42% of itself. The variance of one more report
    makes up for it, and for sums of uneven weights for more than that.
    """
    runs, condition = 3000, "car BETWEEN 3 AND 9 AND town <> 'b'"
    schema = TableSchema(
        "people",
        (PrivateColumn("car", hb.Ordinal(16)), PrivateColumn("town", hb.Categorical(["a", "b", "c", "d"]))),
        (PublicColumn("run", "BIGINT"), PublicColumn("price", "DOUBLE")),
        method="SC",
        epsilon=epsilon,
    )
    generator = np.random.default_rng(11)
    cars, towns = generator.integers(0, 16, people_a_group), generator.integers(0, 4, people_a_group)
    price = generator.exponential(5.0, people_a_group)
    inside = (cars >= 3) & (cars <= 9) & (towns != 1)
    records = np.tile(np.stack([cars, towns], axis=1), (runs, 1))
    public = {"run": np.repeat(np.arange(runs), people_a_group), "price": np.tile(price, runs)}
    engine = QueryEngine(MemoryTable(schema, schema.mechanism.randomize(records, hb.Random(seed=7)), public))
    answer = engine.sql(f"SELECT run, COUNT(*) AS n, SUM(price) AS s FROM people WHERE {condition} GROUP BY run")
    for name, truth in (("n", inside.sum()), ("s", price[inside].sum())):
        coverage = np.mean([cell.low <= truth <= cell.high for cell in answer.column(name)])
        assert 0.93 <= coverage <= (0.97 if name == "n" else 0.99), (name, coverage)


@pytest.mark.slow
def test_intervals_of_spreads_and_quantiles_cover() -> None:
    """Variances and values that are not told apart, which are no fewer than needed."""
    coverages = coverage_of(["stddev", "median"], 500)
    assert all(coverage >= 0.93 for coverage in coverages.values()), coverages


def test_intervals_cover_in_a_few_runs() -> None:
    """30 runs: fewer than 23 of them hold the truth once in 10^4 cases by chance, if 95% do."""
    assert coverage_of(["avg"], 30, consistent=False)["avg"] >= 23 / 30


def test_a_third_of_the_error_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: variances are a ninth of what they are; 48% are held, and 23 of 30 once in 700 cases."""
    from hubbub.query import outputs

    whole = outputs.JointEstimate.variance
    monkeypatch.setattr(outputs.JointEstimate, "variance", lambda self, weights: whole(self, weights) / 9)
    assert coverage_of(["avg"], 30, consistent=False)["avg"] < 23 / 30
