"""Tables on disk: the same answers as in memory, whatever the blocks; what was counted once is not counted again."""

import json
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.reports import Reports
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.query import build, store_format
from hubbub.query import connect as stored_table
from hubbub.query import schema as private_table
from hubbub.query.answer import QueryAnswer
from hubbub.query.build import build_table
from hubbub.query.connect import connect
from hubbub.query.engine import QueryEngine
from hubbub.query.interval_method import IntervalMethod
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableReports, TableSchema

GOLDEN = Path(__file__).parents[1] / "golden"
N = 500
SHORT = "SELECT COUNT(*), SUM(price) FROM people WHERE age BETWEEN 3 AND 12 OR state = 'b'"
QUERIES = (
    "SELECT os, COUNT(*), AVG(price), STDDEV(price) FROM people WHERE age BETWEEN 3 AND 12 OR state = 'b' GROUP BY os",
    "SELECT state, SUM(price) FROM people WHERE age > 4 AND price > 2 GROUP BY state ORDER BY state",
    "SELECT MEDIAN(price) FROM people WHERE age < 10",
)


def schema(method: str) -> TableSchema:
    return TableSchema(
        "people",
        (PrivateColumn("age", hb.Ordinal(20), missing=True), PrivateColumn("state", hb.Categorical(["a", "b", "c"]))),
        (PublicColumn("os", "VARCHAR"), PublicColumn("price", "DOUBLE")),
        methods=(method,),
        epsilon=3.0,
        expected=N if method == "HDG" else None,
    )


def records() -> dict[str, Any]:
    generator = np.random.default_rng(1)
    return {
        "age": [None if age == 20 else int(age) for age in generator.integers(0, 21, N)],
        "state": np.array(["a", "b", "c"])[generator.integers(0, 3, N)].tolist(),
        "os": [("ios", "web", None)[k] for k in generator.integers(0, 3, N)],
        "price": generator.exponential(3.0, N).round(2).tolist(),
    }


def chunks(size: int) -> list[dict[str, Any]]:
    every = records()
    return [{name: values[k : k + size] for name, values in every.items()} for k in range(0, N, size)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (build, private_table, store_format, stored_table):
        monkeypatch.setattr(module, "BLOCK", 128)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("method", ["HIO", "SC", "HDG"])
def test_files_and_folders_answer_as_memory_does(tmp_path: Path, method: str) -> None:
    for name, size in (("store.duckdb", 70), ("store", 1000)):
        assert build_table(tmp_path / name, schema(method), chunks(size), rng=hb.Random(seed=1)) == N
    file, folder = connect(tmp_path / "store.duckdb"), connect(tmp_path / "store")
    memory = in_memory(file)
    for query in QUERIES if method != "HDG" else (SHORT,):
        first, *others = [numbers(table.sql(query)) for table in (file, folder, memory)]
        assert len(first) > 2
        for other in others:  # DuckDB adds up in any order
            assert other == pytest.approx(first, rel=1e-9, nan_ok=True), query


def numbers(answer: QueryAnswer) -> list[float]:
    return [end for row in answer.rows for cell in row if not isinstance(cell, str | None) for end in astuple(cell)]


def in_memory(stored: Any) -> QueryEngine:
    """The same reports and public columns, in memory and in one block."""
    table = stored.table
    groups = {}
    for level in table.level_sizes():
        blocks = [group for rows in table.blocks() if (group := table.reports(level, rows)) is not None]
        rows = np.concatenate([group.rows for group in blocks])
        groups[level] = LevelReports(rows, Reports.concat([group.reports for group in blocks]))
    every = records()
    return QueryEngine(
        MemoryTable(table.schema, TableReports(N, groups), {name: every[name] for name in ("os", "price")})
    )


@pytest.mark.usefixtures("small_blocks")
def test_what_was_counted_once_is_not_counted_again(tmp_path: Path) -> None:
    build_table(tmp_path / "store.duckdb", schema("HIO"), chunks(300), rng=hb.Random(seed=1))
    engine = connect(tmp_path / "store.duckdb")
    assert isinstance(engine, QueryEngine)
    method = engine._methods[0]
    assert isinstance(method, IntervalMethod)
    first = engine.sql(QUERIES[0])
    counted, passes = method.counts.supports.counted, engine.passes
    assert passes > 0
    again = engine.sql(QUERIES[0].replace("AND 12", "AND  12"))
    assert (again.rows, method.counts.supports.counted, engine.passes) == (first.rows, counted, passes)
    # by least squares all cells of all levels are known now: other ranges, and fewer aggregates, need no more of them
    engine.sql(QUERIES[0].replace("3 AND 12", "6 AND 9").replace("COUNT(*), ", ""))
    assert engine.passes == passes
    assert engine.sql("EXPLAIN " + QUERIES[1]).plan
    assert engine.passes == passes  # a plan reads no reports
    engine.sql(QUERIES[1])
    assert engine.passes == passes + 1


@pytest.mark.usefixtures("small_blocks")
def test_a_block_at_a_time_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_table(tmp_path / "store.duckdb", schema("HIO"), chunks(300), rng=hb.Random(seed=1))
    engine = connect(tmp_path / "store.duckdb")
    assert isinstance(engine, QueryEngine)
    read = []
    whole = stored_table.StoredTable.reports

    def seen(self: Any, level: Any, rows: range) -> Any:
        group = whole(self, level, rows)
        read.append(0 if group is None else len(group.reports))
        return group

    monkeypatch.setattr(stored_table.StoredTable, "reports", seen)
    engine.sql(QUERIES[0])
    assert 0 < max(read) <= 128
    assert sum(read) >= N - sum(size for level, size in engine.table.level_sizes().items() if not any(level))


def test_the_answer_of_nobody_and_of_everybody_is_exact() -> None:
    table = schema("HIO")
    codes = np.stack([column.encode(records()[column.name]) for column in table.private], axis=1)
    reports = table.randomize(codes, hb.Random(seed=1))
    every = records()
    engine = QueryEngine(MemoryTable(table, reports, {name: every[name] for name in ("os", "price")}))
    everybody = engine.sql("SELECT COUNT(*), SUM(price) FROM people WHERE age < 5 OR age >= 5 OR age IS NULL")
    count, total = everybody.rows[0]
    assert (count.value, count.low, count.high) == (N, N, N)
    assert total.value == pytest.approx(sum(every["price"]))
    assert engine.passes == 0
    nobody = engine.sql("SELECT COUNT(*), AVG(price) FROM people WHERE age < 5 AND age > 7")
    assert nobody.rows[0][0].value == 0.0
    assert np.isnan(nobody.rows[0][1].value)
    assert engine.sql("SELECT os, COUNT(*) FROM people WHERE price < -1 GROUP BY os").rows == ()


def test_stores_of_every_format_are_read() -> None:
    """If this fails, the format has a new number: `tests/golden/README.md` says what to do."""
    folders = sorted(GOLDEN.glob("table-*"))
    assert [folder.name for folder in folders] == [f"table-{k}" for k in range(1, store_format.FORMAT + 1)]
    for folder in folders:
        table = connect(folder / "store")
        for query, rows in json.loads((folder / "expected.json").read_text(encoding="utf-8")).items():
            answer = table.sql(query)
            expected = QueryAnswer.from_json({**answer.to_json(), "rows": rows})
            cells, old = (np.array(numbers(each)).reshape(-1, 6) for each in (answer, expected))
            assert cells == pytest.approx(old, rel=1e-9)
            names, old_names = ([row[0] for row in each if isinstance(row[0], str)] for each in (answer.rows, rows))
            assert names == old_names
