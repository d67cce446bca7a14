"""Arcs and the pointer that hands them out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Pointer, place_on_circle

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
def test_arcs_that_are_not_are_refused(start: int, length: int) -> None:
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
