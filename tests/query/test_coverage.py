"""Intervals of COUNT, SUM and AVG hold the truth as often as they say; that of a planted bug does not."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import hubbub as hb
from hubbub.core.reports import Ints
from hubbub.query.engine import QueryEngine
from hubbub.query.sums import JointEstimate
from tests.query.tables import table_of
from tests.shared.coverage import refused_coverage

N = 4000
QUERIES = {
    "count": "SELECT COUNT(*) FROM people WHERE age BETWEEN 5 AND 17 AND state <> 'a'",
    "sum": "SELECT SUM(price) FROM people WHERE age < 15 OR state = 'b'",
    "public": "SELECT SUM(price * 2) FROM people WHERE os = 'ios' AND age >= 8",
    "mixed": "SELECT COUNT(*) FROM people WHERE (os = 'ios' AND age < 9) OR (price > 4 AND state = 'a') OR age = 20",
    "avg": "SELECT AVG(price) FROM people WHERE age BETWEEN 3 AND 19",
    "group": "SELECT os, AVG(price) FROM people WHERE age >= 6 GROUP BY os ORDER BY os LIMIT 1",
    "stddev": "SELECT STDDEV(price) FROM people WHERE age >= 4",
    "median": "SELECT MEDIAN(price) FROM people WHERE age >= 4",
}
PLAIN, AVERAGES = ("count", "sum", "public", "mixed"), ("avg", "group")


@cache
def people() -> tuple[np.ndarray[Any, Any], dict[str, Any], dict[str, float]]:
    """Records, public columns, and the true answers."""
    generator = np.random.default_rng(3)
    ages, states = generator.binomial(24, 0.5, N), generator.integers(0, 3, N)
    os = np.array(["ios", "web"])[generator.integers(0, 2, N)]
    price = np.round(generator.exponential(3.0, N) + ages / 8, 2)
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (age BIGINT, state VARCHAR, os VARCHAR, price DOUBLE)")
    names = np.array(["a", "b", "c"])[states]
    rows = zip(*(column.tolist() for column in (ages, names, os, price)), strict=True)
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", list(rows))
    truths = {name: float(connection.execute(text).fetchall()[0][-1]) for name, text in QUERIES.items()}
    return np.stack([ages, states], axis=1), {"os": os.tolist(), "price": price.tolist()}, truths


def coverage_of(
    names: Sequence[str], runs: int, *, method: str = "HIO", consistent: bool | None = None
) -> dict[str, float]:
    """How often the intervals of some queries held the truth."""
    records, public, truths = people()
    private = {"age": hb.Ordinal(25), "state": hb.Categorical(["a", "b", "c"])}
    inside = dict.fromkeys(names, 0)
    table = table_of(private, list(records.T), public, methods=(method,), epsilon=6.0 if method == "SC" else 4.0)
    for run in range(runs):
        again = table.with_reports(table.schema.randomize(records, hb.Random(seed=run)))
        engine = QueryEngine(again, consistent=consistent)
        for name in names:
            cell = engine.sql(QUERIES[name]).rows[0][-1]
            inside[name] += cell.low <= truths[name] <= cell.high
    return {name: count / runs for name, count in inside.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "consistent"), [("HIO", None), ("HIO", False), ("MG", None)])
def test_intervals_cover_93_to_97_percent(method: str, consistent: bool | None) -> None:
    """800 runs: a coverage of 95% is seen outside of 93% to 97% once in 105 cases by chance.

    Averages may cover more. That of "group" rests on the few reports that are outside of it: HIO without consistency
    covers 99%, with intervals whose median half width is 2.05 standard deviations of the estimate.
    """
    coverages = coverage_of([*PLAIN, *AVERAGES], 800, method=method, consistent=consistent)
    assert all(0.93 <= coverages[name] <= (0.97 if name in PLAIN else 1.0) for name in coverages), coverages


@pytest.mark.slow
def test_intervals_of_sc_cover_93_to_97_percent() -> None:
    """2,400 runs: a coverage of 95% is seen outside of 93% to 97% once in 140,000 cases by chance.

    Over 24,000 runs it is 94.8% to 95.0%. Of their 30 blocks of 800 runs, the first, of seeds 0 to 799, has the lowest
    coverage (92% for "group"); 800 runs are too few to tell this from intervals that are too short.
    """
    coverages = coverage_of([*PLAIN, *AVERAGES], 2400, method="SC")
    assert all(0.93 <= coverage <= 0.97 for coverage in coverages.values()), coverages


@pytest.mark.parametrize(("people_a_group", "epsilon"), [(30, 4.0), (120, 2.5), (30, 9.0)])
def test_intervals_of_sc_cover_in_small_groups(people_a_group: int, epsilon: float) -> None:
    """Each of 3,000 groups is a run of the same people: 95% are seen outside of 93% to 97% once in two million cases.

    At epsilon 9 few of 30 people send another value than their own. The error is a sum of few terms, not normal, and
    the variance that is estimated from them has a standard deviation of 42% of itself. The variance of one more report
    makes up for it, and for sums of uneven weights for more than that.
    """
    runs, condition = 3000, "car BETWEEN 3 AND 9 AND town <> 'b'"
    private = {"car": hb.Ordinal(16), "town": hb.Categorical(["a", "b", "c", "d"])}
    generator = np.random.default_rng(11)
    cars, towns = generator.integers(0, 16, people_a_group), generator.integers(0, 4, people_a_group)
    price = generator.exponential(5.0, people_a_group)
    inside = (cars >= 3) & (cars <= 9) & (towns != 1)
    public = {"run": np.repeat(np.arange(runs), people_a_group).tolist(), "price": np.tile(price, runs).tolist()}
    codes = [np.tile(cars, runs), np.tile(towns, runs)]
    engine = QueryEngine(table_of(private, codes, public, seed=7, methods=("SC",), epsilon=epsilon))
    answer = engine.sql(f"SELECT run, COUNT(*) AS n, SUM(price) AS s FROM people WHERE {condition} GROUP BY run")
    for name, truth in (("n", inside.sum()), ("s", price[inside].sum())):
        coverage = np.mean([cell.low <= truth <= cell.high for cell in answer.column(name)])
        assert 0.93 <= coverage <= (0.97 if name == "n" else 0.99), (name, coverage)


NUMBERS = {
    "mean": "SELECT AVG(age) FROM people",
    "mean inside": "SELECT AVG(age) FROM people WHERE state <> 'a'",
    "median": "SELECT MEDIAN(age) FROM people",
    "median inside": "SELECT MEDIAN(age) FROM people WHERE age >= 12 AND state = 'b'",
    "spread": "SELECT STDDEV(age) FROM people",
    "spread inside": "SELECT STDDEV(age) FROM people WHERE price < 4",
    "sum": "SELECT SUM(age * price) FROM people WHERE state = 'b'",
    "share": "SELECT COUNT(*) FILTER (WHERE age < 20) / COUNT(*) FROM people WHERE price < 4",
    "case": "SELECT SUM(CASE WHEN age < 20 THEN price WHEN state = 'c' THEN 2 * age ELSE 1 END) FROM people",
}


AGES: dict[str, Callable[[np.random.Generator, int], Ints]] = {
    "skewed": lambda draw, n: np.minimum(draw.geometric(0.04, n) + draw.integers(0, 18, n), 89),
    "many of one age": lambda draw, n: np.where(draw.random(n) < 0.45, 30, draw.integers(0, 90, n)),
    "young and old": lambda draw, n: np.where(draw.random(n) < 0.5, draw.integers(0, 12, n), draw.integers(75, 90, n)),
    "alike": lambda draw, n: np.clip(np.round(draw.normal(60, 6, n)), 0, 89).astype(np.int64),
}


def private_hits(
    n: int,
    runs: int,
    *,
    method: str = "HIO",
    epsilon: float = 2.0,
    at_once: int = 1,
    names: Sequence[str] = (),
    crowd: str = "skewed",
) -> dict[str, int]:
    """How often the intervals of numbers of a private column held the truth.

    Each run is a group of the same n people; `at_once` groups are in one table. Of two methods, "MG HIO", half of the
    people report by each, and the second answers unless queries are routed.
    """
    generator = np.random.default_rng(n)
    ages = AGES[crowd](generator, n)
    states, price = generator.choice(3, n, p=[0.5, 0.3, 0.2]), np.round(generator.exponential(3.0, n), 1)
    connection = duckdb.connect()
    connection.register("rows", pa.table({"age": ages, "state": np.array(["a", "b", "c"])[states], "price": price}))
    connection.execute("CREATE TABLE people AS SELECT * FROM rows")
    discrete = {name: text.replace("MEDIAN(age)", "QUANTILE_DISC(age, 0.5)") for name, text in NUMBERS.items()}
    truths = {name: float(connection.execute(text).fetchall()[0][0]) for name, text in discrete.items()}
    private = {"age": hb.Ordinal(90), "state": hb.Categorical(["a", "b", "c"])}
    codes = [np.tile(ages, at_once), np.tile(states, at_once)]
    public = {"price": np.tile(price, at_once).tolist(), "run": np.repeat(np.arange(at_once), n).tolist()}
    table = table_of(private, codes, public, methods=tuple(method.split()), epsilon=epsilon)
    hits = dict.fromkeys(names or NUMBERS, 0)
    for run in range(runs // at_once):
        reports = table.schema.randomize(np.stack(codes, axis=1), hb.Random(seed=run))
        engine = QueryEngine(table.with_reports(reports))
        for name, text in ((name, NUMBERS[name]) for name in hits):
            answer = engine.sql(f"{text} GROUP BY run".replace("SELECT ", "SELECT run, ", 1))
            hits[name] += sum(cell.low <= truths[name] <= cell.high for _, cell in answer.rows)
    return hits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "method", "epsilon", "at_once"),
    [
        (2_000, "HIO", 2.0, 250),
        (2_000, "MG", 4.0, 250),
        (2_000, "SC", 8.0, 250),
        (2_000, "HI", 12.0, 250),
        (2_000, "HDG", 4.0, 250),
        (20_000, "HIO", 1.0, 50),
        (20_000, "HDG", 2.0, 50),
        (100_000, "HIO", 1.0, 10),
        (100_000, "HI", 4.0, 10),
        (100_000, "MG", 2.0, 10),
        (100_000, "SC", 8.0, 5),
        (100_000, "HDG", 1.0, 10),
    ],
)
def test_intervals_of_private_numbers_cover(n: int, method: str, epsilon: float, at_once: int) -> None:
    """1,000 runs each; a coverage is refused if it is below 93% at one error in 10,000."""
    hits = private_hits(n, 1000, method=method, epsilon=epsilon, at_once=at_once)
    assert {name: verdict for name, count in hits.items() if (verdict := refused_coverage(count, 1000))} == {}


@pytest.mark.slow
@pytest.mark.parametrize("crowd", [crowd for crowd in AGES if crowd != "skewed"])
@pytest.mark.parametrize(("method", "epsilon"), [("HIO", 1.0), ("MG", 2.0), ("HDG", 2.0)])
def test_medians_of_other_crowds_are_covered(method: str, epsilon: float, crowd: str) -> None:
    """1,000 runs each; a coverage is refused if it is below 93% at one error in 10,000."""
    names = ["median", "median inside"]
    hits = private_hits(20_000, 1000, method=method, epsilon=epsilon, at_once=50, names=names, crowd=crowd)
    assert {name: verdict for name, count in hits.items() if (verdict := refused_coverage(count, 1000))} == {}


@pytest.mark.parametrize(("method", "epsilon"), [("HIO", 1.0), ("MG", 2.0), ("HDG", 1.0)])
def test_medians_of_a_hundred_thousand_people_are_covered_in_a_few_runs(method: str, epsilon: float) -> None:
    """8 intervals: fewer than 5 hold once in 3,000 cases by chance, if 95% do."""
    names = ["median", "median inside"]
    assert sum(private_hits(100_000, 4, method=method, epsilon=epsilon, at_once=4, names=names).values()) >= 5


def test_intervals_of_private_numbers_cover_in_a_few_runs() -> None:
    hits = private_hits(2_000, 20, at_once=20, names=["mean inside", "spread inside", "sum", "case"])
    assert refused_coverage(sum(hits.values()), 20 * len(hits)) == ""
    assert private_hits(2_000, 2, at_once=2, names=["median inside"])["median inside"] >= 1


def test_a_covariance_of_scores_that_is_forgotten_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a sum of a private column and its count are independent, with a ninth of the variance."""
    whole = JointEstimate.covariance
    monkeypatch.setattr(JointEstimate, "covariance", lambda self, left, right: whole(self, left, right) * 0)
    variance = JointEstimate.variance
    monkeypatch.setattr(JointEstimate, "variance", lambda self, weights: variance(self, weights) / 9)
    hits = private_hits(2_000, 40, at_once=40, names=["mean inside", "sum"])
    assert refused_coverage(sum(hits.values()), 80)


@pytest.mark.slow
def test_intervals_of_spreads_and_quantiles_cover() -> None:
    """Variances and values that are not told apart, which are no fewer than needed."""
    coverages = coverage_of(["stddev", "median"], 500)
    assert all(coverage >= 0.93 for coverage in coverages.values()), coverages


def test_intervals_cover_in_a_few_runs() -> None:
    """30 runs: fewer than 23 of them hold the truth once in 10^4 cases by chance, if 95% do."""
    assert coverage_of(["avg"], 30, consistent=False)["avg"] >= 23 / 30


def test_a_third_of_the_error_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: variances are a ninth of what they are; 48% are held, and 23 of 30 once in 700 cases."""
    whole = JointEstimate.variance
    monkeypatch.setattr(JointEstimate, "variance", lambda self, weights: whole(self, weights) / 9)
    assert coverage_of(["avg"], 30, consistent=False)["avg"] < 23 / 30
