"""In any w consecutive steps no device spends more than epsilon: from the logs of every device's ledger.

The server is the adversary: it hears sketches chosen at random, or to make it publish always or never, and its arcs and
budgets are charged to devices at random and extreme places. What asks may spend is a finite set, known beforehand.
"""

from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.event import UNITS_PER_EPSILON, units_of
from hubbub.core.reports import Sketch
from hubbub.ledger.promise import BudgetExceeded
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.driver import Protocol, converse
from hubbub.protocols.window import METHODS, Frequencies, Means, PopulationDivision, Statistic, epsilons, window_stream
from hubbub.protocols.window.clipping import clipped_means
from hubbub.protocols.window.division import Division, finite_counts, finite_parts, round_count, round_parts
from hubbub.protocols.window.filters import LastPublication
from hubbub.simulate.conversation import run_stream
from hubbub.simulate.devices import ArrayStream
from hubbub.simulate.ledgers import Ledgers
from tests.shared.answers import answered

DEVICES = 24
Moods = ("random", "calm", "wild", "silent")


def hostile_sketch(ask: Ask, n: int, mood: str, pick: np.random.Generator) -> Sketch:
    """A sketch that n devices could have made, as the mood has it."""
    if n == 0 or (mood == "silent" and pick.random() < 0.5):
        return ask.mechanism.empty()
    values = np.zeros(n, dtype=int)
    if mood == "wild":
        values[:] = ask.step % 2
    elif mood == "random":
        values = pick.integers(0, 2, n)
    return answered(ask, values, hb.Random(seed=int(pick.integers(1 << 30))))


def spending(protocol: Protocol, steps: int, mood: str, pick: np.random.Generator) -> np.ndarray:
    """What each device (column) spent at each step (row), logged as its ledger is charged."""
    places = np.concatenate([pick.integers(0, CIRCLE, DEVICES - 2), [0, CIRCLE - 1]])
    spent = np.zeros((steps + 1, DEVICES), dtype=np.int64)

    def answer(ask: Ask) -> Sketch:
        in_cohort = ask.cohort.holds(places)
        spent[ask.step, in_cohort] += ask.event().spent
        return hostile_sketch(ask, int(in_cohort.sum()) * 50, mood, pick)

    for _ in converse(protocol, answer, steps=steps):
        pass
    return spent


def most_in_a_window(spent: np.ndarray, w: int) -> int:
    return max(int(spent[max(0, t - w + 1) : t + 1].sum(axis=0).max()) for t in range(len(spent)))


def run_cases(method: str, cases: int, seed: int) -> None:
    pick = np.random.default_rng(seed)
    for _ in range(cases):
        w = int(pick.integers(1, 7))
        epsilon = float(pick.choice([0.1, 0.5, 1.0, 2.0, 1 / 3, 4.0]))
        questions: list[Statistic] = [Frequencies(2), Frequencies(int(pick.integers(2, 30))), Means(0.0, 1.0)]
        question = questions[int(pick.integers(3))]
        steps = int(pick.integers(w, 3 * w + 4))
        beta = {"beta": float(pick.choice([0.1, 0.5, 0.9]))}
        options: dict[str, Any] = beta if method[1:] in ("BD", "BA", "PD", "PA") else {}
        stream = window_stream(method, question, epsilon=epsilon, w=w, **options)
        spent = spending(stream, steps, str(pick.choice(Moods)), pick)
        assert most_in_a_window(spent, w) <= units_of(epsilon), (method, w, epsilon, question, options)


@pytest.mark.parametrize("method", METHODS)
def test_no_window_spends_more_than_epsilon(method: str) -> None:
    run_cases(method, 30, seed=11)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_no_window_spends_more_than_epsilon_in_ten_thousand_cases(method: str) -> None:
    run_cases(method, 10_000 // len(METHODS) + 1, seed=12)


@pytest.mark.parametrize("method", METHODS)
def test_clipping_keeps_the_promise_while_it_searches(method: str) -> None:
    pick = np.random.default_rng(3)
    for w in range(1, 6):
        stream = clipped_means(method, epsilon=1.0, w=w, bound=1000.0, search=float(pick.choice([0.05, 0.2, 0.9])))
        assert most_in_a_window(spending(stream, 5 * w, str(pick.choice(Moods)), pick), w) <= units_of(1.0)


def greedy(division: Division) -> Protocol:
    """A planted bug: every step takes a share that would be right for a window one step shorter."""
    last = LastPublication(division)
    while True:
        division._taken.clear()  # forgets the window
        division._taken.append(0)
        fresh = yield from division.ask(division.total // max(1, division.w - 1))
        yield last.release(fresh)


def test_a_greedy_schedule_is_caught() -> None:
    pick = np.random.default_rng(3)
    stream = greedy(PopulationDivision(Frequencies(2), epsilon=1.0, w=4))
    assert most_in_a_window(spending(stream, 12, "random", pick), 4) > units_of(1.0)


def test_the_ledgers_stop_a_greedy_schedule_whatever_the_server_asks() -> None:
    stream = greedy(PopulationDivision(Frequencies(2), epsilon=1.0, w=4))
    devices, ledgers = np.zeros((12, 400), dtype=np.uint8), Ledgers.of_window(400, epsilon=1.0, w=4, strict=True)
    with pytest.raises(BudgetExceeded, match="window"):
        run_stream(stream, ArrayStream(devices, domain=2), hb.Random(seed=1), ledgers=ledgers)


# -- what asks may spend is a finite set ------------------------------------------------------------------------------

WILD = np.random.default_rng(20261116)  # shares that jump, so that adaptive methods publish at all sorts of times


def spent_by(method: str, *, epsilon: float, w: int, steps: int) -> set[int]:
    """The epsilons of all asks of a stream whose population changes its mind all the time."""
    spent, rng = set[int](), hb.Random(seed=7)

    def answer(ask: Ask) -> Sketch:
        spent.add(round(ask.mechanism.epsilon * UNITS_PER_EPSILON))
        people = round(2000 * ask.cohort.share)
        values = (WILD.random(people) < WILD.choice([0.05, 0.5, 0.95])).astype(np.int64)
        return answered(ask, values, rng)

    for _ in converse(window_stream(method, Frequencies(2), epsilon=epsilon, w=w), answer, steps=steps):
        pass
    return spent


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("epsilon", "w"),
    [(1.0, 20), pytest.param(3.7, 7, marks=pytest.mark.slow), (6.0, 3), pytest.param(8.0, 100, marks=pytest.mark.slow)],
)
def test_every_ask_spends_what_was_listed(method: str, epsilon: float, w: int) -> None:
    listed = epsilons(method, epsilon=epsilon, w=w)
    assert spent_by(method, epsilon=epsilon, w=w, steps=150) <= set(listed)
    assert listed == tuple(sorted(set(listed)))
    assert max(listed) <= units_of(epsilon)
    assert len(listed) <= 300


def test_a_method_that_divides_the_budget_uses_more_than_one_of_them() -> None:
    # The property above would hold of a stream that never publishes.
    assert len(spent_by("LBD", epsilon=4.0, w=10, steps=150)) > 5
    assert len(spent_by("LBA", epsilon=4.0, w=10, steps=150)) >= 3


def test_rounding_takes_at_most_a_sixteenth_and_changes_nothing_twice() -> None:
    for total in (10**12, 123_456_789, 2**20):
        for parts in WILD.integers(total // 256 + 1, total + 1, 500).tolist():
            rounded = round_parts(parts, total)
            assert 15 / 16 * parts - 1 <= rounded <= parts
            assert round_parts(rounded, total) == rounded
            assert rounded in finite_parts(total)
    for count in (1, 20, 31, 32, 33, 1000, 10**6):
        assert 15 / 16 * count <= round_count(count) <= count
        assert round_count(count) in finite_counts(count)
