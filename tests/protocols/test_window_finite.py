"""What a stream's asks may spend is a finite set, known before anything is asked."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.core.event import UNITS_PER_EPSILON, units_of
from hubbub.core.reports import Sketch
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.window import METHODS, Frequencies, epsilons, window_stream
from hubbub.protocols.window.division import finite_counts, finite_parts, round_count, round_parts
from hubbub.random.source import Random

WILD = np.random.default_rng(20261116)  # shares that jump, so that adaptive methods publish at all sorts of times


def spent_by(method: str, *, epsilon: float, w: int, steps: int) -> set[int]:
    """The epsilons of all asks of a stream whose population changes its mind all the time."""
    spent, rng = set(), Random(seed=7)

    def answer(ask: Ask) -> Sketch:
        spent.add(round(ask.mechanism.epsilon * UNITS_PER_EPSILON))
        people = round(2000 * ask.cohort.share)
        values = (WILD.random(people) < WILD.choice([0.05, 0.5, 0.95])).astype(np.int64)
        return ask.mechanism.accumulate(ask.mechanism.randomize(values, rng))

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
