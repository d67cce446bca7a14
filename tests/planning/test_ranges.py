"""The choice of a mechanism: the smallest expected error of the queries that were declared."""

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.planning.ranges import choose_ranges, divide_people
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.protocols.ranges.hierarchy import HIO, MG
from hubbub.protocols.ranges.table import RangeTable
from hubbub.random.source import Random


def test_single_values_are_asked_of_the_marginal_and_wide_ranges_of_the_hierarchy() -> None:
    line = [Dimension.ordinal(256)]
    point, wide = ([RangeQuery([ends])] for ends in ((7, 7), (20, 200)))
    best = [choose_ranges(epsilon=1.0, dimensions=line, queries=q, n=100_000, unbiased=True)[0] for q in (point, wide)]
    assert [way.name for way in best] == ["MG", "HIO, consistent"]


def test_one_of_eight_dimensions_is_asked_of_sc() -> None:
    eight = [Dimension.ordinal(625)] * 4 + [Dimension.categorical(10)] * 4
    query = RangeQuery([(100, 420), *[None] * 7])
    ways = choose_ranges(epsilon=5.0, dimensions=eight, queries=[query], n=1_000_000, unbiased=True)
    assert [way.name for way in ways] == ["SC", "HIO"]
    assert all(way.unbiased for way in ways)


def test_boxes_are_asked_of_grids_unless_answers_must_be_unbiased() -> None:
    four = [Dimension.ordinal(64)] * 4
    queries = [RangeQuery([(0, 31)] * 4), RangeQuery([(5, 36), None, (0, 31), None])]
    best = choose_ranges(epsilon=1.0, dimensions=four, queries=queries, n=300_000)[0]
    assert (best.name, best.unbiased) == ("HDG", False)
    assert choose_ranges(epsilon=1.0, dimensions=four, queries=queries, n=300_000, unbiased=True)[0].name != "HDG"


@pytest.mark.parametrize(("kind", "consistent"), [(HIO, False), (HIO, True), (MG, False)])
def test_what_is_expected_is_what_is_stated_of_people_spread_evenly(kind: type[HIO | MG], consistent: bool) -> None:
    """Stated errors hardly differ between runs; 10% is far outside."""
    plane = (Dimension.ordinal(20, fanout=4), Dimension.categorical(5))
    records = np.stack([np.arange(20_000) % 20, np.arange(20_000) // 20 % 5], axis=1)
    query = RangeQuery([(3, 12), {1, 2}])
    ways = choose_ranges(epsilon=2.0, dimensions=plane, queries=[query], n=20_000, unbiased=True)
    (way,) = (way for way in ways if isinstance(way.mechanism, kind) and way.consistent == consistent)
    assert isinstance(way.mechanism, kind)
    table = RangeTable(way.mechanism, way.mechanism.randomize(records, Random(seed=1)))
    assert table.answer(query, consistent=consistent).stderr[0] == pytest.approx(way.stderr, rel=0.1)


def points_and_a_range() -> tuple[tuple[Dimension, ...], list[RangeQuery]]:
    columns = (Dimension.ordinal(25), Dimension.ordinal(25), Dimension.ordinal(25))
    return columns, [*(RangeQuery([(k, k)] * 3) for k in (3, 8, 13)), RangeQuery([(5, 17), None, None])]


def test_people_are_divided_by_the_roots_of_the_variances() -> None:
    """No other division of HIO and MG has a smaller expected error."""
    columns, queries = points_and_a_range()
    n, parts = 1_000_000, [query.share(columns) for query in queries]
    ways = choose_ranges(epsilon=1.0, dimensions=columns, queries=queries, n=n, unbiased=True)
    division = divide_people(ways, parts, n)
    assert division is not None
    assert [choice.name for choice in division.choices] == ["HIO, consistent", "MG"]
    assert division.stderr < ways[0].stderr
    counted = [n * part * (1 - part) for part in parts]
    for share in np.linspace(0.05, 0.95, 37):
        either = [
            min(
                (choice.errors[place] ** 2 + more) / part - more
                for choice, part in zip(division.choices, (share, 1 - share), strict=True)
            )
            for place, more in enumerate(counted)
        ]
        assert division.stderr**2 <= np.mean(either) * (1 + 1e-9)
    same = [way for way in ways if isinstance(way.mechanism, HIO)]
    assert divide_people(same, parts, n) is None


@pytest.mark.slow
def test_a_division_errs_as_expected_and_less_than_one_method() -> None:
    """60 runs of 20,000 people: the mean of 240 squares, within a fifth of what is expected."""
    columns, queries = points_and_a_range()
    n, rng = 20_000, np.random.default_rng(1)
    records = np.stack([rng.integers(0, 25, n) for _ in columns], axis=1)
    truths = [np.all([(low <= c) & (c <= high) for c, (low, high) in zip(records.T, box, strict=True)], axis=0).sum()
              for box in ([(s if s is not None else (0, 24)) for s in query.box] for query in queries)]  # fmt: skip
    ways = choose_ranges(epsilon=1.0, dimensions=columns, queries=queries, n=n, unbiased=True)
    division = divide_people(ways, [query.share(columns) for query in queries], n)
    assert division is not None
    mechanisms = [choice.mechanism for choice in division.choices]
    squares = 0.0
    for run in range(60):
        group = Random(seed=run).below(1 << 32, n) >= division.shares[0] * (1 << 32)
        tables = []
        for place, mechanism in enumerate(mechanisms):
            assert isinstance(mechanism, HIO | MG)
            own = records[group == bool(place)]
            tables.append(RangeTable(mechanism, mechanism.randomize(own, Random(seed=f"{run} {place}"))))
        for query, truth, place in zip(queries, truths, division.answered, strict=True):
            estimate = tables[place].answer(query, consistent=division.choices[place].consistent)
            squares += (estimate.value[0] * n / tables[place].n - truth) ** 2 / 60 / len(queries)
    assert squares == pytest.approx(division.stderr**2, rel=0.2)
    assert squares < ways[0].stderr ** 2


def test_queries_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidValue, match="queries"):
        choose_ranges(epsilon=1.0, dimensions=[Dimension.ordinal(8)], queries=[], n=10)
    with pytest.raises(InvalidValue, match="range: got \\(3, 9\\)"):
        choose_ranges(epsilon=1.0, dimensions=[Dimension.ordinal(8)], queries=[RangeQuery([(3, 9)])], n=10)
