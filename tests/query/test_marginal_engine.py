"""SQL over released marginals: what it counts, what it does not know, and what it refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.domain import Numeric, Ordinal
from hubbub.query.errors import QueryError
from hubbub.query.marginal_engine import MarginalEngine
from hubbub.rehearse.marginals import FieldRecords, rehearse_marginals

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

N = 30_000


def records() -> FieldRecords:
    draws = np.random.default_rng(5)
    rooms = draws.integers(0, 4, N)
    load = np.where(draws.random(N) < 0.9, rooms * 10.0 + draws.random(N), np.nan)
    town = np.where(draws.random(N) < 0.8, np.array(["Bath", "Ely"])[rooms % 2], "Rye")
    return FieldRecords.of(
        {"rooms": rooms, "load": load, "town": town}, {"rooms": Ordinal(4), "load": Numeric(0, 40, cells=8)}
    )


@pytest.fixture(scope="module")
def people() -> tuple[FieldRecords, MarginalEngine]:
    everybody = records()
    released = rehearse_marginals(everybody, epsilon=6.0, rng=Random(seed=1), theta=1e-9)  # pairs, as few as there are
    return everybody, MarginalEngine(released, everybody.domains, "people")


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("rooms = 1", lambda p: p.columns["rooms"] == 1),
        ("rooms BETWEEN 1 AND 2 AND load < 20", lambda p: (p.columns["rooms"] == 1) & (p.columns["load"] < 20)),
        (
            "load IS NULL OR rooms IN (0, 3)",
            lambda p: np.isnan(p.columns["load"]) | np.isin(p.columns["rooms"], (0, 3)),
        ),
        ("NOT (rooms > 0)", lambda p: p.columns["rooms"] == 0),
    ],
)
def test_counts_of_conditions(
    people: tuple[FieldRecords, MarginalEngine], condition: str, holds: Callable[[FieldRecords], Any]
) -> None:
    """Each interval of 99.99% holds the count."""
    everybody, engine = people
    answer = engine.sql(f"SELECT COUNT(*) FROM people WHERE {condition}", level=0.9999).value()
    assert answer.low <= int(holds(everybody).sum()) <= answer.high
    assert answer.high - answer.low < 0.2 * N


def test_groups_are_listed_and_chosen_by_their_estimates(people: tuple[FieldRecords, MarginalEngine]) -> None:
    _, engine = people
    everybody = engine.sql("SELECT COUNT(*) FROM people").value()
    assert (everybody.value, everybody.low, everybody.high) == (N, N, N)
    answer = engine.sql("SELECT town, COUNT(*) AS n FROM people GROUP BY town")
    assert answer.column("town") == ["Bath", "Ely", "Rye", None]
    assert sum(cell.value for cell in answer.column("n")) == pytest.approx(N)
    first = engine.sql("SELECT town, COUNT(*) AS n FROM people GROUP BY town HAVING n > 100 ORDER BY n DESC LIMIT 1")
    assert first.column("n")[0].value == max(cell.value for cell in answer.column("n"))
    assert "groups were chosen by their estimates" in first.notes[0]


@pytest.mark.parametrize(
    ("query", "truth"),
    [
        ("SELECT AVG(rooms) FROM people", lambda rooms, load, town: rooms.mean()),
        ("SELECT STDDEV_POP(rooms) FROM people WHERE town = 'Bath'",
         lambda rooms, load, town: rooms[town == 0].std()),
        ("SELECT SUM(rooms * rooms) FROM people WHERE load < 15",
         lambda rooms, load, town: (rooms[load < 15] ** 2).sum()),
        ("SELECT SUM(CASE WHEN town = 'Ely' THEN rooms ELSE 1 END) FROM people",
         lambda rooms, load, town: np.where(town == 1, rooms, 1).sum()),
        ("SELECT COUNT(*) FILTER (WHERE rooms = 2) / COUNT(*) FROM (SELECT * FROM people WHERE load >= 10)",
         lambda rooms, load, town: (rooms[load >= 10] == 2).mean()),
        ("SELECT n - 2 * m FROM (SELECT COUNT(*) AS n, COUNT_IF(rooms < 2) AS m FROM people)",
         lambda rooms, load, town: rooms.size - 2 * (rooms < 2).sum()),
    ],
)  # fmt: skip
def test_sums_and_functions_of_fields(people: tuple[FieldRecords, MarginalEngine], query: str, truth: Any) -> None:
    """Each interval of 99.99% holds the truth, and says something."""
    everybody, engine = people
    true = float(truth(*(everybody.columns[name] for name in ("rooms", "load", "town"))))
    answer = engine.sql(query, level=0.9999).value()
    assert answer.low <= true <= answer.high
    assert answer.low <= answer.value <= answer.high < np.inf
    assert answer.high - answer.low < 0.3 * max(true, N / 2 if true > 10 else 1.5)


def test_buckets_and_the_columns_are_listed(people: tuple[FieldRecords, MarginalEngine]) -> None:
    everybody, engine = people
    answer = engine.sql("SELECT WIDTH_BUCKET(load, 0, 40, 4) AS b, COUNT(*) AS n FROM people GROUP BY b", level=0.9999)
    assert answer.column("b") == [1, 2, 3, 4, None]
    load = everybody.columns["load"]
    for bucket, cell in zip((1, 2, 3, 4), answer.column("n"), strict=False):
        assert cell.low <= np.sum(load // 10 == bucket - 1) <= cell.high
    assert engine.sql("DESCRIBE people").column("column_name") == ["rooms", "load", "town"]


def test_what_is_reconstructed_has_no_interval(people: tuple[FieldRecords, MarginalEngine]) -> None:
    _, engine = people
    answer = engine.sql("SELECT COUNT(*) FROM people WHERE load < 5 AND town = 'Rye'")
    assert (answer.bias, answer.value().low, answer.value().high) == ("heuristic", -np.inf, np.inf)
    assert "nobody reported on load, town together" in answer.notes[0]
    plan = engine.sql("EXPLAIN SELECT COUNT(*) FROM people WHERE load < 5 AND town = 'Rye'").plan
    assert "groups reported on rooms, load; rooms, town" in plan
    assert "not reported on together" in plan


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT SUM(1) FROM people", "marginals answer COUNT"),
        ("SELECT MEDIAN(rooms) FROM people", "no quantiles"),
        ("SELECT SUM(LN(load)) FROM people", "known in cells"),
        ("SELECT COUNT(*) FROM people JOIN (VALUES (1)) AS v(rooms) USING (rooms)", "a join is not answered"),
        ("SELECT COUNT(*) FROM people WHERE car = 1", "car"),
        ("SELECT COUNT(*) FROM homes", "homes"),
        ("DELETE FROM people", "no query"),
    ],
)
def test_what_marginals_do_not_answer(people: tuple[FieldRecords, MarginalEngine], query: str, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        people[1].sql(query)
