"""Norm is the one method that stays unbiased: its second moments are claimed exactly, and tested."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.consistency import norm
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.subset import SubsetSelection
from hubbub.mechanisms.frequency.unary import OUE

COUNTS = [120, 50, 20, 10]
RUNS = 3000


@pytest.mark.parametrize(
    "oracle", [OLH(epsilon=2.0, domain=4), OUE(epsilon=2.0, domain=4)], ids=lambda m: type(m).__name__
)
def test_variances_and_covariances_are_what_it_says(oracle, collect):
    # Chance that a right claim is rejected: 10 moments at 5 standard errors, below 1e-5. The variance before norm is a
    # third larger, which is 8 standard errors.
    before = collect(oracle, COUNTS, RUNS, seed=11)
    after = np.array([norm(estimate).value for estimate in before])
    n, truth = sum(COUNTS), np.array(COUNTS) / sum(COUNTS)
    noise = oracle.noise(n).centred(4, 1.0)
    assert norm(before[0]).noise == noise
    np.testing.assert_allclose(norm(before[0]).variance, noise.variance(after[0]))

    claimed = noise.pair_floor + noise.pair_slope * (truth[:, None] + truth[None, :])
    np.fill_diagonal(claimed, noise.variance(truth))
    stray = np.sqrt((np.outer(np.diag(claimed), np.diag(claimed)) + claimed**2) / RUNS)
    covariance = np.cov(after.T)
    assert (np.abs(covariance - claimed) < 5 * stray).all()
    unprocessed = oracle.noise(n).variance(truth)
    assert (np.abs(np.diag(covariance) - unprocessed) > 5 * np.sqrt(2 / RUNS) * unprocessed).all()

    far = (after.mean(axis=0) - truth) / np.sqrt(np.diag(claimed) / RUNS)
    assert (np.abs(far) < 5).all()


@pytest.mark.parametrize(
    "oracle", [GRR(epsilon=1.0, domain=5), SubsetSelection(epsilon=1.0, domain=7)], ids=lambda m: type(m).__name__
)
def test_oracles_that_sum_to_one_are_left_as_they_are(oracle, collect):
    (before,) = collect(oracle, [50] * oracle.size, 1, seed=12)
    after = norm(before)
    np.testing.assert_allclose(after.value, before.value, atol=1e-12)
    np.testing.assert_allclose(after.variance, before.variance, rtol=1e-9)
    for field in ("floor", "slope", "pair_floor", "pair_slope"):
        assert getattr(after.noise, field) == pytest.approx(getattr(before.noise, field), rel=1e-9, abs=1e-15)


def test_the_whole_domain_has_no_variance_left(shares):
    total = norm(shares([0.7, 0.2, 0.3, -0.1])).linear([1, 1, 1, 1])
    assert total.value[0] == pytest.approx(1.0)
    assert total.variance[0] == pytest.approx(0.0, abs=1e-15)


def test_twice_is_once(shares):
    once = norm(shares([0.7, 0.2, 0.3, -0.1]))
    twice = norm(once)
    np.testing.assert_allclose(twice.value, once.value, atol=1e-15)
    np.testing.assert_allclose(twice.variance, once.variance, rtol=1e-12)


def test_without_noise_the_values_are_independent():
    estimate = Estimate([0.7, 0.2, 0.3], [0.01, 0.02, 0.03], 100)
    # Var(x1 - (x1 + x2 + x3)/3) = 4/9 v1 + 1/9 v2 + 1/9 v3.
    assert norm(estimate).variance[0] == pytest.approx((4 * 0.01 + 0.02 + 0.03) / 9)
    same = Estimate([0.7, 0.2, 0.3], [0.01] * 3, 100)
    with_noise = Estimate([0.7, 0.2, 0.3], [0.01] * 3, 100, noise=Noise(0.01, 0.0))
    np.testing.assert_allclose(norm(same).variance, norm(with_noise).variance)


def test_a_cohorts_sampling_stays():
    estimate = Estimate([0.7, 0.2, 0.3], [0.01] * 3, 100, noise=Noise(0.01, 0.0)).of_population(1000)
    after = norm(estimate)
    assert after.noise.sampling == estimate.noise.sampling > 0
    assert (after.variance > norm(Estimate([0.7, 0.2, 0.3], [0.01] * 3, 100)).variance).all()
