"""Intervals of values selected for their size: they cover the truth given the selection; the usual ones do not."""

import math

import numpy as np
import pytest

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.statistics.selection import Selected, conditional_interval
from tests.shared.answers import holds

LEAST = 0.93


def chosen(runs: int, *, seed: int = 1) -> tuple[float, float]:
    """How often intervals hold the truth of the 8 best of 400 candidates, most of which have none: ours, and usual."""
    rng, truth = np.random.default_rng(seed), np.concatenate([np.linspace(5, 1, 10), np.zeros(390)])
    covered = []
    for _ in range(runs):
        observed = truth + rng.standard_normal(400)
        order = np.argsort(-observed)
        best, cut = order[:8], float(observed[order[8]])
        both = (
            Selected(observed[best], np.ones(8), 1, kind="quantity", cut=cut),
            Estimate(observed[best], np.ones(8), 1, kind="quantity"),
        )
        covered.append([holds(estimate, truth[best]) for estimate in both])
    conditional, usual = np.mean(covered, axis=(0, 2))
    return float(conditional), float(usual)


def test_intervals_hold_given_that_the_value_was_chosen() -> None:
    # 1,600 intervals at 95%: below 93% has a probability of 2e-4. The usual intervals are the planted bug: they fail.
    conditional, usual = chosen(200)
    assert conditional >= LEAST
    assert usual < 0.9


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_ends_solve_what_they_are_said_to(level: float) -> None:
    x, error, cut = 2.5, 0.7, 2.0
    chances = [
        math.erfc((x - end) / error / math.sqrt(2)) / math.erfc((cut - end) / error / math.sqrt(2))
        for end in conditional_interval(x, error, cut, level)
    ]
    assert chances == pytest.approx([(1 - level) / 2, (1 + level) / 2], rel=1e-6)


def test_without_a_cut_or_far_above_it_they_are_the_usual_ones() -> None:
    usual = Estimate(np.array([0.5]), np.array([1e-4]), 9).interval(0.9)
    for cut in (-math.inf, 0.0):
        interval = Selected(np.array([0.5]), np.array([1e-4]), 9, cut=cut).interval(0.9)
        assert np.allclose(interval, usual, rtol=1e-9)


def test_an_estimate_at_the_cut_says_almost_nothing_below() -> None:
    low, high = Selected(np.array([0.1]), np.array([1e-4]), 9, cut=0.1).interval()
    assert low[0] < 0.0
    assert high[0] >= 0.1
    assert Selected(np.array([0.1]), np.array([0.0]), 9, cut=0.1).interval()[0][0] == 0.1
    with pytest.raises(InvalidValue, match="level"):
        Selected(np.array([0.1]), np.array([1.0]), 9).interval(1.0)
