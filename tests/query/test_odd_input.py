"""Odd names, types and numbers: answers without noise are those of DuckDB, or refusals."""

import math
from datetime import date, datetime, timedelta
from functools import cache

import duckdb
import numpy as np
import pytest

import hubbub as hb
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema
from tests.query.generated import World
from tests.query.generated import world as generated_world

N = 200


@cache
def world() -> World:
    """Public columns have the names that the engine could use itself, large numbers, and NULL in all kinds."""
    draw = np.random.default_rng(5)
    ages = draw.integers(0, 8, N).tolist()
    incomes = (draw.integers(0, 120, N) / 10).tolist()
    days: list[date | None] = [
        date(2024, 1, 1) + timedelta(days=int(k)) if k else None for k in draw.integers(0, 40, N)
    ]
    public = {
        "p0": ("BIGINT", draw.integers(0, 3, N).tolist()),
        "w0": ("BIGINT", draw.integers(0, 3, N).tolist()),
        "id": ("BIGINT", draw.integers(0, 3, N).tolist()),
        "pro": ("BOOLEAN", [[True, False, None][k] for k in draw.integers(0, 3, N)]),
        "price": ("DOUBLE", (draw.integers(0, 9, N) / 10).tolist()),
        "big": ("BIGINT", draw.integers(10**12, 10**13, N).tolist()),
        "far": ("BIGINT", draw.integers(10**12, 10**13, N).tolist()),
        "day": ("DATE", days),
        "ts": ("TIMESTAMP", [datetime(2024, 1, 1) + timedelta(hours=int(k)) for k in draw.integers(0, 600, N)]),
        "os": ("VARCHAR", [["ios", "web", None][k] for k in draw.integers(0, 3, N)]),
    }
    private = (PrivateColumn("age", hb.Ordinal(8)), PrivateColumn("income", hb.Numeric(0, 12, cells=6)))
    columns = tuple(PublicColumn(name, kind) for name, (kind, _) in public.items())
    schema = TableSchema("people", private, columns, methods=("MG",), epsilon=1000.0)
    records = np.stack([private[0].encode(ages), private[1].encode(incomes)], axis=1)
    reports = schema.randomize(records, hb.Random(seed=1))
    table = MemoryTable(schema, reports, {name: values for name, (_, values) in public.items()})
    truth = duckdb.connect()
    declared = ", ".join(f"{column.name} {column.type}" for column in columns)
    truth.execute(f"CREATE TABLE people (age BIGINT, income DOUBLE, {declared})")
    rows = list(zip(ages, incomes, *(values for _, values in public.values()), strict=True))
    truth.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return World(QueryEngine(table), truth)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, COUNT(*), SUM(p0) FROM people GROUP BY id ORDER BY id",
        "SELECT id, p0, COUNT(*), SUM(w0) FROM people WHERE age < 5 OR w0 = 1 GROUP BY id, p0 ORDER BY id, p0",
        "SELECT os, QUANTILE_DISC(p0, 0.5) FROM people WHERE age < 5 OR p0 = 1 GROUP BY os ORDER BY os",
        "SELECT SUM(pro) / SUM(w0) FROM people WHERE age < 5",
        "SELECT SUM(big) / SUM(far), SUM(big) - SUM(far) FROM people WHERE age < 5",
        "SELECT COUNT(os), COUNT(day), COUNT('a'), COUNT(NULL), COUNT() FROM people WHERE age < 5",
        "SELECT os, COUNT(day) FROM people WHERE age < 5 GROUP BY os ORDER BY os",
        "SELECT STDDEV(w0) * 2, STDDEV(w0) / AVG(w0), 1 - STDDEV_POP(w0) FROM people WHERE age < 5",
        "SELECT COUNT(*) FROM people WHERE price = 0.1 + 0.2",
        "SELECT COUNT(*) FROM people WHERE price >= 3 * 0.1 AND age < 5",
        "SELECT COUNT(*) FROM people WHERE price > 1 / 0 OR age < 5",
        "SELECT COUNT(*) FROM people WHERE age = 1e999",
        "SELECT COUNT(*) FROM people WHERE income < 1e999",
        f"SELECT COUNT(*) FROM people WHERE age < {'9' * 30} OR income > {'9' * 30}",
        "SELECT COUNT(*) FROM people WHERE NULL OR age < 5",
        "SELECT COUNT(*) FROM people WHERE ts > TIMESTAMP '2024-01-10 00:00:00' AND age < 5",
        "SELECT CAST(price AS DECIMAL(5, 2)) AS d, COUNT(*) FROM people GROUP BY d ORDER BY d LIMIT 4",
        "SELECT EXTRACT(month FROM day) AS m, COUNT(*) FROM people WHERE NOT (day > '2024-01-20' AND age < 5) "
        "GROUP BY m HAVING COUNT(*) > 0.5 ORDER BY m NULLS FIRST",
    ],
)
def test_odd_names_types_and_numbers_have_the_answers_of_duckdb(query: str) -> None:
    both = world()
    mine = [[getattr(cell, "value", cell) for cell in row] for row in both.engine.sql(query).rows]
    expected = both.truth.execute(query).fetchall()
    assert len(mine) == len(expected)
    for got, want in zip(mine, expected, strict=True):
        for left, right in zip(got, want, strict=True):
            same = left == right if not isinstance(left, float) else math.isclose(left, right, rel_tol=1e-7)
            assert same or (left == 0 and right is None) or abs(left - right) < 1e-6, (got, want)


def test_cells_of_a_number_are_ordered_by_the_number() -> None:
    answer = world().engine.sql("SELECT income, COUNT(*) FROM people GROUP BY income ORDER BY income DESC LIMIT 2")
    assert [row[0] for row in answer.rows] == ["10 to 12", "8 to 10"]
    some = world().engine.sql("SELECT income, COUNT(*) FROM people GROUP BY income HAVING income > 8 OR income < 2")
    assert [row[0] for row in some.rows] == ["0 to 2", "8 to 10", "10 to 12"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT COUNT(*) FROM people WHERE age < 1e999 - 1e999", "line 1, column 41: it is no number"),
        (f"SELECT COUNT(*) * {'9' * 400} FROM people", "line 1, column 19: the number is too large"),
        ("SELECT SUM(w0) * 1e999 FROM people", "line 1, column 18: the number is too large"),
        ("SELECT COUNT(*) FROM people WHERE age BETWEEN SYMMETRIC 5 AND 3", "SYMMETRIC is not answered"),
        ("SELECT os, COUNT(*) FROM people GROUP BY os ORDER BY ALL", "ORDER BY ALL is not answered"),
    ],
)
def test_odd_numbers_are_refused_with_their_place(query: str, message: str) -> None:
    with pytest.raises(QueryError) as error:
        world().engine.sql(query)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("end", "chosen"),
    [
        ("ORDER BY n DESC LIMIT 2", True),
        ("HAVING n > 5", True),
        ("ORDER BY n DESC", False),
        ("ORDER BY os LIMIT 2", False),
        ("HAVING os = 'v0'", False),
    ],
)
def test_an_answer_says_if_groups_were_chosen_by_their_estimates(end: str, chosen: bool) -> None:
    notes = world().engine.sql(f"SELECT os, COUNT(*) AS n FROM people WHERE age < 5 GROUP BY os {end}").notes
    text = "chosen by their estimates: an interval is of a group that is named beforehand; with level 0.98333 all 3"
    assert any(text in note for note in notes) == chosen


@pytest.mark.parametrize("method", ["HIO", "HI", "MG", "SC"])
def test_of_nobody_nothing_is_known_and_nothing_breaks(method: str) -> None:
    schema = TableSchema("people", (PrivateColumn("age", hb.Ordinal(30)),), (PublicColumn("x", "BIGINT"),), (method,))
    nobody = schema.randomize(np.zeros((0, 1), dtype=np.int64), hb.Random(seed=1))
    engine = QueryEngine(MemoryTable(schema, nobody, {"x": []}))
    row = engine.sql("SELECT COUNT(*) AS n, AVG(x) AS a, MEDIAN(x) AS m FROM people WHERE age < 9").rows[0]
    assert math.isnan(row[1].value)
    assert math.isnan(row[2].value)
    assert engine.sql("SELECT x, COUNT(*) AS n FROM people WHERE age < 9 GROUP BY x").rows == ()


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("age * 1e50 * age * 1e50", "is not finite for every value"),
        ("age * price * 1e59", "one larger than 1e"),
        ("income * 1e40 * income * 1e40", "one larger than 1e"),
        ("CASE WHEN age < 3 THEN income * 1e200 * income * 1e200 END", "one larger than 1e"),
        ("CASE WHEN age < 3 THEN age ELSE " * 80 + "0" + " END" * 80, "too (deeply|many|long)"),
    ],
)
@pytest.mark.parametrize("method", ["MG", "SC", "HDG"])
def test_sums_that_no_float_holds_and_deep_ones_are_refused(method: str, measure: str, words: str) -> None:
    engine = generated_world(method, epsilon=4.0).engine
    for call in ("SUM", "AVG", "VARIANCE"):
        with pytest.raises(QueryError, match=words):
            engine.sql(f"SELECT {call}({measure}) FROM people")
