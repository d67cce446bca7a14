"""A query that takes too long is stopped, wherever it is; the engine answers the next one."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hubbub as hb
from hubbub.query import support_counts
from hubbub.query.boxes import Box, disjoint
from hubbub.query.engine import QueryEngine
from hubbub.query.memory_table import MemoryTable, example_table
from hubbub.query.sandbox import QueryTimeout, check_time, time_limit
from hubbub.query.schema import PrivateColumn, TableSchema

COUNT = "SELECT COUNT(*) FROM people WHERE age < 10"


def test_duckdb_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = example_table()
    endless = "(SELECT people.* FROM people, range(1000000) a, range(1000000) b WHERE a.range * b.range > 7)"
    with monkeypatch.context() as slow:
        slow.setattr(MemoryTable, "relation", endless)
        with time_limit(0.2), pytest.raises(QueryTimeout):
            QueryEngine(table).sql("SELECT os, COUNT(*) FROM people WHERE age < 10 GROUP BY os")
    assert QueryEngine(table).sql(COUNT).n == 2000


def test_boxes_are_not_cut_without_end() -> None:
    boxes: list[Box] = [(((a, a + 30),), ((31 * a % 97, 31 * a % 97 + 5),), ((17 * a % 89, 95),)) for a in range(300)]
    with time_limit(0.05), pytest.raises(QueryTimeout):
        disjoint(boxes)


def test_reports_are_counted_for_some_cells_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few cells are counted between two looks at the time, the supports are the same."""
    schema = TableSchema("people", (PrivateColumn("age", hb.Ordinal(200)),), epsilon=1.0)
    reports = schema.mechanism.randomize(np.arange(3000)[:, None] % 200, hb.Random(seed=1))
    table = MemoryTable(schema, reports, {})
    whole = QueryEngine(table).sql("SELECT COUNT(*) FROM people WHERE age < 77")
    monkeypatch.setattr(support_counts, "MOST_HASHES", 7000)
    assert QueryEngine(table).sql("SELECT COUNT(*) FROM people WHERE age < 77").rows == whole.rows


def test_time_is_that_of_the_thread_that_asks() -> None:
    errors = []

    def other() -> None:
        try:
            check_time()
        except QueryTimeout as error:
            errors.append(error)

    with time_limit(0.0):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert not errors
    check_time()


def test_a_stopped_query_leaves_the_engine_as_it_was() -> None:
    engine = QueryEngine(example_table())
    with time_limit(0.0), pytest.raises(QueryTimeout):
        engine.sql(COUNT)
    with time_limit(60.0):
        limited = engine.sql(COUNT)
    assert limited.rows == QueryEngine(example_table()).sql(COUNT).rows
