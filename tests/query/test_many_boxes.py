"""Conditions of many boxes: nothing grows beyond what is answered, and answers stay those of the boxes one by one."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

import hubbub as hb
from hubbub.protocols.ranges.cell_sums import CellSum, LevelCells
from hubbub.query import boxes
from hubbub.query import boxes as box_terms
from hubbub.query.boxes import Box, disjoint, merged
from hubbub.query.codes import runs_of
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, TableSchema


def drawn(count: int, sizes: list[int], seed: int = 1) -> list[Box]:
    """Random boxes, each a run of every column."""
    draw = random.Random(seed)
    ends = [[sorted((draw.randrange(size), draw.randrange(size))) for size in sizes] for _ in range(count)]
    return [tuple(runs_of([(low, high)]) for low, high in box) for box in ends]


def members(some: list[Box], sizes: list[int]) -> list[tuple[int, ...]]:
    """The records that are in the boxes, as often as they are."""
    inside = [
        record
        for box in some
        for record in product(*([k for low, high in runs for k in range(low, high + 1)] for runs in box))
    ]
    return sorted(inside)


def test_boxes_put_together_hold_the_same_records() -> None:
    for seed in range(60):
        some = drawn(7, [5, 4, 3], seed)
        assert sorted(set(members(merged(some), [5, 4, 3]))) == sorted(set(members(some, [5, 4, 3])))
        assert members(disjoint(some), [5, 4, 3]) == sorted(set(members(some, [5, 4, 3])))


def test_a_thousand_records_are_put_together_without_comparing_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    monkeypatch.setattr(box_terms, "MOST_PENDING", 30)
    draw = np.random.default_rng(1)
    dense = np.zeros(50)
    sums = []
    for _ in range(40):
        cells = np.sort(draw.choice(50, 20, replace=False))
        weights, factor = draw.normal(size=20), int(draw.integers(-2, 3))
        dense[cells] += factor * weights
        sums.append((factor, CellSum([LevelCells((1,), cells, weights)], 0.5)))
    whole = box_terms.add_cell_sums(iter(sums))
    dense_sum = np.zeros(50)
    dense_sum[whole.terms[0].cells] = whole.terms[0].weights
    np.testing.assert_allclose(dense_sum, dense, atol=1e-12)
    assert whole.known == sum(factor for factor, _ in sums) / 2


def test_many_private_groups_are_not_each_weighed_over_all_cells() -> None:
    """The 3,200 groups of this table, which has 638,000 cells of all levels, would take 32 GB."""
    schema = TableSchema("t", tuple(PrivateColumn(f"c{k}", hb.Ordinal(size)) for k, size in enumerate((100, 50, 64))))
    reports = schema.mechanism.randomize(np.zeros((500, 3), dtype=np.int64), hb.Random(seed=1))
    engine = QueryEngine(MemoryTable(schema, reports, {}))
    few = engine.sql("EXPLAIN SELECT c1, COUNT(*) FROM t WHERE c0 < 70 GROUP BY c1").plan
    many = engine.sql("EXPLAIN SELECT c1, c2, COUNT(*) FROM t WHERE c0 < 70 GROUP BY c1, c2").plan
    assert "by least squares" in few
    assert "by least squares" not in many
