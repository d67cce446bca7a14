"""HDG: what is fitted agrees with itself, holds with exact shares, and errs less than HIO on boxes."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.data import census
from hubbub.planning.ranges import expected_stderr
from hubbub.protocols.ranges import split
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.grid_table import GridTable
from hubbub.protocols.ranges.grids import HDG, GridModel
from hubbub.protocols.ranges.hierarchy import HIO
from hubbub.protocols.ranges.split import SC, SplitTable
from hubbub.protocols.ranges.table import RangeTable
from hubbub.random.source import Random
from tests.protocols.range_errors import FEW, MANY, assert_as_stated, scored

N = 30_000
SPACE = (Dimension.ordinal(64),) * 4


def people(n: int = N) -> np.ndarray:
    """Records whose dimensions go together."""
    generator = np.random.default_rng(3)
    common = generator.normal(size=(n, 1))
    return np.clip(np.rint(32 + 8 * (common + generator.normal(size=(n, 4)))), 0, 63).astype(np.int64)


def boxes(dimensions: int, count: int, size: int = 64) -> list[list[tuple[int, int] | None]]:
    """Ranges of half of each of some dimensions."""
    generator = np.random.default_rng(dimensions)
    boxes: list[list[tuple[int, int] | None]] = []
    for _ in range(count):
        box: list[tuple[int, int] | None] = [None] * 4
        for column in generator.choice(4, dimensions, replace=False):
            low = int(generator.integers(0, size // 2 + 1))
            box[column] = (low, low + size // 2 - 1)
        boxes.append(box)
    return boxes


def truth(records: np.ndarray, box: Any) -> int:
    inside = [(records[:, c] >= ends[0]) & (records[:, c] <= ends[1]) for c, ends in enumerate(box) if ends is not None]
    return int(np.logical_and.reduce(inside).sum())


def mean_error(table: Any, records: np.ndarray, queries: Any) -> float:
    answers = [table.answer(RangeQuery(box)).value[0] for box in queries]
    return float(np.mean([abs(value - truth(records, box)) for value, box in zip(answers, queries, strict=True)]))


def exact(hdg: HDG, records: np.ndarray) -> dict[tuple[int, ...], np.ndarray]:
    """The true shares of all cells."""
    return {
        grid: np.bincount(hdg.cell_of(grid, records), minlength=int(np.prod(hdg.shape(grid)))) / len(records)
        for grid in hdg.grids
    }


def test_shares_of_overlapping_grids_agree_and_none_is_negative() -> None:
    hdg = HDG(1.0, SPACE, N)
    generator = np.random.default_rng(1)
    noisy = {grid: shares + generator.normal(0, 0.01, shares.shape) for grid, shares in exact(hdg, people()).items()}
    model = GridModel(hdg, noisy)
    for shares in model.shares.values():
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1.0, abs=1e-9)
    for column in range(4):
        starts, _ = model.edges(column)
        margin = np.add.reduceat(model.shares[column,], starts)
        for pair in combinations(range(4), 2):
            if column in pair:
                own = model.shares[pair].sum(axis=1 - pair.index(column))
                assert np.allclose(own, margin, atol=1e-4)  # rounds end with Norm-Sub, when shares move by 1e-6


def test_with_exact_shares_boxes_of_whole_cells_are_exact() -> None:
    hdg = HDG(3.0, SPACE, N)
    records = people()
    model = GridModel(hdg, exact(hdg, records))
    wide = hdg.plane_width(0)
    assert hdg.plane_cells(0) > 2
    line = (hdg.line_width(0), 5 * hdg.line_width(0) - 1)
    assert model.share((line, None, None, None)) == pytest.approx(truth(records, [line]) / N, abs=1e-6)
    box = ((0, wide - 1), (wide, 2 * wide - 1))
    assert model.share((*box, None, None)) == pytest.approx(truth(records, box) / N, abs=1e-5)
    assert model.share((None,) * 4) == 1.0


def assert_a_third_of_the_hierarchys(records: np.ndarray, number: int) -> None:
    """One run of each, of boxes in two and in four dimensions."""
    hdg, hio = HDG(1.0, SPACE, len(records)), HIO(1.0, SPACE)
    grids = GridTable(hdg, hdg.randomize(records, Random(seed=1)))
    tree = RangeTable(hio, hio.randomize(records, Random(seed=1)))
    for dimensions in (2, 4):
        queries = boxes(dimensions, number)
        assert 3 * mean_error(grids, records, queries) < mean_error(tree, records, queries)


def test_boxes_err_less_than_with_a_hierarchy() -> None:
    """HDG's mean error is a tenth of HIO's here; a third would be far outside chance."""
    assert_a_third_of_the_hierarchys(people(), 6)


@pytest.mark.slow
def test_boxes_of_the_census_err_less_than_with_a_hierarchy() -> None:
    """Six runs of HDG: 0.034 and 0.017 of the people; one of HIO: 0.42 and 3.2."""
    table = census(columns=["age", "weeks_worked", "industry_code", "occupation_code"])
    records = np.stack([table["age"] * 64 // 91, *(table[name] for name in list(table)[1:])], axis=1)
    assert_a_third_of_the_hierarchys(records, 20)


def test_the_stated_error_is_that_of_the_noise() -> None:
    """Where cells are whole, only noise is left: over 12 runs of 2 boxes errors are about what is stated."""
    records = people(6000)
    hdg = HDG(2.0, SPACE[:2], 6000)
    wide = hdg.plane_width(0)
    queries = [RangeQuery([(0, wide - 1), (0, wide - 1)]), RangeQuery([(wide, 2 * wide - 1), None])]
    off, stated = [], []
    for seed in range(12):
        table = GridTable(hdg, hdg.randomize(records[:, :2], Random(seed=seed)))
        for query in queries:
            answer = table.answer(query)
            off.append(answer.value[0] - truth(records[:, :2], query.box))
            stated.append(answer.variance[0])
    assert 0.5 < np.sqrt(np.mean(np.square(off)) / np.mean(stated)) < 1.6


def test_sums_of_a_measure() -> None:
    records = people()
    price = 1.0 + records[:, 1] / 10
    hdg = HDG(4.0, SPACE, N)
    table = GridTable(hdg, hdg.randomize(records, Random(seed=2)), {"price": price})
    inside = (records[:, 0] <= 31) & (records[:, 2] <= 31)
    answer = table.answer(RangeQuery([(0, 31), None, (0, 31), None], "price"))
    assert answer.value[0] == pytest.approx(price[inside].sum(), abs=0.05 * price.sum())
    assert answer.bias == "heuristic"


def test_a_constant_measure_is_a_multiple_of_the_count() -> None:
    hdg = HDG(2.0, SPACE[:3], 3000)
    table = GridTable(hdg, hdg.randomize(people(3000)[:, :3], Random(seed=2)), {"two": np.full(3000, 2)})
    count, double = (table.answer(RangeQuery([(3, 40)] * 3, name)) for name in (None, "two"))
    assert double.value[0] == pytest.approx(2 * count.value[0])
    assert double.stderr[0] == pytest.approx(2 * count.stderr[0])


def test_bad_input_is_refused() -> None:
    hdg = HDG(1.0, SPACE[:2], 900)
    reports = hdg.randomize(people(900)[:, :2], Random(seed=1))
    for measures, message in (({"fee": [1.0]}, "fee: got 1"), ({"fee": [-1.0] * 900}, "fee: got -1")):
        with pytest.raises(InvalidValue, match=message):
            GridTable(hdg, reports, measures)
    table = GridTable(hdg, reports)
    with pytest.raises(InvalidValue, match="measure: got 'fee'"):
        table.answer(RangeQuery([None, None], "fee"))
    with pytest.raises(InvalidValue, match="range"):
        table.answer(RangeQuery([(0, 64), None]))
    with pytest.raises(InvalidValue, match="reports on every grid"):
        GridTable(hdg, hdg.randomize([[1, 2]], Random(seed=1)))
    with pytest.raises(InvalidValue, match="n: got 0"):
        HDG(1.0, SPACE, 0)


# -- SC: products of scores are unbiased, with the variance they say; and beat HIO where dimensions are many -----------


FEWER = 600
PLANE = (Dimension.ordinal(9, fanout=3), Dimension.categorical(4), Dimension.categorical(2))
GENERATOR = np.random.default_rng(5)
RECORDS = np.stack(
    [np.minimum(GENERATOR.geometric(0.25, FEWER) - 1, 8), GENERATOR.integers(0, 4, FEWER), np.arange(FEWER) % 2], axis=1
)
PRICE = GENERATOR.exponential(3.0, FEWER)
BOX = RangeQuery([(1, 6), {0, 1, 3}, None], "price")
TRUTH = PRICE[(RECORDS[:, 0] >= 1) & (RECORDS[:, 0] <= 6) & (RECORDS[:, 1] != 2)].sum()


def errors_of_sc(runs: int) -> tuple[np.ndarray, float]:
    sc = SC(6.0, PLANE)
    reports = (sc.randomize(RECORDS, Random(seed=run)) for run in range(runs))
    return scored([SplitTable(sc, batch, {"price": PRICE}).answer(BOX) for batch in reports], TRUTH)


def test_the_error_is_what_the_variance_says_in_a_few_runs() -> None:
    assert_as_stated(errors_of_sc(FEW)[0])


@pytest.mark.slow
def test_the_error_is_what_the_variance_says() -> None:
    off, coverage = errors_of_sc(MANY)
    assert_as_stated(off)
    assert 0.93 < coverage < 0.97


def test_wrong_rates_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: supports of which a fifth is lost."""
    real_supported = split._supported
    monkeypatch.setattr(split, "_supported", lambda *given: 0.8 * real_supported(*given))
    off, _ = errors_of_sc(FEW)
    assert abs(off.mean()) > 4 / np.sqrt(FEW)


def test_answers_are_exact_where_nothing_is_flipped() -> None:
    sc = SC(1000.0, PLANE)
    table = SplitTable(sc, sc.randomize(RECORDS, Random(seed=1)), {"price": PRICE})
    assert table.answer(BOX).value[0] == pytest.approx(TRUTH, rel=1e-6)
    assert table.answer(RangeQuery([None] * 3)).value[0] == FEWER


def test_sc_beats_hio_where_one_of_eight_dimensions_is_asked_for() -> None:
    dimensions = (Dimension.ordinal(625),) * 4 + (Dimension.categorical(10),) * 4
    query = RangeQuery([(100, 420), *[None] * 7])
    assert SC(5.0, dimensions).expected_stderr(query, 10**6) < expected_stderr(HIO(5.0, dimensions), query, 10**6)


def test_the_forecast_is_the_error_of_people_spread_evenly() -> None:
    """The estimated variance has a small spread of its own: 15% is far outside it."""
    sc = SC(6.0, PLANE)
    even = np.stack([np.arange(9 * FEWER) % 9, np.arange(9 * FEWER) // 9 % 4, np.zeros(9 * FEWER, dtype=int)], axis=1)
    query = RangeQuery([(1, 6), {0, 1, 3}, None])
    answer = SplitTable(sc, sc.randomize(even, Random(seed=1))).answer(query)
    assert answer.stderr[0] == pytest.approx(sc.expected_stderr(query, 9 * FEWER), rel=0.15)


def test_bad_input_to_sc_is_refused() -> None:
    sc = SC(6.0, PLANE)
    reports = sc.randomize(RECORDS, Random(seed=1))
    with pytest.raises(InvalidValue, match="price: got 3; allowed: 600 numbers"):
        SplitTable(sc, reports, {"price": [1.0] * 3})
    with pytest.raises(InvalidValue, match="measure: got 'fee'"):
        SplitTable(sc, reports).answer(RangeQuery([None] * 3, "fee"))
    with pytest.raises(InvalidValue, match="box"):
        SplitTable(sc, reports).answer(RangeQuery([None]))
    with pytest.raises(InvalidValue, match="epsilon"):
        SC(1e-12, PLANE)
    assert sum(sc.oracle(level).event().spent for level in sc.levels) <= 6 * 10**12
