"""Which candidate itemsets a set contains: lists and arrays alike, against plain Python sets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.protocols.views.basic import View
from hubbub.protocols.views.sets import SubsetCount, Subsets

CODES = st.sets(st.integers(0, 9), max_size=6)
CANDIDATES = st.sets(
    st.sets(st.integers(0, 9), min_size=1, max_size=3).map(lambda codes: tuple(sorted(codes))), min_size=1
)


@given(st.lists(CODES), CANDIDATES)
def test_both_views_agree_with_plain_sets(people_sets: list[set[int]], candidates: set[tuple[int, ...]]) -> None:
    sets = tuple(sorted(candidates))
    truth = [[number for number, items in enumerate(sets) if codes.issuperset(items)] for codes in people_sets]
    padded = Sets(Ordinal(10), most=6).encode(people_sets)
    for values in ([tuple(sorted(codes)) for codes in people_sets], padded):
        view_sets = Subsets(sets)(values)
        assert [view_sets[person].tolist() for person in range(len(people_sets))] == truth
        assert len(view_sets) == len(people_sets)
        assert SubsetCount(sets)(values).tolist() == [len(row) for row in truth]


def test_many_people_are_looked_at_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    people = Sets(Ordinal(10), most=6).encode([{number % 10, (number + 1) % 10} for number in range(50)])
    sets = ((1,), (1, 2), (5,))
    all_at_once, counts = Subsets(sets)(people).padded(), SubsetCount(sets)(people)
    monkeypatch.setattr("hubbub.protocols.views.sets._CELLS", 21)  # seven people at a time
    assert np.array_equal(Subsets(sets)(people).padded(), all_at_once)
    assert np.array_equal(SubsetCount(sets)(people), counts)
    assert len(Subsets(sets)([])) == len(SubsetCount(sets)([])) == 0


def test_they_are_total() -> None:
    sets = ((0, 1), (3,))
    odd = [(), (2**52,), (0,), tuple(range(2000))]
    assert Subsets(sets)(odd).padded().tolist() == [[-1, -1], [-1, -1], [-1, -1], [0, 1]]
    assert SubsetCount(sets)(np.full((2, 3), -1)).tolist() == [0, 0]


@pytest.mark.parametrize("kind", [Subsets, SubsetCount])
def test_they_travel_as_json(kind: type[Subsets | SubsetCount]) -> None:
    view = kind(((1,), (1, 7), (3,)))
    assert View.from_spec(json.loads(json.dumps(view.spec()))) == view
    assert view != (SubsetCount if kind is Subsets else Subsets)(view.sets)


@pytest.mark.parametrize(
    "sets",
    [
        None,
        3,
        [],
        [[]],
        [[1], None],
        [[2, 1]],
        [[1, 1]],
        [[-1]],
        [[1.5]],
        [[True]],
        [[1], [1]],
        [[2], [1]],
        [[1, 2], [1]],
    ],
)
def test_hostile_candidates_are_refused(sets: object) -> None:
    with pytest.raises(InvalidValue, match="sets"):
        View.from_spec({"kind": "subsets", "sets": sets})
