"""The bounds of chapter 7: the numbers of the text, and no measured error above them, however people are spread."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.planning import range_bounds
from hubbub.planning.range_bounds import (
    BoundedMechanism,
    bound_name,
    bound_stderr,
    boxes_bound,
    hio_from_volume,
    most_intervals,
    report_bound,
    sample_bound,
    sc_up_to_columns,
)
from hubbub.planning.ranges import expected_stderr
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery, Selection
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG
from hubbub.protocols.ranges.split import SC
from hubbub.query.engine import QueryEngine
from tests.query.tables import table_of

B = 5


def text_bounds(epsilon: float, h: int, d: int, queried: int) -> dict[str, float]:
    """The right sides of (7.13) or (7.21), and (7.14) or (7.25), for columns of 5^h values, and of (7.10), by M_T^2."""
    power, shared = math.exp(epsilon), math.exp(epsilon / (h if d == 1 else (h + 1) ** d))
    hi = (2 * (B - 1) * h) ** queried * ((shared + 1) / (shared - 1)) ** 2
    sampled = (power**2 + 1) / (power - 1) ** 2
    hio = 4 * (B - 1) * h**2 * sampled if d == 1 else (2 * (B - 1) * (h + 1)) ** queried * (h + 1) ** d * sampled
    return {"HI": hi, "HIO": hio, "MG": (B**h - 2) ** queried * ((power + 1) / (power - 1)) ** 2}


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("h", [2, 3, 4])
def test_of_one_column_they_are_the_numbers_of_the_text(epsilon: float, h: int) -> None:
    """Of 25 values the narrower bound is that of single values: wider ranges are asked for."""
    column, box = (Dimension.ordinal(B**h),), [(1, [(1, B**h - 2)])]
    for kind in (HI, HIO, MG):
        mechanism = kind(epsilon, column)
        bound = boxes_bound(mechanism, box, report=report_bound(mechanism.level_epsilon))
        if h > 2 or kind is not MG:
            assert bound == pytest.approx(text_bounds(epsilon, h, 1, 1)[kind.__name__])
        assert bound <= boxes_bound(mechanism, box)
    assert [bound_name(kind(epsilon, column)) for kind in (HI, HIO, MG, SC)] == ["7.13", "7.14", "7.10", "7.31"]


@pytest.mark.parametrize("queried", [1, 2, 3])
def test_of_several_columns_hi_has_the_number_of_the_text_and_hio_twice_as_much(queried: int) -> None:
    """There is one level less than (h + 1)^d, on which nobody reports; (7.25) has h + 1 for h, and no factor of 2."""
    h, d, epsilon = 3, 3, 1.0
    columns, levels = (Dimension.ordinal(B**h),) * d, (h + 1) ** d
    box: list[tuple[int, Sequence[Selection]]] = [(1, [(1, B**h - 2)] * queried + [None] * (d - queried))]
    text = text_bounds(epsilon, h, d, queried)
    hi = boxes_bound(HI(epsilon, columns), box, report=report_bound(epsilon / levels))
    assert hi == pytest.approx(text["HI"])
    hio = boxes_bound(HIO(epsilon, columns), box, report=report_bound(epsilon))
    assert hio == pytest.approx(2 * text["HIO"] * (h / (h + 1)) ** queried * (levels - 1) / levels)
    assert [bound_name(kind(epsilon, columns)) for kind in (HI, HIO)] == ["7.21", "7.25"]


def test_the_printed_bound_of_hio_is_exceeded_and_ours_is_not() -> None:
    epsilon, column, n = 0.1, (Dimension.ordinal(625),), 1_000_000
    query = RangeQuery([(1, 623)])
    variance = expected_stderr(HIO(epsilon, column), query, n) ** 2 / n
    power = math.exp(epsilon)
    printed = (2 * (B - 1) * 5) * 5 * (power**2 + 1) / (power - 1) ** 2  # (7.25), d = d_q = 1
    assert variance > printed
    assert variance < bound_stderr(HIO(epsilon, column), query, n) ** 2 / n


def test_what_they_are_made_of() -> None:
    assert sample_bound(1.0, 3) == pytest.approx(6 * (math.e**2 + 1) / (math.e - 1) ** 2)
    assert report_bound(2000.0) == 1.0
    age, state = Dimension.ordinal(100), Dimension.categorical(8)
    assert most_intervals(age, None) == 1
    assert most_intervals(age, (1, 98)) == 24
    assert most_intervals(age, (7, 8)) == 2
    assert most_intervals(state, frozenset({3})) == 1
    assert most_intervals(state, frozenset(range(7))) == 2  # all but one
    assert boxes_bound(HIO(1.0, (age, state)), [(1, [None, None])]) == 0.0
    part, whole = (boxes_bound(MG(1.0, (age,)), [(1, [(0, 9)])], asked=asked) for asked in (0.25, 1.0))
    assert part / whole == pytest.approx(4 * (report_bound(1.0) + 1) / report_bound(1.0))


def test_the_turning_points_are_where_the_bounds_meet() -> None:
    """(7.32) to (7.34): on either side of them the order of the bounds is the other one."""
    for columns in ((Dimension.ordinal(3125),), (Dimension.ordinal(125),) * 2):
        volume = hio_from_volume(1.0, columns)
        assert 0 < volume < 1
        hio, marginal = HIO(1.0, columns), MG(1.0, columns)
        for factor in (0.9, 1.1):
            wide = [round(d.size * (factor * volume) ** (1 / len(columns))) for d in columns]
            ranges: list[Selection] = [(1, width) for width in wide]
            larger = boxes_bound(marginal, [(1, ranges)]) > boxes_bound(hio, [(1, ranges)])
            assert larger == (factor > 1)
    eight = (Dimension.ordinal(25),) * 4
    most = sc_up_to_columns(8.0, eight)
    assert 0 < most < 4
    for queried in range(1, 5):
        box: list[tuple[int, Sequence[Selection]]] = [(1, [(1, 23)] * queried + [None] * (4 - queried))]
        better = boxes_bound(SC(8.0, eight), box) < boxes_bound(HIO(8.0, eight), box)
        assert better == (queried <= most)


N, RUNS = 400, 60
SKEWED = {"all alike": lambda k: 0 * k + 7, "even": lambda k: k % 25, "at the ends": lambda k: 24 * (k % 2)}
ASKED = (
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 1 AND 23",
    "SELECT SUM(price) FROM people WHERE age BETWEEN 3 AND 17 AND town <> 'b'",
    "SELECT COUNT(*) FROM people WHERE age = 7 OR town = 'a'",
)


def largest_of_bound(method: str, epsilon: float, ages: Any, *, consistent: bool | None, runs: int) -> float:
    """The largest part of its bound, as EXPLAIN says it, that the measured mean squared error of a query is."""
    people = np.arange(N)
    codes, towns = ages(people), people % 3
    price = 1.0 + people % 5
    inside = (codes >= 1) & (codes <= 23), (codes >= 3) & (codes <= 17) & (towns != 1), (codes == 7) | (towns == 0)
    truths = inside[0].sum(), price[inside[1]].sum(), inside[2].sum()
    private = {"age": hb.Ordinal(25), "town": hb.Categorical(["a", "b", "c"])}
    table = table_of(private, [codes, towns], {"price": price.tolist()}, methods=(method,), epsilon=epsilon)
    explained = [QueryEngine(table, consistent=consistent).sql(f"EXPLAIN {text}").plan for text in ASKED]
    bounds = [float(plan.rsplit("at most ", 1)[1].split(" (")[0].replace(",", "")) for plan in explained]
    squares = np.zeros(len(ASKED))
    for run in range(runs):
        again = table.with_reports(table.schema.randomize(np.stack([codes, towns], axis=1), hb.Random(seed=run)))
        engine = QueryEngine(again, consistent=consistent)
        values = [engine.sql(text).value().value for text in ASKED]
        squares += (np.array(values) - truths) ** 2 / runs
    return float((squares / np.square(bounds)).max())


WAYS = [("HIO", None), ("HIO", False), ("HI", False), ("MG", None), ("SC", None)]


@pytest.mark.parametrize(("method", "consistent"), WAYS)
def test_no_measured_error_of_sql_is_above_its_bound(method: str, consistent: bool | None) -> None:
    assert largest_of_bound(method, 1.0, SKEWED["all alike"], consistent=consistent, runs=6) < 1


@pytest.mark.slow
@pytest.mark.parametrize("spread", SKEWED)
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize(("method", "consistent"), WAYS)
def test_bounds_hold_in_many_settings(method: str, consistent: bool | None, epsilon: float, spread: str) -> None:
    """Errors above the bound in the mean of 60 squares would be chance if the bound were met exactly; it is not."""
    assert largest_of_bound(method, epsilon, SKEWED[spread], consistent=consistent, runs=RUNS) < 1


def test_a_bound_that_is_too_small_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a person's report counts for a ninth."""
    whole = range_bounds.worst_report
    monkeypatch.setattr(range_bounds, "worst_report", lambda mechanism: whole(mechanism) / 9)
    assert largest_of_bound("MG", 1.0, SKEWED["even"], consistent=None, runs=20) > 1


def test_bounds_are_of_people_and_measures() -> None:
    column: tuple[Dimension, ...] = (Dimension.ordinal(64),)
    query, kinds = RangeQuery([(3, 40)]), (HI, HIO, MG, SC)
    for kind in kinds:
        mechanism: BoundedMechanism = kind(1.0, column)
        single = bound_stderr(mechanism, query, 1)
        assert bound_stderr(mechanism, query, 100, mean_square=4.0) == pytest.approx(20 * single)
