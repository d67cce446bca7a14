"""Sums of numbers that are known in cells: of columns in cells, and of any column by grids. Intervals hold wherever in
their cells people are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.query import pieces
from hubbub.query.engine import QueryEngine
from hubbub.query.grid_method import GridBound
from hubbub.query.schema import METHODS
from tests.query.tables import table_of
from tests.shared.coverage import refused_coverage

N, RUNS = 1000, 1000
CELLS = hb.Numeric(0, 10, cells=5)
Crowd = dict[str, np.ndarray[Any, Any]]
CROWDS: dict[str, Callable[[np.random.Generator], Any]] = {
    "even": lambda generator: generator.uniform(0, 10, N),
    "low ends": lambda generator: generator.integers(0, 5, N) * 2.0,
    "high ends": lambda generator: np.minimum(generator.integers(1, 6, N) * 2.0, 10) - 1e-6,
    "skewed": lambda generator: np.minimum(generator.exponential(1.5, N), 10),
}


def crowd(kind: str) -> Crowd:
    generator = np.random.default_rng(7)
    incomes, ages = CROWDS[kind](generator), generator.binomial(23, 0.4, N)
    return {"income": incomes, "age": ages, "price": np.round(generator.exponential(3.0, N) - 1, 1)}


def averages(people: Crowd) -> dict[str, tuple[str, float]]:
    """Queries of a group, with the true answers."""
    income, age, price = people["income"], people["age"], people["price"]
    young = age < 9
    return {
        "mean": ("AVG(income)", income.mean()),
        "mean inside": ("AVG(income) FILTER (WHERE age < 9)", income[young].mean()),
        "sum": ("SUM(10 - 2 * income) FILTER (WHERE age < 9)", (10 - 2 * income)[young].sum()),
        "product": ("SUM(income * age)", (income * age).sum()),
        "public": ("SUM(income * price)", (income * price).sum()),
        "square": ("SUM(income * income)", (income**2).sum()),
        "spread": ("STDDEV(income)", income.std(ddof=1)),
        "ratio": ("SUM(income) / SUM(age)", income.sum() / age.sum()),
        "median": ("MEDIAN(-income)", -np.sort(income)[N // 2]),
        "age": ("AVG(age) FILTER (WHERE income < 4)", age[income < 4].mean()),
        "age spread": ("STDDEV_POP(age)", age.std()),
    }


def hits(kind: str, method: str, runs: int, *, at_once: int = 100, epsilon: float = 6.0) -> dict[str, int]:
    """How often intervals held the truth; each of many groups is a run."""
    people = crowd(kind)
    asked = averages(people)
    codes = [np.tile(CELLS.encode(people["income"]), at_once), np.tile(people["age"], at_once)]
    private = {"income": CELLS, "age": hb.Ordinal(24)}
    public = {"price": np.tile(people["price"], at_once).tolist(), "run": np.repeat(np.arange(at_once), N).tolist()}
    table = table_of(private, codes, public, methods=(method,), epsilon=epsilon)
    held = dict.fromkeys(asked, 0)
    for run in range(runs // at_once):
        again = table.schema.randomize(np.stack(codes, axis=1), hb.Random(seed=run))
        engine = QueryEngine(table.with_reports(again))
        for name, (text, truth) in asked.items():
            answer = engine.sql(f"SELECT run, {text} AS x FROM people GROUP BY run")
            held[name] += sum(cell.low <= truth <= cell.high for cell in answer.column("x"))
    return held


@pytest.mark.slow
@pytest.mark.parametrize("kind", CROWDS)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_numbers_in_cells_cover(method: str, kind: str) -> None:
    """1,000 runs each; a coverage is refused if it is below 93% at one error in 10,000."""
    held = hits(kind, method, RUNS)
    assert {name: verdict for name, count in held.items() if (verdict := refused_coverage(count, RUNS))} == {}


@pytest.mark.parametrize("method", METHODS)
def test_they_cover_in_a_few_runs_at_the_ends_of_cells(method: str) -> None:
    """10 runs: fewer than 6 hold once in 15,000 cases by chance, if 95% do."""
    assert min(hits("low ends", method, 10, at_once=10).values()) >= 6


def test_that_people_are_taken_to_be_at_the_middle_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: nobody is away from the middle of their cell."""
    monkeypatch.setattr(pieces, "_away", lambda term: [])
    held = hits("low ends", "MG", 10, at_once=10, epsilon=40.0)
    assert max(held[name] for name in ("mean", "mean inside", "sum", "product", "square")) < 6


def within_grids(seed: int) -> bool:
    """Whether the interval of a mean holds it, if 20,000 people have the highest ages of a grid's cells."""
    ages = np.random.default_rng(seed).integers(0, 18, 20_000) * 5 + 4
    codes = [ages, np.zeros_like(ages)]
    private = {"age": hb.Ordinal(90), "town": hb.Categorical(["a", "b"])}
    table = table_of(private, codes, {"run": [1] * ages.size}, seed=seed, methods=("HDG",), epsilon=2.0)
    cell = QueryEngine(table).sql("SELECT AVG(age) FROM people").value()
    return bool(cell.low <= ages.mean() <= cell.high)


def test_a_mean_by_grids_holds_people_at_the_ends_of_cells() -> None:
    """10 runs: fewer than 6 hold once in 15,000 cases by chance, if 95% do."""
    assert sum(map(within_grids, range(10))) >= 6


def test_that_the_least_in_a_cell_is_taken_for_the_most_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: both bounds are the lower one."""
    whole = GridBound.__init__
    monkeypatch.setattr(GridBound, "__init__", lambda self, *ways, upper: whole(self, *ways, upper=False))
    assert sum(map(within_grids, range(10))) < 6


def test_without_noise_the_interval_is_that_of_the_cells() -> None:
    people = crowd("low ends")
    codes = [CELLS.encode(people["income"]), people["age"]]
    private = {"income": CELLS, "age": hb.Ordinal(24)}
    engine = QueryEngine(table_of(private, codes, {"price": people["price"].tolist()}, methods=("MG",), epsilon=1000.0))
    answer = engine.sql("SELECT AVG(income) AS a, SUM(income * price) AS s, COUNT(*) AS n FROM people")
    mean, total, _ = answer.rows[0]
    true = people["income"].mean()
    assert (mean.low, mean.value, mean.high) == pytest.approx((true, true + 1, true + 2), abs=0.05)
    assert (total.high - total.low) / 2 == pytest.approx(np.abs(people["price"]).sum(), rel=0.1)  # and one report more
    assert (answer.bias, answer.notes[0][:10]) == ("heuristic", "heuristic:")
    # a quantile of a multiple has the cells of the multiple
    cell = engine.sql("SELECT MEDIAN(-2 * income) FROM people WHERE income < 4").value()
    assert (cell.low, cell.value, cell.high) == (-12.0, -6.0, 0.0)
