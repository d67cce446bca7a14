"""Conditions of many boxes and queries that take long: nothing grows beyond what is answered, and time is limited."""

import random
import threading
from itertools import product

import numpy as np
import pytest

import hubbub as hb
from hubbub.protocols.ranges.cell_sums import CellSum, LevelCells
from hubbub.query import boxes, support_counts
from hubbub.query.boxes import Box, disjoint, merged
from hubbub.query.codes import runs_of
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from hubbub.query.memory_table import MemoryTable, example_table
from hubbub.query.sandbox import QueryTimeout, check_time, time_limit
from tests.query.tables import table_of


def drawn(count: int, sizes: list[int], seed: int = 1) -> list[Box]:
    """Random boxes, each a run of every column."""
    draw = random.Random(seed)
    ends = [[sorted((draw.randrange(size), draw.randrange(size))) for size in sizes] for _ in range(count)]
    return [tuple(runs_of([(low, high)]) for low, high in box) for box in ends]


def members(some: list[Box]) -> list[tuple[int, ...]]:
    """The records that are in the boxes, as often as they are."""
    columns = ([[k for low, high in runs for k in range(low, high + 1)] for runs in box] for box in some)
    return sorted(record for codes in columns for record in product(*codes))


def test_boxes_put_together_hold_the_same_records() -> None:
    for seed in range(60):
        some = drawn(7, [5, 4, 3], seed)
        assert set(members(merged(some))) == set(members(some))
        assert members(disjoint(some)) == sorted(set(members(some)))


def test_a_thousand_records_are_put_together_without_comparing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0
    whole = boxes.overlap

    def counting(left: Box, right: Box) -> Box | None:
        nonlocal compared
        compared += 1
        return whole(left, right)

    monkeypatch.setattr(boxes, "overlap", counting)
    records: list[Box] = [(((a, a),), ((b, b),)) for a in range(0, 64, 2) for b in range(32)]
    assert len(merged(records)) == 1
    assert compared < len(records)


def test_pieces_are_counted_while_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "MOST_BOXES", 60)
    with pytest.raises(QueryError, match="too many combinations"):
        disjoint(drawn(60, [1000, 1000, 1000]))


def test_cells_of_many_boxes_are_added_up_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "MOST_PENDING", 30)
    draw = np.random.default_rng(1)
    dense = np.zeros(50)
    sums = []
    for _ in range(40):
        cells = np.sort(draw.choice(50, 20, replace=False))
        weights, factor = draw.normal(size=20), int(draw.integers(-2, 3))
        dense[cells] += factor * weights
        sums.append((factor, CellSum([LevelCells((1,), cells, weights)], 0.5)))
    whole = boxes.add_cell_sums(iter(sums))
    dense_sum = np.zeros(50)
    dense_sum[whole.terms[0].cells] = whole.terms[0].weights
    np.testing.assert_allclose(dense_sum, dense, atol=1e-12)
    assert whole.known == sum(factor for factor, _ in sums) / 2


def test_many_private_groups_are_not_each_weighed_over_all_cells() -> None:
    """The 3,200 groups of this table, which has 638,000 cells of all levels, would take 32 GB."""
    private = {f"c{k}": hb.Ordinal(size) for k, size in enumerate((100, 50, 64))}
    engine = QueryEngine(table_of(private, [[0] * 500] * 3, {}))
    few = engine.sql("EXPLAIN SELECT c1, COUNT(*) FROM people WHERE c0 < 70 GROUP BY c1").plan
    many = engine.sql("EXPLAIN SELECT c1, c2, COUNT(*) FROM people WHERE c0 < 70 GROUP BY c1, c2").plan
    assert "by least squares" in few
    assert "by least squares" not in many


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
    table = table_of({"age": hb.Ordinal(200)}, [np.arange(3000) % 200], {})
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
