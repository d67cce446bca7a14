"""The device's half of SaO2: what it feeds to its mechanism, and that all it says spends epsilon once."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.sao2 import Changes, Sao2, members
from tests.shared.streams_of_signs import said


def told(view: Changes, histories: np.ndarray) -> np.ndarray:
    """The residues, as rows of nodes by entries."""
    return view.residues(histories[:, view.span - 1 :: view.span]).reshape(len(histories), view.nodes, view.dimension)


# -- what a level sees ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("span", "dimension"), [(1, 1), (1, 3), (2, 3), (3, 2), (8, 2)])
def test_residues_add_up_to_the_value_where_nothing_is_clipped(span: int, dimension: int) -> None:
    histories = np.random.default_rng(1).integers(0, 2, (50, 8, dimension))
    view = Changes(span, 8, dimension, changes=100)
    assert np.array_equal(told(view, histories).cumsum(axis=1), histories[:, span - 1 :: span])


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("span", [1, 2, 4])
@pytest.mark.parametrize("changes", [1, 2, 3, 8])
def test_no_history_tells_of_more_changes_than_it_may(one: bool, span: int, changes: int) -> None:
    view = Changes(span, 16, 4, changes, one)
    pick = np.random.default_rng(2)
    histories = pick.integers(-1, 5, (300, 16)) if one else pick.integers(0, 2, (300, 16, 4))
    residues = told(view, histories)
    assert np.count_nonzero(residues, axis=(1, 2)).max() <= view.sparsity <= changes
    assert set(np.unique(residues)) <= {-1, 0, 1}
    values_reported = residues.cumsum(axis=1)
    assert set(np.unique(values_reported)) <= {0, 1}
    if one:
        assert values_reported.sum(axis=2).max() == 1
        assert (np.diff(values_reported.sum(axis=2), axis=1) >= 0).all(), "a category, once held, is held"
    if changes >= 3:  # the bound is reached: it is not wasteful
        assert np.count_nonzero(residues, axis=(1, 2)).max() == view.sparsity


def test_every_history_of_a_small_stream_stays_within_the_bound() -> None:
    histories = np.array(list(product((0, 1), repeat=6))).reshape(-1, 6, 1)
    for changes in range(1, 7):
        for span in (1, 2, 3):
            view = Changes(span, 6, 1, changes)
            used = np.count_nonzero(told(view, histories), axis=(1, 2))
            assert used.max() == view.sparsity == min(changes, 6 // span)


def test_a_value_is_held_once_its_changes_are_used_up() -> None:
    on_and_off = np.array([[1, 0, 1, 0, 1, 0]])[:, :, None]
    assert told(Changes(1, 6, 1, 3), on_and_off)[0, :, 0].tolist() == [1, -1, 1, 0, 0, 0]
    # At a higher level the same device has changes left: only those that its level sees count.
    assert told(Changes(3, 6, 1, 1), on_and_off)[0, :, 0].tolist() == [1, 0]


def held(view: Changes, history: list[list[int]]) -> np.ndarray:
    """The category that one device has told of at each step; -1: none yet."""
    bits = told(view, np.array(history))[0].cumsum(axis=0)
    assert set(bits.sum(axis=1).tolist()) <= {0, 1}
    return np.where(bits.any(axis=1), bits.argmax(axis=1), -1)


def test_a_category_changes_as_a_whole_or_not_at_all() -> None:
    view = Changes(1, 4, 3, changes=4, one=True)  # the first costs 1, a move 2: the second move does not fit
    assert held(view, [[0, 1, 2, 2]]).tolist() == [0, 1, 1, 1]
    assert view.sparsity == 3


def test_no_news_is_not_a_change() -> None:
    view = Changes(1, 4, 3, changes=9, one=True)
    assert held(view, [[-1, 2, -1, 7]]).tolist() == [-1, 2, 2, 2]


def test_sets_are_vectors() -> None:
    steps = [members([items], 3) for items in ([0, 2], [2], [])]
    view = Changes(1, 3, 3, changes=9)
    assert told(view, np.stack(steps, axis=1))[0].tolist() == [[1, 0, 1], [-1, 0, 0], [0, 0, -1]]


# -- what a device feeds to its mechanism ---------------------------------------------------------------------


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_device_tells_step_by_step_what_its_view_says(one: bool, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[np.ndarray] = []
    real = SignedSets.next_signs

    def spy(self: SignedSets, values: np.ndarray, counters: np.ndarray, rng: hb.Random) -> object:
        fed.append(values)
        return real(self, values, counters, rng)

    monkeypatch.setattr(SignedSets, "next_signs", spy)
    stream = ChangeStream(epsilon=1.0, dimension=3, steps=9, changes=4, one=one)
    pick, rng = np.random.default_rng(3), hb.Random(seed=1)
    histories = pick.integers(-1, 4, (40, 9)) if one else pick.integers(0, 2, (40, 9, 3))
    states = stream.enroll_at(np.full(40, level, dtype=np.uint8), rng)
    for step in range(9):
        paid = stream.price(states, step, histories[:, step]) > 0
        assert paid.all() == paid.any() == (step == 0)
        states, _, speaks = stream.step(states, step, histories[:, step], rng, paid)
        assert speaks.all() == speaks.any() == ((step + 1) % stream.views[level].span == 0)
    assert np.array_equal(np.stack(fed, axis=1), told(stream.views[level], histories))


def test_missed_nodes_are_passed_and_their_changes_told_with_the_next() -> None:
    stream = ChangeStream(epsilon=1.0, dimension=2, steps=12, changes=3)
    view, pick, rng = stream.views[1], np.random.default_rng(5), hb.Random(seed=2)
    for _ in range(60):
        states, changes = stream.enroll_at(np.array([1], dtype=np.uint8), rng), 0
        for step in sorted(pick.choice(np.arange(12), size=pick.integers(0, 13), replace=False).tolist()):
            before = states
            states, _, speaks = stream.step(states, step, pick.integers(0, 2, (1, 2)), rng, np.array([True]))
            if speaks[0]:
                changes += int(np.count_nonzero(states["held"] != before["held"]))
                assert states["node"][0] == (step + 1) // 2
                # A missed node took its entries' turns all the same.
                to_come = int(states["counters"][0, 3:].sum())
                assert to_come == view.dimension * (view.nodes - (step + 1) // 2) + view.sparsity
        assert changes == int(states["used"][0]) <= view.changes


def test_a_device_that_joins_late_tells_what_it_holds_then() -> None:
    stream, rng, n = ChangeStream(epsilon=6.0, dimension=1, steps=8, changes=2), hb.Random(seed=3), 4000
    states = stream.enroll_at(np.zeros(n, dtype=np.uint8), rng)
    states, reports, _ = stream.step(states, 5, np.ones((n, 1)), rng, np.ones(n, dtype=bool))
    estimate = stream.estimate(stream.accumulate(reports))
    assert abs(estimate.value[0] - 1) < 5 * estimate.stderr[0]  # fails once in two million seeds
    assert states["used"].tolist() == [1] * n


@pytest.mark.parametrize("values", [[2], [-1], [float("nan")], [0.5], ["on"], [[0, 1]], [1, 1], [None]])
def test_values_that_are_no_bits_are_refused_and_change_nothing(values: Any) -> None:
    stream, rng = ChangeStream(epsilon=1.0, dimension=1, steps=4, changes=1), hb.Random(seed=1)
    states = stream.enroll_at(np.zeros(1, dtype=np.uint8), rng)
    with pytest.raises(InvalidValue):
        stream.step(states, 0, values, rng, np.array([True]))
    assert stream.step(states, 0, [0], rng, np.array([True]))[0]["node"].tolist() == [1]


# -- the promise ----------------------------------------------------------------------------------------------


def worst_ratio(exsub: ExSub, rows: np.ndarray, *, bounded: bool = True) -> Fraction:
    different = np.unique(rows.reshape(len(rows), -1), axis=0)
    laws = [said(exsub, row.tolist(), bounded=bounded) for row in different]
    assert all(sum(law.values()) == 1 for law in laws)
    never = Fraction(1, 10**30)
    chances = [[law.get(word, never) for law in laws] for word in set().union(*laws)]
    return max(max(chance) / min(chance) for chance in chances)


@pytest.mark.parametrize(("span", "changes"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_all_that_a_device_says_over_the_whole_stream_spends_epsilon_once(span: int, changes: int) -> None:
    """Exactly, over every stream of four steps, those with too many changes included."""
    view = Changes(span, 4, 1, changes)
    exsub = ExSub(epsilon=1.0, dimension=view.entries, sparsity=view.sparsity, m=2)
    histories = np.array(list(product((0, 1), repeat=4)))[:, :, None]
    worst = worst_ratio(exsub, told(view, histories))
    assert worst <= exsub.ratio()
    assert worst == exsub.ratio() or view.nodes == 1  # and no less, where a change can be told the other way round


def test_a_device_without_a_bound_would_break_the_promise() -> None:
    """The planted bug: neither the view nor the mechanism stops at the allowed number of changes."""
    exsub = ExSub(epsilon=1.0, dimension=4, sparsity=1, m=2)
    histories = np.array(list(product((0, 1), repeat=4)))[:, :, None]
    assert worst_ratio(exsub, told(Changes(1, 4, 1, changes=1), histories)) == exsub.ratio()
    assert worst_ratio(exsub, told(Changes(1, 4, 1, changes=4), histories)) == exsub.ratio()  # its own bound
    assert worst_ratio(exsub, told(Changes(1, 4, 1, changes=4), histories), bounded=False) > 2 * exsub.ratio()


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[0.5], [[1]], ["a"], 3])
def test_codes_that_are_no_integers_are_refused(values: Any) -> None:
    with pytest.raises(InvalidValue):
        Changes(1, 4, 3, 3, one=True).bits(values)


BAD: list[tuple[str, Any]] = [(field, 0) for field in ("dimension", "steps", "changes", "epsilon")]
BAD += [("changes", 2.5), ("fanout", 1), ("epsilon", math.nan), ("mechanism", "GRR"), ("mechanism", "Nothing")]


@pytest.mark.parametrize(("field", "value"), [*BAD, ("queries", "median"), ("choice", "best"), ("one", 1)])
def test_plans_that_cannot_be_are_refused(field: str, value: Any) -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "dimension": 2, "steps": 8, "changes": 2}
    with pytest.raises(InvalidValue) as refused:
        Sao2(**given | {field: value})
    assert refused.value.field == field


def test_as_many_entries_as_a_sketch_can_hold_is_too_many_by_one() -> None:
    Changes(1, 1 << 12, 1 << 12, 1)
    with pytest.raises(InvalidValue, match="steps"):
        Changes(1, (1 << 12) + 1, 1 << 12, 1)
    with pytest.raises(InvalidValue, match="steps"):
        Sao2(epsilon=1.0, dimension=1 << 13, steps=1 << 13, changes=2)
