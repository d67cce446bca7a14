"""The smallest number of people that a collector answers about: it counts those whom an answer depends on."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from hubbub.query.memory_table import MemoryTable
from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema

N, LEAST = 400, 20
ALONE = "spent = 17.2345"
OPPOSITE = "(age < 3 AND age > 5)"


@pytest.fixture(scope="module", params=["HIO", "SC", "HDG"])
def engine(request: pytest.FixtureRequest) -> QueryEngine:
    """400 people of ages 0 to 8. One spent 17.2345, 100 spent 10 and 299 nothing."""
    columns = (PrivateColumn("age", hb.Ordinal(9)), PrivateColumn("town", hb.Categorical(["Bath", "Ely"])))
    public = (PublicColumn("spent", "DOUBLE"), PublicColumn("os", "VARCHAR"))
    schema = TableSchema(
        "people", columns, public, method=request.param, epsilon=4.0, expected=N if request.param == "HDG" else None
    )
    people = np.arange(N)
    reports = schema.mechanism.randomize(np.stack([people % 9, people % 2], axis=1), hb.Random(seed=1))
    spent = [17.2345] + [10.0] * 100 + [0.0] * 299
    table = MemoryTable(schema, reports, {"spent": spent, "os": ["ios", "web"] * (N // 2)})
    return QueryEngine(table, minimum_people=LEAST)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT COUNT(*) FROM people WHERE {ALONE} AND age < 5",
        f"SELECT SUM(CASE WHEN {ALONE} THEN 1 ELSE 0 END) FROM people WHERE age < 5",
        f"SELECT SUM(CASE WHEN {ALONE} THEN 1 END) FROM people WHERE age < 5",
        f"SELECT COUNT(CASE WHEN {ALONE} THEN 1 END) FROM people WHERE age < 5",
        f"SELECT AVG(CASE WHEN {ALONE} THEN 3 END) FROM people WHERE age < 5",
        f"SELECT MEDIAN(CASE WHEN {ALONE} THEN 3 END) FROM people WHERE age < 5",
        f"SELECT SUM(CASE WHEN {ALONE} THEN 1000000 ELSE 1 END) FROM people WHERE age < 5",
        f"SELECT SUM(CASE WHEN {ALONE} THEN 1 ELSE 0.000001 END) FROM people WHERE age < 5",
        f"SELECT SUM(CASE WHEN {ALONE} THEN -1 ELSE 0 END), COUNT(*) FROM people WHERE age < 5",
        f"SELECT COUNT(*) FROM people WHERE {ALONE} OR {OPPOSITE}",
        f"SELECT SUM(spent) FROM people WHERE {ALONE} OR {OPPOSITE}",
        f"SELECT COUNT(*) FROM people WHERE ({ALONE} AND age < 5) OR {OPPOSITE}",
        f"SELECT COUNT(*) FROM people WHERE (NOT {ALONE}) OR age < 5",
        f"SELECT COUNT(*) FROM people WHERE (NOT {ALONE} AND (age < 5 OR age > 2)) OR age < 5",
        f"SELECT town, COUNT(*) FROM people WHERE {ALONE} OR {OPPOSITE} GROUP BY town",
    ],
)
def test_an_answer_that_depends_on_one_person_is_refused(engine: QueryEngine, query: str) -> None:
    with pytest.raises(QueryError, match="fewer than 20 people"):
        engine.sql(query)


def test_a_group_that_depends_on_one_person_is_left_out(engine: QueryEngine) -> None:
    weight = f"SUM(CASE WHEN {ALONE} THEN 1 ELSE 0 END)"
    answer = engine.sql(f"SELECT os, {weight} FROM people WHERE age < 5 GROUP BY os")
    assert [row[0] for row in answer.rows] == ["web"]  # depends on nobody
    assert "1 groups of fewer than 20 people are left out" in answer.notes


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(*), SUM(spent), AVG(spent), MEDIAN(spent), STDDEV(spent) FROM people WHERE age < 5",
        f"SELECT COUNT(*) FROM people WHERE {ALONE} OR age < 5",
        "SELECT SUM(CASE WHEN spent = 10 THEN 1 ELSE 0 END) FROM people WHERE age < 5",
        "SELECT SUM(0) FROM people WHERE age < 5",
        "SELECT age, COUNT(*) FROM people WHERE age < 5 GROUP BY age",
    ],
)
def test_other_answers_are_given(engine: QueryEngine, query: str) -> None:
    assert len(engine.sql(query).rows) == (9 if "GROUP" in query else 1)
