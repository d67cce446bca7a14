"""The numbers of a search: intervals given that a value was found, the pooled estimate, expected false positives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from hubbub import Random
from hubbub.protocols.heavy_hitters.pem import Level, pooled_shares
from hubbub.rehearse.top import find_top


class Measured(NamedTuple):
    """Over several searches."""

    intervals: int
    held: float
    usual: float
    false_positives: float
    expected: float
    pooled: float
    last_group: float


def measure(runs: int, n: int, *, epsilon: float = 2.0, k: int = 16) -> Measured:
    holds, usual_holds, errors, raw = [], [], [], []
    false, expected = 0, 0.0
    for run in range(runs):
        rng = np.random.default_rng(run)
        names, shares = rng.integers(0, 1 << 32, 400), np.exp(-0.05 * np.arange(400))
        values = names[rng.choice(400, n, p=shares / shares.sum())]
        top = find_top(values, k=k, epsilon=epsilon, bits=32, query_limit=1 << 12, rng=Random(seed=run))
        estimate, truth = top.estimate, np.array([np.mean(values == value) for value in top.values])
        low, high = estimate.interval()
        centre, reach = estimate.centre, 1.96 * estimate.stderr
        assert centre is not None
        holds += ((low <= truth) & (truth <= high)).tolist()
        usual_holds += (np.abs(centre - truth) <= reach).tolist()
        false, expected = false + int((truth == 0).sum()), expected + top.false_positives
        errors += (estimate.value - truth)[truth > 0].tolist()
        raw += (centre - truth)[truth > 0].tolist()
    squares = [float(np.mean(np.square(column))) for column in (errors, raw)]
    return Measured(
        len(holds),
        *(float(np.mean(column)) for column in (holds, usual_holds)),
        false / runs,
        expected / runs,
        *squares,
    )


def test_intervals_hold_given_that_the_value_was_found() -> None:
    # Of 192 intervals at 95%, below 88% has a probability of 1e-4; the usual intervals, a planted bug, are far below.
    measured = measure(12, 20_000)
    assert measured.intervals == 192
    assert measured.held >= 0.88
    assert measured.usual < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("n", [20_000, 60_000])
def test_intervals_cover_and_false_positives_are_as_many_as_expected(n: int) -> None:
    # Of 960 intervals at 95%, below 93% has a probability of 2e-3; the numbers of false positives differ by chance by
    # less than 1 a run with a probability above 0.999.
    measured = measure(60, n)
    assert measured.held >= 0.93
    assert measured.usual < 0.7
    assert abs(measured.false_positives - measured.expected) < 1.0
    assert measured.pooled < 0.9 * measured.last_group


def test_all_groups_together_tell_a_share_better_than_the_last() -> None:
    rng, truth, error = np.random.default_rng(1), np.array([0.1, 0.2, 0.3]), 0.01
    own = np.arange(3)
    pooled, last = [], []
    for _ in range(400):
        estimates = [truth + error * rng.standard_normal(3) for _ in range(5)]
        estimates[0] = estimates[0] + [0.0, 0.05, 0.3]  # others begin as two of the three do
        pooled.append(pooled_shares([Level(shares, error**2, own) for shares in estimates]) - truth)
        last.append(estimates[-1] - truth)
    gain = np.mean(np.square(last), axis=0) / np.mean(np.square(pooled), axis=0)
    assert (gain > 2.5).all()
    assert (np.abs(np.mean(pooled, axis=0)) < 5 * error / 20).all()  # hardly biased: five standard errors of the last


def test_a_prefix_that_two_values_share_is_not_used() -> None:
    both = Level(np.array([0.9]), 1e-4, np.zeros(1, dtype=np.int64))
    own = Level(np.array([0.3, 0.2]), 1e-4, np.zeros(2, dtype=np.int64))
    assert pooled_shares([both, own]).tolist() == [0.3, 0.2]
    assert pooled_shares([Level(np.array([-0.1]), 1e-4, np.zeros(1, dtype=np.int64))]).tolist() == [0.0]
