"""LOLOHA: a list of functions under which chance is exact, and epsilons that come out as asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.loloha import supports, toeplitz, toeplitz_functions


@pytest.mark.parametrize(("size", "buckets"), [(2, 2), (5, 2), (16, 4), (33, 2), (20, 8), (7, 16)])
def test_any_two_values_meet_under_exactly_one_function_in_g(size: int, buckets: int) -> None:
    functions = toeplitz_functions(size, buckets)
    table = toeplitz(np.arange(functions)[:, None], np.arange(size)[None, :], buckets)
    assert table.min() >= 0
    assert table.max() < buckets
    meet = (table[:, :, None] == table[:, None, :]).sum(axis=0)
    assert (meet[~np.eye(size, dtype=bool)] == functions // buckets).all()


def test_a_list_one_function_short_is_noticed() -> None:
    table = toeplitz(np.arange(15)[:, None], np.arange(16)[None, :], 2)
    meet = (table[:, :, None] == table[:, None, :]).sum(axis=0)[~np.eye(16, dtype=bool)]
    assert len(set(meet.tolist())) > 1


@pytest.mark.parametrize(("size", "buckets"), [(2, 2), (3, 2), (5, 8), (9, 4), (40, 8)])
def test_transforms_give_the_same_totals_as_looking_up(size: int, buckets: int) -> None:
    functions = toeplitz_functions(size, buckets)
    table = hb.Random(seed=1).below(1000, functions * buckets).reshape(functions, buckets)
    fallen = toeplitz(np.arange(functions)[:, None], np.arange(size)[None, :], buckets)
    assert supports(table, size).tolist() == table[np.arange(functions)[:, None], fallen].sum(axis=0).tolist()


def test_a_skewed_population_is_estimated_without_bias() -> None:
    # Hashing by a short list of mixed seeds would be off by about 3% of the heavy value's share, for good. Here the
    # error has a standard deviation of 0.24%: the chance of a failure is below 1e-8 (six of them), fixed by the seed.
    loloha = hb.Loloha(epsilon=4.0, domain=1000, report_epsilon=3.0, buckets=2)
    values = np.where(np.arange(400_000) % 10 < 7, 3, 900)
    estimate = loloha.estimate(loloha.accumulate(loloha.randomize(values, hb.Random(seed=2))))
    truth = np.zeros(1000)
    truth[3], truth[900] = 0.7, 0.3
    assert float(estimate.stderr.max()) < 0.0024
    assert np.abs(estimate.value - truth).max() < 6 * 0.0024
    inside = np.abs(estimate.value - truth) < 1.96 * estimate.stderr
    assert 0.92 < inside.mean() < 0.98


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("buckets", [0, 2, 8])
def test_both_epsilons_come_out_just_below_what_was_asked(epsilon: float, share: float, buckets: int) -> None:
    loloha = hb.Loloha(epsilon=epsilon, domain=64, report_epsilon=share * epsilon, buckets=buckets)
    assert 0 <= epsilon - loloha.permanent_epsilon < 1e-9
    assert 0 <= share * epsilon - loloha.effective_epsilon < 1e-9


def test_the_variance_is_that_of_local_hashing_at_one_reports_epsilon() -> None:
    for buckets in (2, 4):
        olh = hb.OLH(epsilon=1.0, domain=64, buckets=buckets)
        for permanent in (1.5, 6.0):
            loloha = hb.Loloha(epsilon=permanent, domain=64, report_epsilon=1.0, buckets=buckets)
            assert loloha.variance(1000) == pytest.approx(olh.variance(1000), rel=1e-9)


@pytest.mark.parametrize(("report_epsilon", "buckets"), [(0.2, 2), (1.0, 4), (2.0, 8)])
def test_the_number_of_buckets_is_the_best_power_of_two(report_epsilon: float, buckets: int) -> None:
    chosen = hb.Loloha(epsilon=4.0, domain=64, report_epsilon=report_epsilon)
    assert chosen.buckets == buckets == chosen.most_memos
    for other in (2, 4, 8, 16):
        rival = hb.Loloha(epsilon=4.0, domain=64, report_epsilon=report_epsilon, buckets=other)
        assert chosen.variance(1) <= rival.variance(1) * (1 + 1e-9)


def test_a_device_keeps_its_function_and_needs_at_most_g_memos() -> None:
    loloha, rng = hb.Loloha(epsilon=2.0, domain=500), hb.Random(seed=1)
    states = loloha.enroll(1, rng)
    public = states["public"].tolist()
    for value in range(500):
        states, _, _ = loloha.step(states, value, [value], rng, np.array([True]))
    assert states["public"].tolist() == public
    assert states["keys"].shape[1] <= loloha.most_memos == loloha.buckets
    functions = loloha.enroll(200, rng)["public"]
    assert 0 <= functions.min() <= functions.max() < loloha.functions
    assert len(set(functions.tolist())) > 150


@pytest.mark.parametrize(
    "options",
    [
        {"report_epsilon": 2.0},
        {"report_epsilon": 3.0},
        {"report_epsilon": -1.0},
        {"report_epsilon": math.nan},
        {"report_epsilon": "1"},
        {"report_epsilon": True},
        {"buckets": 3},
        {"buckets": 1},
        {"buckets": 512},
        {"domain": 1 << 17},
        {"domain": 1 << 13, "buckets": 64},
        {"swap": 1},
        {"other": 1},
        {"other": 1 << 63},
    ],
    ids=str,
)
def test_what_is_not_allowed_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        hb.Loloha(**{"epsilon": 2.0, "domain": 8, **options})
