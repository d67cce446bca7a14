"""Joins with public tables: each person is in at most one row, by equal public columns of one type."""

import datetime
import math
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.query.build import build_table
from hubbub.query.connect import connect
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from tests.query.tables import schema_of, table_of

N = 600
PUBLIC: dict[str, list[Any]] = {
    "os": ["ios", "web", "lin"] * (N // 3),
    "price": [1.0, 2.0, math.nan] * (N // 3),
    "qty": [1, 2, 3] * (N // 3),
    "day": [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2), None] * (N // 3),
}
AGES = {"age": hb.Ordinal(10)}


@pytest.fixture(scope="module")
def engine() -> QueryEngine:
    return QueryEngine(table_of(AGES, [np.arange(N) % 10], PUBLIC, epsilon=4.0))


def joined(column: str, values: list[Any], kind: str = "JOIN") -> tuple[str, Any]:
    return f"SELECT COUNT(*) FROM people {kind} rows r ON people.{column} = r.key", {"rows": {"key": values}}


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("os", ["ios", "ios"]),
        ("price", [1.0, 1.0]),
        ("price", [math.nan, math.nan]),
        ("price", [0.0, -0.0]),
        ("price", [2**53, 2**53 + 1]),  # the same as numbers with a point
        ("qty", [1.0, 1.0]),
        ("day", [datetime.date(2026, 1, 1)] * 2),
    ],
)
def test_rows_of_which_a_person_could_be_in_several_are_refused(engine: QueryEngine, column: str, values: Any) -> None:
    text, tables = joined(column, values)
    with pytest.raises(QueryError, match="key is not unique in r"):
        engine.sql(text, tables=tables)


@pytest.mark.parametrize(
    ("join", "message"),
    [
        ("JOIN (VALUES (3)) AS v(age) USING (age)", "age is private"),
        ("JOIN (VALUES (3)) AS v(x) ON people.age = v.x", "age is private"),
        ("JOIN (VALUES ('1'), ('01')) AS v(qty) USING (qty)", "qty is BIGINT, and qty is VARCHAR"),
        ("JOIN (VALUES (3)) AS v(x) ON people.qty > v.x", "equal public columns"),
        ("JOIN (VALUES (3)) AS v(x) ON people.qty = 3", "equal public columns"),
        ("JOIN (VALUES (3)) AS v(x) ON v.x = v.x", "one side of = is of v"),
        ("JOIN (VALUES (3)) AS v(x) ON people.qty = v.x OR people.qty = v.x", "equal public columns"),
        ("JOIN (VALUES (3)) AS v(x) ON people.amount = v.x", "unknown column amount"),
        ("JOIN (VALUES (3)) AS v(x) ON people.qty = v.y", "unknown column y of v"),
        ("RIGHT JOIN (VALUES (3)) AS v(x) ON people.qty = v.x", "RIGHT JOIN is not answered"),
        ("FULL JOIN (VALUES (3)) AS v(x) ON people.qty = v.x", "FULL JOIN is not answered"),
        ("SEMI JOIN (VALUES (3)) AS v(x) ON people.qty = v.x", "SEMI JOIN is not answered"),
        ("CROSS JOIN (VALUES (3)) AS v(x)", "CROSS JOIN is not answered"),
        ("NATURAL JOIN (VALUES (3)) AS v(qty)", "NATURAL JOIN is not answered"),
        (", (VALUES (3)) AS v(x)", "a join has no ON"),
        ("JOIN people q USING (qty)", "joined with itself"),
        ("JOIN others USING (qty)", "unknown public table others"),
        ("JOIN (SELECT * FROM people) q USING (qty)", "only a public table or VALUES"),
        ("JOIN (VALUES (1, 2), (3)) AS v(qty, x) USING (qty)", "rows of VALUES have different lengths"),
        ("JOIN (VALUES (1 + 1)) AS v(qty) USING (qty)", "VALUES hold numbers, texts"),
    ],
)
def test_joins_are_by_equal_public_columns_of_one_type(engine: QueryEngine, join: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        engine.sql(f"SELECT COUNT(*) FROM people {join}")


def test_every_person_counts_once(engine: QueryEngine) -> None:
    for column, values, known in (
        ("os", ["ios", "lin"], 400),
        ("price", [2, math.nan], 400),
        ("qty", [2.0, 9.5], 200),
        ("day", [datetime.date(2026, 1, 2), None], 200),
    ):
        for kind, count in (("JOIN", known), ("LEFT JOIN", N)):
            text, tables = joined(column, values, kind)
            assert engine.sql(text, tables=tables).value().value == count


def test_columns_of_one_name_are_told_apart_by_their_tables(engine: QueryEngine) -> None:
    tables: Any = {"sizes": {"os": ["ios", "web"], "price": [10.0, 20.0], "weight": [1.5, 2.5]}}
    text = "SELECT SUM(s.price) AS a, SUM(people.price) AS b, SUM(weight) AS c FROM people JOIN sizes s USING (os)"
    assert [cell.value for cell in engine.sql(text, tables=tables).rows[0]] == [6000.0, 600.0, 800.0]
    twice = f"{text} JOIN (VALUES (10.0, 7)) AS v(price, points) ON s.price = v.price"
    assert engine.sql(twice, tables=tables).rows[0][0].value == 2000.0


def rows_of(weight: int) -> Any:
    return {"rows": {"os": ["ios", "web"], "w": [weight, weight]}}


def test_the_same_query_with_other_rows_is_answered_from_these(engine: QueryEngine) -> None:
    """Counts are cached: those of a stratum are of the joined rows."""
    text = "SELECT SUM(w) FROM people JOIN rows USING (os) WHERE age < 5"
    first, second = (engine.sql(text, tables=rows_of(weight)).value().value for weight in (1, 10))
    assert second == pytest.approx(10 * first)


def test_tables_of_a_wrong_form_are_refused(engine: QueryEngine) -> None:
    text = "SELECT COUNT(*) FROM people JOIN rows USING (os)"
    wrong: Any
    for wrong in ({}, {"os": ["a"], "x": []}, {"os": ["a", 3]}, [1], {"os": ["a"] * 1_000_001}):
        with pytest.raises(InvalidValue, match="tables"):
            engine.sql(text, tables={"rows": wrong})


@pytest.mark.parametrize("name", ["store.duckdb", "store"])
def test_stored_tables_are_joined_too(tmp_path: Any, name: str) -> None:
    schema = schema_of(AGES, {"os": ["ios"]}, 90, epsilon=4.0)
    people = {"age": [k % 10 for k in range(90)], "os": ["ios", "web", "lin"] * 30}
    build_table(tmp_path / name, schema, [people], rng=hb.Random(seed=1))
    text = "SELECT w, COUNT(*) AS n FROM people JOIN (VALUES ('ios', 1), ('web', 2)) AS v(os, w) USING (os) GROUP BY w"
    assert [row[0] for row in connect(tmp_path / name).sql(text).rows] == [1, 2]
