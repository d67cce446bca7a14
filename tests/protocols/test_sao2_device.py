"""The device's half of SaO2: what it feeds to its mechanism, and that all it says spends epsilon once."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.event import units_of
from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.mechanisms.ternary.online import OnlineExSub
from hubbub.mechanisms.ternary.selection import advance, odds
from hubbub.privacy.ledger import Budget, BudgetExceeded, Ledger, StepClock
from hubbub.protocols.ask import Ask
from hubbub.protocols.sao2 import Changes, Following, OnlineDevice, Sao2, Split, members


def device_of(view: Changes, epsilon: float = 1.0) -> OnlineDevice:
    return OnlineDevice(view, ExSub(epsilon=epsilon, dimension=view.entries, sparsity=view.sparsity))


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
    held = residues.cumsum(axis=1)
    assert set(np.unique(held)) <= {0, 1}
    if one:
        assert held.sum(axis=2).max() == 1
        assert (np.diff(held.sum(axis=2), axis=1) >= 0).all(), "a category, once held, is held"
    if changes >= 3:  # the bound is reached: it is not wasteful
        assert np.count_nonzero(residues, axis=(1, 2)).max() == view.sparsity


def test_every_history_of_a_small_stream_stays_within_the_bound() -> None:
    every = np.array(list(product((0, 1), repeat=6))).reshape(-1, 6, 1)
    for changes in range(1, 7):
        for span in (1, 2, 3):
            view = Changes(span, 6, 1, changes)
            used = np.count_nonzero(told(view, every), axis=(1, 2))
            assert used.max() == view.sparsity == min(changes, 6 // span)


def test_a_value_is_held_once_its_changes_are_used_up() -> None:
    on_and_off = np.array([[1, 0, 1, 0, 1, 0]])[:, :, None]
    assert told(Changes(1, 6, 1, 3), on_and_off)[0, :, 0].tolist() == [1, -1, 1, 0, 0, 0]
    # At a higher level the same device has changes left: only those that its level sees count.
    assert told(Changes(3, 6, 1, 1), on_and_off)[0, :, 0].tolist() == [1, 0]


def test_a_category_changes_as_a_whole_or_not_at_all() -> None:
    view = Changes(1, 4, 3, changes=4, one=True)  # the first costs 1, a move 2: the second move does not fit
    assert told(view, np.array([[0, 1, 2, 2]]))[0].cumsum(axis=0).tolist() == [
        [1, 0, 0],
        [0, 1, 0],
        [0, 1, 0],
        [0, 1, 0],
    ]
    assert view.sparsity == 3


def test_no_news_is_not_a_change() -> None:
    view = Changes(1, 4, 3, changes=9, one=True)
    assert told(view, np.array([[-1, 2, -1, 7]]))[0].cumsum(axis=0).tolist() == [
        [0, 0, 0],
        [0, 0, 1],
        [0, 0, 1],
        [0, 0, 1],
    ]


def test_sets_are_vectors() -> None:
    steps = [members([items], 3) for items in ([0, 2], [2], [])]
    view = Changes(1, 3, 3, changes=9)
    assert told(view, np.stack(steps, axis=1))[0].tolist() == [[1, 0, 1], [-1, 0, 0], [0, 0, -1]]


def test_views_are_shared_as_json() -> None:
    for plan in (
        Sao2(epsilon=1.0, dimension=3, steps=9, changes=4, one=True),
        Split(epsilon=1.0, dimension=3, steps=9, changes=4),
    ):
        for ask in plan.asks(9):
            assert Ask.from_spec(ask.spec()) == ask


# -- what a device feeds to its mechanism ---------------------------------------------------------------------


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("span", [1, 2, 4])
def test_a_device_tells_step_by_step_what_its_view_says(one: bool, span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[np.ndarray] = []
    real = OnlineExSub.step

    def spy(self: OnlineExSub, state: object, values: np.ndarray, rng: hb.Random) -> object:
        fed.append(np.asarray(values))
        return real(self, state, values, rng)  # type: ignore[arg-type]

    monkeypatch.setattr(OnlineExSub, "step", spy)
    view = Changes(span, 9, 3, changes=4, one=one)
    pick, rng = np.random.default_rng(3), hb.Random(seed=1)
    histories = pick.integers(-1, 4, (40, 9)) if one else pick.integers(0, 2, (40, 9, 3))
    device = device_of(view)
    state = device.enroll(40, rng)
    for step in range(1, 10):
        state, said = device.step(state, step, histories[:, step - 1], rng)
        assert (said is None) == (step % span != 0)
    assert np.array_equal(np.stack(fed, axis=1), told(view, histories))


def test_one_device_is_a_batch_of_one() -> None:
    view = Changes(1, 5, 2, changes=3)
    device, histories = device_of(view), np.random.default_rng(4).integers(0, 2, (6, 5, 2))
    for row in histories:
        together, alone = hb.Random(seed=9), hb.Random(seed=9)
        batch, single = device.enroll(1, together), device.enroll(1, alone)
        for step in range(1, 6):
            batch, said = device.step(batch, step, row[None, step - 1], together)
            single, same = device.step(Following.from_bytes(single.to_bytes()), step, row[None, step - 1], alone)
            assert np.array_equal(said, same)  # type: ignore[arg-type]
        assert batch.to_bytes() == single.to_bytes()


def test_missed_nodes_are_passed_and_their_changes_told_with_the_next() -> None:
    view = Changes(2, 12, 2, changes=3)
    device, pick, rng = device_of(view), np.random.default_rng(5), hb.Random(seed=2)
    for _ in range(60):
        state, changes = device.enroll(1, rng), 0
        for step in sorted(pick.choice(np.arange(1, 13), size=pick.integers(0, 13), replace=False).tolist()):
            before = state
            values = pick.integers(0, 2, (1, 2))
            state, said = device.step(state, step, values, rng)
            if said is None:
                assert state is before
            else:
                changes += int(np.count_nonzero(state.held != before.held))
                assert state.node == step // 2
                # A missed node took its entries' turns all the same.
                assert int(state.online.to_come[0]) == view.dimension * (view.nodes - state.node) + view.sparsity
        assert changes == int(state.used[0]) <= view.changes


def test_a_device_that_joins_late_tells_what_it_holds_then() -> None:
    view = Changes(1, 8, 1, changes=2)
    device, rng = device_of(view, epsilon=6.0), hb.Random(seed=3)
    state, said = device.step(device.enroll(4000, rng), 6, np.ones((4000, 1)), rng)
    heard = device.client.enrolled(4000) + device.client.heard(said, 5)  # type: ignore[arg-type]
    estimate = device.mechanism.estimate(heard)
    assert abs(estimate.value[5] - 1) < 5 * estimate.stderr[5]  # fails once in two million seeds
    assert state.used.tolist() == [1] * 4000


# -- the promise ----------------------------------------------------------------------------------------------


def distribution(exsub: ExSub, residues: np.ndarray, *, bounded: bool = True) -> dict[tuple[int, ...], Fraction]:
    """The exact chance of everything that a device may say over all steps, by following every branch."""
    signs, choice = exsub._groups
    found: dict[tuple[int, ...], Fraction] = {}

    def go_on(counters: list[int], at: int, said: tuple[int, ...], chance: Fraction) -> None:
        if at == residues.size:
            found[said] = found.get(said, Fraction(0)) + chance
            return
        value = int(residues[at])
        if value and not bounded:
            counters[3] = max(counters[3], 1)  # the planted bug: there is always room for one more change
        plus, minus, total = odds(counters, value)
        for sign, ways in ((1, plus), (-1, minus), (0, total - plus - minus)):
            if ways > 0:
                after = list(counters)
                advance(after, value, sign)
                go_on(after, at + 1, (*said, sign), chance * Fraction(ways, total))

    for group, (true, reverse) in enumerate(signs.tolist()):
        counters = [true, reverse, exsub.m - true - reverse, exsub.sparsity, exsub.dimension]
        go_on(counters, 0, (), choice.probability(group))
    return found


def worst_ratio(exsub: ExSub, rows: np.ndarray, *, bounded: bool = True) -> Fraction:
    different = np.unique(rows.reshape(len(rows), -1), axis=0)
    every = [distribution(exsub, row, bounded=bounded) for row in different]
    assert all(sum(one.values()) == 1 for one in every)
    never = Fraction(1, 10**30)
    chances = [[one.get(word, never) for one in every] for word in set().union(*every)]
    return max(max(chance) / min(chance) for chance in chances)


@pytest.mark.parametrize(("span", "changes"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_all_that_a_device_says_over_the_whole_stream_spends_epsilon_once(span: int, changes: int) -> None:
    """Exactly, over every stream of four steps, those with too many changes included."""
    view = Changes(span, 4, 1, changes)
    exsub = ExSub(epsilon=1.0, dimension=view.entries, sparsity=view.sparsity, m=2)
    every = np.array(list(product((0, 1), repeat=4)))[:, :, None]
    worst = worst_ratio(exsub, told(view, every))
    assert worst <= exsub.ratio()
    assert worst == exsub.ratio() or view.nodes == 1  # and no less, where a change can be told the other way round


def test_a_device_without_a_bound_would_break_the_promise() -> None:
    """The planted bug: neither the view nor the mechanism stops at the allowed number of changes."""
    exsub = ExSub(epsilon=1.0, dimension=4, sparsity=1, m=2)
    every = np.array(list(product((0, 1), repeat=4)))[:, :, None]
    assert worst_ratio(exsub, told(Changes(1, 4, 1, changes=1), every)) == exsub.ratio()
    assert worst_ratio(exsub, told(Changes(1, 4, 1, changes=4), every)) == exsub.ratio()  # the mechanism's own bound
    assert worst_ratio(exsub, told(Changes(1, 4, 1, changes=4), every), bounded=False) > 2 * exsub.ratio()


def test_the_ledger_is_charged_once_for_the_whole_stream() -> None:
    device, rng = device_of(Changes(1, 6, 1, changes=2)), hb.Random(seed=1)
    clock = StepClock()
    with Ledger(":memory:", Budget.of(user=1.0), clock=clock) as ledger:
        entry = ledger.answer("enrolment", 0, device.event(0), lambda: device.enroll(1, rng).to_bytes())
        assert entry.report is not None
        state = Following.from_bytes(entry.report)
        for step in range(1, 7):
            state, _ = device.step(state, step, [1], rng)
        assert ledger.status().user.spent == units_of(1.0)  # type: ignore[union-attr]
        with pytest.raises(BudgetExceeded):
            ledger.answer("again", 0, device.event(0), lambda: b"")


def test_a_device_loads_no_compiled_code_and_no_server() -> None:
    life = """
import sys
import hubbub as hb
from hubbub.protocols.sao2 import Changes, OnlineDevice
device, rng = OnlineDevice(Changes(2, 64, 3, 4), hb.ExSub(epsilon=1.0, dimension=96, sparsity=4)), hb.Random()
state = device.enroll(1, rng)
for step in range(1, 65):
    state, said = device.step(state, step, [[1, 0, 1]], rng)
print(' '.join(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", life], capture_output=True, text=True, check=True, timeout=120)
    modules = {name.partition(".")[0] for name in done.stdout.split()}
    assert not modules & {"numba", "scipy", "starlette", "matplotlib", "rich", "typer", "pyarrow"}


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[2], [-1], [float("nan")], [0.5], ["on"], [[0, 1]], [1, 1], 1, [None]])
def test_values_that_are_no_bits_are_refused_and_change_nothing(values: object) -> None:
    device, rng = device_of(Changes(1, 4, 1, changes=1)), hb.Random(seed=1)
    state = device.enroll(1, rng)
    with pytest.raises(InvalidValue):
        device.step(state, 1, values, rng)  # type: ignore[arg-type]
    assert device.step(state, 1, [0], rng)[0].node == 1


@pytest.mark.parametrize("values", [[0.5], [[1]], ["a"], 3])
def test_codes_that_are_no_integers_are_refused(values: object) -> None:
    with pytest.raises(InvalidValue):
        Changes(1, 4, 3, 3, one=True).bits(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [0, -1, 9, True, 1.0])
def test_steps_that_are_not_of_the_stream_are_refused(step: object) -> None:
    device, rng = device_of(Changes(2, 8, 1, changes=1)), hb.Random(seed=1)
    with pytest.raises(InvalidValue):
        device.step(device.enroll(1, rng), step, [0], rng)  # type: ignore[arg-type]


def test_a_step_is_not_told_twice() -> None:
    device, rng = device_of(Changes(2, 8, 1, changes=1)), hb.Random(seed=1)
    state, _ = device.step(device.enroll(1, rng), 4, [1], rng)
    for step in (1, 2, 3, 4):
        with pytest.raises(InvalidValue, match="a step after the 4"):
            device.step(state, step, [1], rng)
    assert device.step(state, 5, [1], rng)[1] is None


def test_a_mechanism_that_does_not_fit_is_refused() -> None:
    view, rng = Changes(1, 4, 2, changes=3), hb.Random(seed=1)
    for wrong in (
        ExSub(epsilon=1.0, dimension=7, sparsity=3),
        ExSub(epsilon=1.0, dimension=8, sparsity=2),  # would count changes as zeros
        hb.Collision(epsilon=1.0, dimension=8, sparsity=3),
    ):
        with pytest.raises(InvalidValue):
            OnlineDevice(view, wrong)  # type: ignore[arg-type]
    fitting, other = device_of(view), device_of(view, epsilon=2.0)
    with pytest.raises(SpecMismatch):
        fitting.step(other.enroll(1, rng), 1, [[0, 0]], rng)


def test_hostile_states_are_refused() -> None:
    device = device_of(Changes(1, 4, 2, changes=3))
    good = device.enroll(2, hb.Random(seed=1)).to_bytes()
    for cut in range(len(good)):
        with pytest.raises(DecodeError):
            Following.from_bytes(good[:cut])
    with pytest.raises(DecodeError):
        Following.from_bytes(good.replace(b"\x00\x00\x00\x00", b"\x00\x07\x00\x00", 1))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"dimension": 1 << 13, "steps": 1 << 13}, "steps"),
        ({"dimension": 0}, "dimension"),
        ({"steps": 0}, "steps"),
        ({"changes": 0}, "changes"),
        ({"changes": 2.5}, "changes"),
        ({"fanout": 1}, "fanout"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"mechanism": "GRR"}, "mechanism"),
        ({"mechanism": "Nothing"}, "mechanism"),
        ({"queries": "median"}, "queries"),
        ({"choice": "best"}, "choice"),
        ({"one": 1}, "one"),
    ],
)
def test_plans_that_cannot_be_are_refused(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        Sao2(**{"epsilon": 1.0, "dimension": 2, "steps": 8, "changes": 2, **given})  # type: ignore[arg-type]
    assert refused.value.field == field


def test_as_many_entries_as_a_sketch_can_hold_is_too_many_by_one() -> None:
    Changes(1, 1 << 12, 1 << 12, 1)
    with pytest.raises(InvalidValue, match="steps"):
        Changes(1, (1 << 12) + 1, 1 << 12, 1)
    with pytest.raises(InvalidValue, match="steps"):
        Split(epsilon=1.0, dimension=1 << 13, steps=1 << 13, changes=1)
