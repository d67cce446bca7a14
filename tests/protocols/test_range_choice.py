"""The choice of a mechanism: the smallest expected error of the queries that were declared."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.planning.ranges import choose_ranges
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


def test_queries_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidValue, match="queries"):
        choose_ranges(epsilon=1.0, dimensions=[Dimension.ordinal(8)], queries=[], n=10)
    with pytest.raises(InvalidValue, match="range: got \\(3, 9\\)"):
        choose_ranges(epsilon=1.0, dimensions=[Dimension.ordinal(8)], queries=[RangeQuery([(3, 9)])], n=10)
