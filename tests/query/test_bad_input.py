"""What a table refuses, and that nothing has changed afterwards; what a query cannot reach."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.query import groups
from hubbub.query.build import build_table
from hubbub.query.connect import connect
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

SCHEMA = TableSchema(
    "people",
    (PrivateColumn("age", hb.Ordinal(9)),),
    (PublicColumn("os", "VARCHAR"), PublicColumn("price", "DOUBLE"), PublicColumn("day", "DATE")),
    epsilon=4.0,
)
N = 300


def make_engine(price: list[float | None] | None = None) -> QueryEngine:
    reports = SCHEMA.randomize(np.arange(N)[:, None] % 9, hb.Random(seed=1))
    public: dict[str, Any] = {"os": ["ios", "web", None] * 100, "price": price or [1.5] * N, "day": [None] * N}
    return QueryEngine(MemoryTable(SCHEMA, reports, public))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT SUM(os) FROM people", 'line 1, column 12: "os" is VARCHAR, no number'),
        ("SELECT SUM(day) FROM people", 'line 1, column 12: "day" is DATE, no number'),
        ("SELECT SUM(os + 1)\nFROM people WHERE age < 3", "line 1, column 12: types do not fit"),
        ("SELECT COUNT(*)\nFROM people WHERE os + 1 > 3", "line 2, column 19: types do not fit"),
        ("SELECT COUNT(*) FROM people WHERE price", 'line 1, column 35: "price" is DOUBLE, no condition'),
        ("SELECT COUNT(*) FROM people WHERE os = 3 OR age = 1", "line 1, column 35: types do not fit"),
        ("SELECT SUM(CAST(os AS DOUBLE)) FROM people", "line 1, column 17: types do not fit"),
        ("SELECT SUM(LN(price - 1.5)) FROM people", 'LN("price" - 1.5) is NaN or infinite for 300 people'),
        ("SELECT SUM(price * 1e308 * 10) FROM people", 'line 1, column 12: "price" * 1e308 * 10 is NaN or infinite'),
        ("SELECT SUM(price * 1e200) FROM people WHERE age < 3", '"price" * 1e200 is larger than 1e+140'),
        ("SELECT ROUND(SUM(price)) FROM people", "cannot be next to aggregates"),
        ("SELECT MEDIAN(price) + 1 FROM people", "line 1, column 15: a quantile stands alone"),
        ("SELECT SUM(price) FROM people HAVING os = 'a' AND COUNT(*) > 1", "line 1, column 38: os is in no aggregate"),
    ],
)
def test_types_that_do_not_fit_are_refused_with_their_place(query: str, message: str) -> None:
    engine = make_engine()
    before = engine.sql("SELECT COUNT(*) FROM people WHERE age < 3").value()
    with pytest.raises(QueryError) as error:
        engine.sql(query)
    assert message in str(error.value)
    assert engine.sql("SELECT COUNT(*) FROM people WHERE age < 3").value() == before


def test_measures_with_nan_are_refused_and_those_with_null_are_left_out() -> None:
    broken = make_engine([float("nan"), *[1.0] * (N - 1)])
    with pytest.raises(QueryError, match='line 1, column 12: "price" is NaN or infinite for 1 people'):
        broken.sql("SELECT AVG(price) FROM people")
    assert broken.sql("SELECT COUNT(*) FROM people").value().value == N
    gaps = make_engine([None, None, *[2.0] * (N - 2)])
    assert gaps.sql("SELECT AVG(price) FROM people").value().value == 2.0
    assert gaps.sql("SELECT COUNT(price) FROM people").value().value == N - 2


@pytest.mark.parametrize("level", [0.0, 1.0, -1, True, "a", float("nan")])
def test_levels_that_are_no_probabilities_are_refused(level: object) -> None:
    with pytest.raises(InvalidValue, match="level"):
        make_engine().sql("SELECT COUNT(*) FROM people", level=level)  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", ["1e-100", "1e-200", "1e-300", "1e-320", "1e100"])
def test_measures_of_any_size_are_summed(factor: str) -> None:
    engine = make_engine([1.5, 2.5, 0.5] * 100)
    total = engine.sql("SELECT SUM(price) FROM people WHERE age < 5").value()
    scaled = engine.sql(f"SELECT SUM(price * {factor}) FROM people WHERE age < 5").value()
    assert scaled.value == pytest.approx(total.value * float(factor), rel=1e-6, abs=1e-140)


def test_what_aliases_stand_for_is_limited() -> None:
    """With all of them written out this query would have 40,000 parts."""
    counts = "+".join(["COUNT(*)"] * 150)
    with pytest.raises(QueryError, match="the aliases make the query too long"):
        make_engine().sql(f"SELECT {counts} AS n FROM people WHERE age < 3 HAVING n IN ({', '.join(['n'] * 90)})")


def test_parts_of_groups_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three strata of public conditions, each divided into the nine values of a private key."""
    condition = "(os = 'ios' AND age < 3) OR (os = 'web' AND age > 4) OR age = 4"
    query = f"SELECT age, COUNT(*) FROM people WHERE {condition} GROUP BY age"
    monkeypatch.setattr(groups, "MOST_PARTS", 27)
    assert len(make_engine().sql(query).rows) == 9
    monkeypatch.setattr(groups, "MOST_PARTS", 26)
    with pytest.raises(QueryError, match="too many combinations of groups and public conditions"):
        make_engine().sql(query)


def test_intermediate_results_are_limited_in_memory_and_none_goes_to_the_disk(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    connection = make_engine().table.connection()
    with pytest.raises(duckdb.OutOfMemoryException):
        connection.execute("SELECT list(range || 'a long enough text ' || range) FROM range(40000000)").fetchall()
    assert connection.execute("SELECT COUNT(*) FROM people").fetchall() == [(N,)]
    assert list(tmp_path.iterdir()) == []


def test_very_long_and_very_deep_queries_are_refused() -> None:
    engine = make_engine()
    with pytest.raises(QueryError, match="characters"):
        engine.sql("SELECT COUNT(*) FROM people WHERE " + "age = 1 OR " * 5000 + "age = 2")
    with pytest.raises(QueryError):
        engine.sql("SELECT COUNT(*) FROM people WHERE " + "(" * 600 + "age = 1" + ")" * 600)
    many = " AND ".join(f"(age = {k % 9} OR price > {k})" for k in range(30))
    with pytest.raises(QueryError, match="too many public conditions"):
        engine.sql(f"SELECT COUNT(*) FROM people WHERE {many}")


def test_names_are_names_whatever_is_in_them() -> None:
    name = 'x"; DROP TABLE people; --'
    schema = TableSchema('a "b', (PrivateColumn("it's", hb.Ordinal(5)),), (PublicColumn(name, "BIGINT"),), epsilon=8.0)
    reports = schema.randomize(np.arange(100)[:, None] % 5, hb.Random(seed=1))
    engine = QueryEngine(MemoryTable(schema, reports, {name: [2] * 100}))
    quoted = '"' + name.replace('"', '""') + '"'
    text = f'SELECT {quoted}, SUM({quoted}) AS "s;" FROM "a ""b" WHERE "it\'s" >= 0 GROUP BY {quoted}'
    answer = engine.sql(text)
    assert (answer.rows[0][0], answer.rows[0][1].value) == (2, 200.0)
    assert engine.sql('SELECT COUNT(*) FROM "a ""b"').value().value == 100


def test_the_database_can_reach_no_file_and_no_setting(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    people = {"age": [1, 2], "os": ["a", "b"], "price": [1.0, 2.0], "day": [None, None]}
    for name in ("store.duckdb", "store"):
        build_table(tmp_path / name, SCHEMA, [people], rng=hb.Random(seed=1))
        engine = connect(tmp_path / name)
        assert isinstance(engine, QueryEngine)
        connection = engine.table.connection()
        for text in (
            f"SELECT * FROM read_csv('{secret}')",
            f"COPY people TO '{tmp_path}/out.csv'",
            f"ATTACH '{tmp_path}/other.db'",
            "SET enable_external_access=true",
            "SET memory_limit='9GB'",
            "INSTALL httpfs",
            "SELECT * FROM people_in_python",
        ):
            people_in_python = people  # noqa: F841 # a variable that DuckDB could otherwise read
            with pytest.raises(duckdb.Error):
                connection.execute(text)
        assert connection.execute("SELECT COUNT(*) FROM people").fetchall() == [(2,)]


def test_stores_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.duckdb").write_bytes(b"no database")
    (tmp_path / "folder").mkdir()
    with duckdb.connect(str(tmp_path / "empty.duckdb")):
        pass
    for name in ("other.duckdb", "folder", "empty.duckdb", "nowhere"):
        with pytest.raises(InvalidValue, match="store"):
            connect(tmp_path / name)


@pytest.mark.parametrize("name", ["table.duckdb", "table"])
def test_tables_that_cannot_be_built_leave_nothing(tmp_path: Path, name: str) -> None:
    good = {"age": [1, 2], "os": ["a", "b"], "price": [1.0, 2.0], "day": [None, None]}
    for chunks, message in (
        ([], "at least one record"),
        ([{**good, "age": [1, 9]}], "age: got 9"),
        ([{**good, "age": [1, None]}], "age: got None"),
        ([good, {**good, "price": ["x", "y"]}], "price: got 'string'"),
        ([{"age": [1, 2]}], "chunks: got 'os'"),
        ([3], "chunks: got 'int'"),
    ):
        with pytest.raises(InvalidValue) as error:
            build_table(tmp_path / name, SCHEMA, chunks, rng=hb.Random(seed=1))
        assert message in str(error.value)
        assert list(tmp_path.iterdir()) == []
    build_table(tmp_path / name, SCHEMA, [good], rng=hb.Random(seed=1))
    with pytest.raises(InvalidValue, match="not there yet"):
        build_table(tmp_path / name, SCHEMA, [good], rng=hb.Random(seed=1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TableSchema("t", ()), "dimensions"),
        (lambda: TableSchema("t", SCHEMA.private, (PublicColumn("AGE", "DOUBLE"),)), "AGE"),
        (lambda: TableSchema("t", SCHEMA.private, methods=("OLH",)), "method"),
        (lambda: TableSchema("t", SCHEMA.private, epsilon=0.0), "epsilon"),
        (lambda: TableSchema("t", SCHEMA.private, expected=3), "expected"),
        (lambda: TableSchema("#t", SCHEMA.private), "name"),
        (lambda: PrivateColumn("a", hb.Strings(9)), "a: got"),
        (lambda: PublicColumn("a", "BLOB"), "a: got 'BLOB'"),
        (lambda: TableSchema.from_spec({"name": "t"}), "schema"),
    ],
)
def test_schemas_that_are_none_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValue) as error:
        make()
    assert message in str(error.value)
