"""Asks and views travel as JSON and come back the same; arcs, and the pointer that hands them out."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub.core.domain import Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import PluginRefused
from hubbub.mechanisms import MECHANISMS
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Ask, Pointer, place_on_circle
from hubbub.protocols.views.basic import Binned, Clipped, Field, View, Whole
from hubbub.protocols.views.sets import SubsetCount, Subsets

SETS = ((1,), (1, 7), (3,))
VIEWS: list[View] = [Whole(), Field("age"), Clipped(-1.0, 2.5), Binned(first=0.5, factor=1.5, cells=9)]
VIEWS += [Subsets(SETS), SubsetCount(SETS)]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: type(view).__name__)
def test_views_round_trip(view: View) -> None:
    assert View.from_spec(json.loads(json.dumps(view.spec()))) == view


HOSTILE: list[Any] = [None, {}, {"kind": "no such"}, {"kind": "clipped", "low": 0.0}, {"kind": "whole", "x": 1}]
NO_SETS: list[Any] = [None, 3, [], [[]], [[1], None], [[2, 1]], [[1, 1]], [[-1]], [[1.5]], [[True]]]
HOSTILE += [{"kind": "subsets", "sets": sets} for sets in [*NO_SETS, [[1], [1]], [[2], [1]], [[1, 2], [1]]]]


@pytest.mark.parametrize("spec", HOSTILE, ids=str)
def test_hostile_views_are_refused(spec: Any) -> None:
    with pytest.raises(InvalidValue, match="sets" if spec and "sets" in spec else "view"):
        View.from_spec(spec)


def test_views_are_total() -> None:
    odd = [float("nan"), float("inf"), -float("inf"), 1e300, -1e300]
    assert Clipped(0.0, 1.0)(odd).tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
    cells = Binned(first=1.0, factor=2.0, cells=5)(odd)
    assert cells.tolist() == [0, 4, 0, 4, 0]
    assert Field("age")([{}, {"age": None}]) == [None, None]
    held = [(), (2**52,), (0,), tuple(range(2000))]
    assert Subsets(((0, 1), (3,)))(held).padded().tolist() == [[-1, -1], [-1, -1], [-1, -1], [0, 1]]
    assert SubsetCount(((0, 1), (3,)))(np.full((2, 3), -1)).tolist() == [0, 0]


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_asks_round_trip_for_every_mechanism(name: str) -> None:
    for mechanism in MECHANISMS[name].examples():
        ask = Ask(mechanism=mechanism, step=7, view=Clipped(0.0, 1.0), cohort=Arc(3, 9), standing=True)
        back = Ask.from_spec(json.loads(json.dumps(ask.spec())))
        assert back == ask
        assert back.ask_id == ask.ask_id
        assert back.event().step == 7
        assert back.event().spent == mechanism.event().spent


def test_asks_that_differ_have_different_ids() -> None:
    grr = hb.GRR(epsilon=1.0, domain=2)
    asks = [
        Ask(mechanism=grr, step=1),
        Ask(mechanism=grr, step=2),
        Ask(mechanism=grr, step=1, cohort=Arc(0, 5)),
        Ask(mechanism=grr, step=1, view=Clipped(0.0, 1.0)),
        Ask(mechanism=hb.GRR(epsilon=1.1, domain=2), step=1),
    ]
    assert len({ask.ask_id for ask in asks}) == len(asks)


def test_an_ask_that_would_spend_more_than_it_says_is_refused() -> None:
    spec = Ask(mechanism=hb.GRR(epsilon=1.0, domain=2), step=1).spec()
    mechanism: Any = spec["mechanism"]
    with pytest.raises(InvalidValue, match="epsilon"):
        Ask.from_spec({**spec, "mechanism": {**mechanism, "other": int(mechanism["other"]) // 2}})


@pytest.mark.parametrize("field", ["mechanism", "step", "view", "cohort", "standing"])
def test_hostile_asks_are_refused(field: str) -> None:
    spec = Ask(mechanism=hb.GRR(epsilon=1.0, domain=2), step=1).spec()
    wrong: tuple[Any, ...] = (None, -1, "x", [], {"start": 0, "length": 2**40}, {"kind": "whole", "more": 1})
    for bad in wrong:
        with pytest.raises(InvalidValue):
            Ask.from_spec({**spec, field: bad})
    with pytest.raises(InvalidValue):
        Ask.from_spec({key: value for key, value in spec.items() if key != field})


def test_binned_borders_are_where_cells_begin() -> None:
    view = Binned(first=1.0, factor=3.0, cells=4)
    assert view(view.borders).tolist() == [1, 2, 3]
    assert view(np.nextafter(view.borders, 0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["Whole", "Prefix"], ids=["loaded", "perhaps not loaded yet"])
def test_a_view_of_another_package_takes_no_name_of_ours(name: str) -> None:
    with pytest.raises(PluginRefused, match=rf"{name}: the view {name.lower()} is defined in hubbub\.protocols"):
        type(name, (View,), {"__module__": "their_package"})
    assert View.from_spec({"kind": "whole"}) == Whole()


# -- which candidate itemsets a set contains: lists and arrays alike -------------------------------------------------

CODES = st.sets(st.integers(0, 9), max_size=6)
CANDIDATES = st.sets(
    st.sets(st.integers(0, 9), min_size=1, max_size=3).map(lambda codes: tuple(sorted(codes))), min_size=1
)


@given(st.lists(CODES), CANDIDATES)
def test_candidate_sets_are_those_of_plain_sets(people_sets: list[set[int]], candidates: set[tuple[int, ...]]) -> None:
    sets = tuple(sorted(candidates))
    truth = [[number for number, items in enumerate(sets) if codes.issuperset(items)] for codes in people_sets]
    padded = Sets(Ordinal(10), most=6).encode(people_sets)
    for values in ([tuple(sorted(codes)) for codes in people_sets], padded):
        view_sets = Subsets(sets)(values)
        assert [view_sets[person].tolist() for person in range(len(people_sets))] == truth
        assert len(view_sets) == len(people_sets)
        assert SubsetCount(sets)(values).tolist() == [len(row) for row in truth]


def test_many_peoples_sets_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    people = Sets(Ordinal(10), most=6).encode([{number % 10, (number + 1) % 10} for number in range(50)])
    sets = ((1,), (1, 2), (5,))
    all_at_once, counts = Subsets(sets)(people).padded(), SubsetCount(sets)(people)
    monkeypatch.setattr("hubbub.protocols.views.sets.BLOCK_CELLS", 21)  # seven people at a time
    assert np.array_equal(Subsets(sets)(people).padded(), all_at_once)
    assert np.array_equal(SubsetCount(sets)(people), counts)
    assert len(Subsets(sets)([])) == len(SubsetCount(sets)([])) == 0


# -- arcs -----------------------------------------------------------------------------------------------------------

places = st.integers(0, CIRCLE - 1)


@given(places, st.integers(0, CIRCLE), st.lists(places, min_size=1, max_size=20))
def test_an_arc_holds_what_its_pieces_hold(start: int, length: int, given_places: list[int]) -> None:
    arc = Arc(start, length)
    spots = np.array([*given_places, start, (start + length) % CIRCLE, (start + length - 1) % CIRCLE], dtype=np.uint32)
    by_pieces = [any(low <= int(spot) < high for low, high in arc.pieces()) for spot in spots]
    assert arc.holds(spots).tolist() == by_pieces
    assert sum(high - low for low, high in arc.pieces()) == length


@given(
    places,
    st.integers(1, 6),
    st.lists(st.lists(st.integers(0, CIRCLE), max_size=3), min_size=1, max_size=30),
    st.lists(places, min_size=1, max_size=8),
)
def test_nobody_is_asked_twice_while_a_window_takes_at_most_one_turn(
    start: int, w: int, lengths_by_step: list[list[int]], devices: list[int]
) -> None:
    pointer, taken, spots = Pointer(start), [], np.array(devices)
    times_asked = np.zeros((len(lengths_by_step), len(devices)), dtype=int)
    for step, lengths in enumerate(lengths_by_step):
        taken.append(0)
        for length in lengths:
            allowed = min(length, CIRCLE - sum(taken[-w:]))
            taken[-1] += allowed
            times_asked[step] += pointer.take(allowed).holds(spots)
    for last in range(len(lengths_by_step)):
        assert times_asked[max(0, last - w + 1) : last + 1].sum(axis=0).max() <= 1


def test_one_place_more_than_a_turn_does_ask_someone_twice() -> None:
    pointer = Pointer(7)
    spots = np.array([7])
    hits = sum(int(pointer.take(length).holds(spots)[0]) for length in (CIRCLE // 2, CIRCLE // 2, 1))
    assert hits == 2


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (CIRCLE, 1), (0, -1), (0, CIRCLE + 1), (0.5, 1), (True, 1)])
def test_arcs_that_are_not_are_refused(start: Any, length: int) -> None:
    with pytest.raises(InvalidValue, match="cohort"):
        Arc(start, length)


def test_places_are_uniform_and_differ_between_collections() -> None:
    keys = [index.to_bytes(32, "little") for index in range(4096)]
    spots = np.array([place_on_circle(key, "weather") for key in keys])
    counts = np.bincount(spots >> 28, minlength=16)
    # 16 cells of 256 expected: chi-square with 15 degrees of freedom passes 45 with probability below 1e-4; fixed keys.
    assert ((counts - 256) ** 2 / 256).sum() < 45
    others = np.array([place_on_circle(key, "traffic") for key in keys])
    assert abs(np.corrcoef(spots, others)[0, 1]) < 0.08
    assert EVERYONE.holds(spots).all()
    with pytest.raises(InvalidValue, match="device_key"):
        place_on_circle(b"short", "weather")
