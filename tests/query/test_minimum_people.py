"""The smallest number of people that a collector answers about: it counts those whom an answer depends on."""

from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from tests.query.tables import table_of

N, LEAST = 400, 20
ALONE = "spent = 17.2345"
OPPOSITE = "(age < 3 AND age > 5)"


@pytest.fixture(scope="module", params=["HIO", "SC", "HDG"])
def engine(request: pytest.FixtureRequest) -> QueryEngine:
    """400 people of ages 0 to 8. One spent 17.2345, 100 spent 10 and 299 nothing."""
    private, people = {"age": hb.Ordinal(9), "town": hb.Categorical(["Bath", "Ely"])}, np.arange(N)
    public: dict[str, list[Any]] = {"spent": [17.2345] + [10.0] * 100 + [0.0] * 299, "os": ["ios", "web"] * (N // 2)}
    table = table_of(private, [people % 9, people % 2], public, methods=(request.param,), epsilon=4.0)
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
        f"SELECT COUNT(*) FILTER (WHERE {ALONE} AND age < 5) FROM people",
        f"SELECT COUNT_IF({ALONE} AND age < 5) FROM people",
        "SELECT COUNT(*) FILTER (WHERE spent <= 17.2345 AND age < 5) "
        "- COUNT(*) FILTER (WHERE spent < 17.2345 AND age < 5) FROM people",
        "SELECT SUM(CASE WHEN spent <= 17.2345 THEN 1 ELSE 0 END) "
        "- SUM(CASE WHEN spent < 17.2345 THEN 1 ELSE 0 END) FROM people WHERE age < 5",
        f"SELECT SUM(CASE WHEN {ALONE} AND age < 5 THEN 1 WHEN age < 5 THEN 0.000001 END) FROM people",
        f"SELECT SUM(CASE WHEN {ALONE} AND age < 5 THEN 1000000 WHEN age < 5 THEN 1 END) FROM people",
        f"SELECT SUM(CASE WHEN {ALONE} AND age = 3 THEN 1000000 WHEN age < 5 THEN 1 END) FROM people",
        f"SELECT SUM(CASE WHEN age < 5 THEN spent END) - SUM(CASE WHEN {ALONE} THEN 0 WHEN age < 5 THEN spent END) "
        "FROM people",
        f"SELECT SUM(CASE WHEN age < 5 THEN spent END) "
        f"- SUM(CASE WHEN age < 5 THEN CASE WHEN {ALONE} THEN 0 ELSE spent END END) FROM people",
        f"SELECT COUNT(*) FROM (SELECT * FROM people WHERE {ALONE}) WHERE age < 5",
        f"WITH one AS (SELECT * FROM people WHERE {ALONE}), young AS (SELECT * FROM one WHERE age < 5) "
        "SELECT COUNT(*) FROM young",
        f"SELECT n FROM (SELECT os, COUNT(*) AS m, COUNT(*) FILTER (WHERE {ALONE} AND age < 5) AS n FROM people)",
        "SELECT COUNT(*) FROM people JOIN (VALUES (17.2345)) AS v(spent) USING (spent) WHERE age < 5",
        "SELECT SUM(w) FROM people LEFT JOIN (VALUES (17.2345, 1)) AS v(spent, w) USING (spent) WHERE age < 5",
        "SELECT COUNT(w) FROM people LEFT JOIN (VALUES (17.2345, 1)) AS v(spent, w) USING (spent) WHERE age < 5",
        f"SELECT COUNT(*) FROM people WHERE age < 5 HAVING COUNT(*) FILTER (WHERE {ALONE} AND age < 3) > 0.5",
        f"SELECT COUNT(*) FROM people WHERE age < 5 ORDER BY COUNT(*) FILTER (WHERE {ALONE} AND age < 3)",
        f"SELECT WIDTH_BUCKET(age, 0, 9, 3) AS b, COUNT(*) FROM people WHERE {ALONE} GROUP BY b",
    ],
)
def test_an_answer_that_depends_on_one_person_is_refused(engine: QueryEngine, query: str) -> None:
    with pytest.raises(QueryError, match="fewer than 20 people"):
        engine.sql(query)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT SUM(age) FROM people WHERE {ALONE}",
        f"SELECT AVG(age) FILTER (WHERE {ALONE}) FROM people",
        f"SELECT SUM(CASE WHEN {ALONE} THEN age ELSE 0 END) FROM people",
        f"SELECT AVG(CASE WHEN {ALONE} THEN age ELSE 4 END) FROM people",
        f"SELECT SUM(CASE WHEN {ALONE} THEN age ELSE spent END) FROM people",
        f"SELECT SUM(CASE WHEN {ALONE} THEN 1000000 * age ELSE age END) FROM people",
        f"SELECT SUM(CASE WHEN {ALONE} THEN age ELSE 0 END + 0.000001 * age) FROM people",
        f"SELECT SUM(age) - SUM(CASE WHEN {ALONE} THEN 0 ELSE age END) FROM people",
        f"SELECT SUM(age * spent) - SUM(age * CASE WHEN {ALONE} THEN 0 ELSE spent END) FROM people",
        f"SELECT SUM(age * spent - (age + 0) * CASE WHEN {ALONE} THEN 0 ELSE spent END) FROM people",
        "SELECT SUM(w * age) FROM people LEFT JOIN (VALUES (17.2345, 1)) AS v(spent, w) USING (spent)",
        f"SELECT STDDEV(CASE WHEN {ALONE} THEN age ELSE 4 END) FROM people",
        f"SELECT MEDIAN(age) FILTER (WHERE {ALONE}) FROM people",
        f"SELECT MEDIAN(CASE WHEN ({ALONE} AND age < 5) OR NOT {ALONE} THEN age END) FROM people",
        f"SELECT age // 3 AS third, AVG(age) FROM people WHERE {ALONE} GROUP BY third",
        f"SELECT VARIANCE(age * CASE WHEN {ALONE} THEN 1 ELSE 0 END) FROM people",
        f"SELECT COUNT(CASE WHEN {ALONE} THEN age END) FROM people WHERE age < 5",
    ],
)
def test_a_sum_of_private_numbers_that_depends_on_one_person_is_refused(engine: QueryEngine, query: str) -> None:
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
        "SELECT COUNT(*) FILTER (WHERE spent = 10 AND age < 5), COUNT(*) FROM people",
        f"SELECT SUM(CASE WHEN {ALONE} AND age < 5 THEN 1 WHEN age < 5 THEN 2 END) FROM people",
        "SELECT COUNT(w) FROM people LEFT JOIN (VALUES (10.0, 1)) AS v(spent, w) USING (spent) WHERE age < 5",
    ],
)
def test_other_answers_are_given(engine: QueryEngine, query: str) -> None:
    assert len(engine.sql(query).rows) == (9 if "GROUP" in query else 1)
