"""Tables of several methods: intervals from a part of the people hold, and queries go to the method that errs less."""

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy.stats import binom

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.query import engine as query_engine
from hubbub.query import split_method, support_counts
from hubbub.query.build import build_table
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from hubbub.query.formula import CodeScore, PrivateFactor
from hubbub.query.route import MethodRoute
from hubbub.query.schema import METHODS, PrivateColumn, PublicColumn, TableSchema
from hubbub.query.strata import Strata
from hubbub.query.sums import EVERYBODY, JointEstimate
from tests.query.tables import table_of
from tests.query.test_coverage import private_hits
from tests.shared.coverage import refused_coverage

RUNS, EACH = 1000, 100


def covered(method: str, epsilon: float, *, runs: int = RUNS, consistent: bool | None = None) -> dict[str, float]:
    """How often intervals hold if 40% of the people report by a method, which answers: each of many groups is a run."""
    generator = np.random.default_rng(3)
    ages, states = generator.binomial(24, 0.5, EACH), generator.integers(0, 3, EACH)
    price = np.round(generator.exponential(3.0, EACH) + ages / 8, 2)
    inside = (ages >= 9) & (ages <= 17) & (states != 1)
    truths = {"n": inside.sum(), "s": price[inside].sum(), "a": price[inside].mean()}
    other = "MG" if method == "HIO" else "HIO"
    settings: dict[str, Any] = {"methods": (other, method), "shares": (0.6, 0.4), "epsilon": epsilon}
    private = {"age": hb.Ordinal(25), "state": hb.Categorical(["a", "b", "c"])}
    public = {"run": np.repeat(np.arange(runs), EACH).tolist(), "price": np.tile(price, runs).tolist()}
    table = table_of(private, [np.tile(ages, runs), np.tile(states, runs)], public, seed=5, **settings)
    wanted = "COUNT(*) AS n, SUM(price) AS s, AVG(price) AS a"
    where = "age BETWEEN 9 AND 17 AND state <> 'b'"
    answer = QueryEngine(table, consistent=consistent).sql(
        f"SELECT run, {wanted} FROM people WHERE {where} GROUP BY run"
    )
    return {
        name: float(np.mean([cell.low <= truth <= cell.high for cell in answer.column(name)]))
        for name, truth in truths.items()
    }


def answered_by_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_engine, "best_route", lambda names, methods, *_: MethodRoute(names[1], methods[1]))


WAYS = [("HIO", False), ("HIO", None), ("HI", False), ("HI", None), ("MG", None), ("SC", None)]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [4.0, 12.0, 200.0])
@pytest.mark.parametrize(("method", "consistent"), WAYS)
def test_intervals_from_a_part_of_the_people_cover(
    method: str, consistent: bool | None, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,000 runs, not below .93 by a binomial test at 1e-4; at epsilon 200 the error is the choice of the people."""
    answered_by_the_second(monkeypatch)
    coverages = covered(method, epsilon, consistent=consistent)
    least = binom.ppf(1e-4, RUNS, 0.93) / RUNS
    assert all(coverage >= least for coverage in coverages.values()), coverages


@pytest.mark.parametrize(("method", "consistent"), [("HI", False), ("SC", None)])
def test_they_cover_in_a_few_runs(method: str, consistent: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 runs: fewer than 47 hold once in 10^5 cases by chance, if 95% do."""
    answered_by_the_second(monkeypatch)
    assert covered(method, 200.0, runs=60, consistent=consistent)["n"] >= 47 / 60


@pytest.mark.parametrize(("method", "consistent"), [("HI", False), ("SC", None)])
def test_that_nobody_was_chosen_at_random_would_be_seen(
    method: str, consistent: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: the choice of the people who stand for all is taken to add no error."""
    answered_by_the_second(monkeypatch)

    def without_choice(value: Any, covariances: Any, *more: Any) -> JointEstimate:
        return JointEstimate(value, covariances[:1], *more)

    for module in (support_counts, split_method):
        monkeypatch.setattr(module, "JointEstimate", without_choice)
    assert covered(method, 200.0, runs=60, consistent=consistent)["n"] < 47 / 60


def both(n: int = 6000, **settings: Any) -> QueryEngine:
    """A table of people of 64 ages and 4 towns, half of whom report by HIO and half by MG."""
    numbers = np.arange(n)
    private = {"age": hb.Ordinal(64), "town": hb.Categorical(["a", "b", "c", "d"])}
    systems = [("ios", "web")[k % 2] for k in range(n)]
    public: dict[str, Any] = {"price": (numbers % 5 - 1.0).tolist(), "os": systems}
    settings = {"methods": ("HIO", "MG"), "epsilon": 2.0, **settings}
    return QueryEngine(table_of(private, [numbers % 64, numbers // 64 % 4], public, **settings))


def test_a_query_goes_to_the_method_that_is_expected_to_err_less() -> None:
    engine = both()
    wide = engine.sql("SELECT COUNT(*), AVG(price) FROM people WHERE age BETWEEN 8 AND 57", explain=True)
    narrow = engine.sql("SELECT COUNT(*) FROM people WHERE age = 3 AND town = 'b'", explain=True)
    assert wide.plan.splitlines()[0].startswith("HIO (0.5) and MG (0.5), epsilon 2: 6,000 people")
    for answer, best, other in ((wide, "HIO", "MG"), (narrow, "MG", "HIO")):
        remark = f"answered by {best}: expected errors are "
        assert remark in answer.plan
        assert answer.notes[0].startswith(remark)
        times = float(answer.notes[0].removeprefix(remark).split(" times")[0])
        assert times > 1.5
        assert answer.notes[0].endswith(f"with {other}")
    assert (
        engine.sql("SELECT MEDIAN(price) FROM people WHERE age >= 8", explain=True).notes[0].startswith("answered by")
    )


def test_the_choice_reads_no_report_and_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean squares of 40 runs: the method that is not chosen errs more, for a wide and for a narrow condition."""
    engine = both()
    conditions = "age BETWEEN 8 AND 57", "age = 3 AND town = 'b'"
    chosen = []
    for condition in conditions:
        plan = engine.sql(f"EXPLAIN SELECT COUNT(*) FROM people WHERE {condition}").plan
        chosen.append(plan.split("answered by ")[1].split(":")[0])
    assert chosen == ["HIO", "MG"]
    assert engine.passes == 0
    numbers = np.arange(6000)
    records = np.stack([numbers % 64, numbers // 64 % 4], axis=1)
    truths = [((records[:, 0] >= 8) & (records[:, 0] <= 57)).sum(), ((records[:, 0] == 3) & (records[:, 1] == 1)).sum()]
    squares = np.zeros((2, 2))
    table: Any = engine.table
    for run in range(40):
        again = table.with_reports(table.schema.randomize(records, hb.Random(seed=run)))
        for place in range(2):
            monkeypatch.setattr(
                query_engine, "best_route", lambda names, ways, *_, k=place: MethodRoute(names[k], ways[k])
            )
            own = QueryEngine(again)
            for which, condition in enumerate(conditions):
                value = own.sql(f"SELECT COUNT(*) FROM people WHERE {condition}").value().value
                squares[which, place] += (value - truths[which]) ** 2
    assert squares[0, 0] < squares[0, 1]
    assert squares[1, 1] < squares[1, 0]


def test_what_hdg_leaves_unknown_goes_elsewhere() -> None:
    """SUM of what may be negative, and spreads, have no interval by HDG."""
    engine = both(methods=("HDG", "SC"), epsilon=1.0)
    for text in ("SELECT SUM(price) FROM people WHERE age < 20", "SELECT STDDEV(price) FROM people WHERE age < 20"):
        assert engine.sql(text).notes[0] == "answered by SC: expected errors are unknown with HDG"
    heuristic = engine.sql("SELECT COUNT(*) FROM people WHERE age < 20")
    assert (heuristic.bias, heuristic.notes[0][:15]) == ("heuristic", "answered by HDG")


NEW_FORMS = [
    "SELECT AVG(age) AS x FROM people WHERE town <> 'a'",
    "SELECT QUANTILE_DISC(age, 0.5) AS x FROM people WHERE age < 60",
    "SELECT STDDEV_POP(age) AS x FROM people",
    "SELECT SUM(CASE WHEN age < 20 THEN price WHEN town = 'b' THEN 2 END) AS x FROM people",
    "SELECT COUNT(*) FILTER (WHERE age < 30) AS x FROM people WHERE os = 'ios'",
    "SELECT QUANTILE_DISC(CASE WHEN age < 30 THEN price END, 0.5) AS x FROM people",
    "SELECT age // 32 AS b, COUNT(*) AS x FROM people GROUP BY b ORDER BY b",
    "SELECT AVG(a) AS x FROM (SELECT age + 1 AS a FROM people WHERE town = 'c')",
    "WITH young AS (SELECT age, price FROM people WHERE age < 30) SELECT SUM(age) AS x FROM young",
    "SELECT AVG(age * w) AS x FROM people JOIN (VALUES ('ios', 2), ('web', 3)) AS v(os, w) USING (os)",
]


@pytest.mark.parametrize("methods", [("HIO", "SC"), ("HI", "MG"), ("HDG", "HI")])
def test_every_form_is_routed(methods: tuple[str, ...]) -> None:
    """The interval of level 1 - 1e-7 holds the truth, and not all that is possible."""
    engine, truth = both(methods=methods, epsilon=24.0), duckdb.connect()
    codes = "SELECT range AS k FROM range(6000)"
    town = "substr('abcd', k // 64 % 4 + 1, 1)"
    columns = f"k % 64 AS age, {town} AS town, k % 5 - 1.0 AS price, CASE k % 2 WHEN 0 THEN 'ios' ELSE 'web' END AS os"
    truth.execute(f"CREATE TABLE people AS SELECT {columns} FROM ({codes})")
    for text in NEW_FORMS:
        answer = engine.sql(text, level=1 - 1e-7, explain=True)
        assert answer.notes[0].startswith("answered by "), text
        assert "expected standard errors" in answer.plan
        truths = [float(row[-1]) for row in truth.execute(text).fetchall()]
        for cell, true in zip(answer.column("x"), truths, strict=True):
            assert cell.low - 1e-6 <= true <= cell.high + 1e-6, (text, cell, true)
            assert cell.high - cell.low < 20_000, text


def test_what_grids_leave_unknown_of_private_numbers_goes_past_them() -> None:
    """A sum of prices, which may be negative, and of tens: at least 9 in all, but not in each of its sums."""
    engine = both(methods=("HDG", "SC"), epsilon=1.0)
    text = "SELECT SUM(CASE WHEN age < 20 THEN price END + 10) FROM people"
    assert "answered by SC: expected errors are unknown with HDG" in engine.sql(f"EXPLAIN {text}").plan
    alone = both(methods=("HDG",), epsilon=1.0)
    assert alone.sql(text).value().stderr == math.inf
    assert math.isfinite(alone.sql("SELECT AVG(age), MEDIAN(age), STDDEV(age) FROM people").rows[0][2].stderr)


@pytest.mark.slow
@pytest.mark.parametrize(("methods", "epsilon"), [("MG SC", 12.0), ("MG HI", 12.0), ("MG HI", 200.0), ("MG HIO", 4.0)])
def test_private_numbers_from_a_part_of_the_people_cover(
    methods: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,000 runs each; a coverage is refused if it is below 93% at one error in 10,000."""
    answered_by_the_second(monkeypatch)
    hits = private_hits(2_000, RUNS, method=methods, epsilon=epsilon, at_once=250)
    assert {name: verdict for name, count in hits.items() if (verdict := refused_coverage(count, RUNS))} == {}


@pytest.mark.parametrize("methods", ["MG SC", "MG HI"])
def test_private_numbers_cover_in_a_few_runs(methods: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 runs: fewer than 14 hold once in 10^4 cases by chance, if 95% do."""
    answered_by_the_second(monkeypatch)
    names = ["mean inside", "median inside"]
    assert min(private_hits(300, 20, method=methods, epsilon=200.0, at_once=20, names=names).values()) >= 14


@pytest.mark.parametrize("method", ["HI", "SC"])
def test_the_choice_of_people_adds_the_squares_of_scores(method: str) -> None:
    """D of a median at epsilon 200: the variance of a sum of halves and minus halves of a random part of the people."""
    engine = both(methods=("MG", method), epsilon=200.0)
    half = PrivateFactor(scores=(CodeScore(0, "half", np.where(np.arange(64) < 32, 0.5, -0.5)),))
    strata = Strata(engine.table, public=[], keys=[], atoms=[], weights=[EVERYBODY])
    own: Any = engine._methods[1]
    (part,) = own.measure(strata, [(0, half)])
    joint = own.joint([(part, np.eye(1))])
    asked = max(size for level, size in engine.table.level_sizes().items() if level[0] == 1)
    assert joint.variance(np.ones(1)) == pytest.approx((6000 / asked - 1) * 6000 / 4, rel=0.05)


def test_quantiles_of_too_many_groups_are_refused() -> None:
    n = 3_000
    private = {"age": hb.Ordinal(90)}
    engine = QueryEngine(table_of(private, [np.arange(n) % 90], {"run": list(range(n))}, epsilon=4.0))
    with pytest.raises(QueryError, match="of a column of 90 values, of 3,000 groups, is too much work; at most 1,149"):
        engine.sql("SELECT run, MEDIAN(age) FROM people GROUP BY run")


def test_of_what_no_private_column_decides_everything_is_known() -> None:
    engine = both(methods=METHODS, epsilon=6.0)
    assert engine.sql("SELECT COUNT(*) FROM people WHERE os = 'ios'").value().value == 3000


def test_a_method_by_which_nobody_reports_knows_nothing() -> None:
    """Three people, and a method that one of 1,000 reports by."""
    engine = both(3, methods=("HIO", "SC"), shares=(0.001, 0.999), epsilon=8.0)
    answer = engine.sql("SELECT COUNT(*) FROM people WHERE age < 20")
    assert answer.notes[0].startswith("answered by SC")
    other = both(3, methods=("HIO", "SC"), shares=(0.999, 0.001), epsilon=8.0)
    cell = other.sql("SELECT COUNT(*) FROM people WHERE age < 20").value()
    assert cell.high > 2.9
    assert not math.isnan(cell.value)


@pytest.mark.parametrize("name", ["store.duckdb", "folder"])
def test_a_store_keeps_the_reports_of_every_method(tmp_path: Path, name: str) -> None:
    private = (PrivateColumn("age", hb.Ordinal(20)), PrivateColumn("town", hb.Categorical(["x", "y"])))
    public = (PublicColumn("price", "DOUBLE"),)
    schema = TableSchema(
        "people", private, public, METHODS, (0.3, 0.1, 0.2, 0.2, 0.2), epsilon=8.0, fanout=3, expected=900
    )
    assert TableSchema.from_spec(schema.spec()) == schema
    columns = {
        "age": [k % 20 for k in range(900)],
        "town": ["x", "y"] * 450,
        "price": [k % 4 / 2 for k in range(900)],
    }
    assert build_table(tmp_path / name, schema, [columns], rng=hb.Random(seed=1)) == 900
    engine: Any = hb.connect(tmp_path / name)
    sizes = engine.table.level_sizes()
    divided = sum(n for level, n in sizes.items() if METHODS[level[0]] in ("HIO", "MG", "HDG"))
    assert divided + sizes[1, 0, 1] + sizes[3, 0, 1] == 900  # by HI and SC everybody reports on every level
    answer = engine.sql("SELECT COUNT(*) AS n, SUM(price) AS s FROM people WHERE age < 10 AND town = 'x'", level=0.9999)
    assert answer.rows[0][0].low < 225 < answer.rows[0][0].high


@pytest.mark.parametrize(
    ("methods", "shares", "field"),
    [
        (("HIO", "HIO"), (), "method"),
        ((), (), "method"),
        (("HIO",), (0.5,), "shares"),
        (("HIO",), (0.5, 0.5), "shares"),
    ],
)
def test_methods_and_shares_that_do_not_fit_are_refused(
    methods: tuple[str, ...], shares: tuple[float, ...], field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        TableSchema("people", (PrivateColumn("age", hb.Ordinal(20)),), methods=methods, shares=shares)
    assert refused.value.field == field
