"""Lemmas 1 to 4 of chapter 8, on real reports: the bias of each method; and Norm, which alone has none.

The second moments after Norm are claimed exactly, and tested.
"""

from functools import cache

import numpy as np
import pytest

from hubbub.consistency import METHODS, norm
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.subset import SubsetSelection
from hubbub.mechanisms.frequency.unary import OUE
from tests.consistency.estimates import collect, made

COUNTS = [80, 50, 30, 20, 15, 5, 0, 0]
TRUTH = np.array(COUNTS) / sum(COUNTS)
RUNS = 1000
ORACLES = {"OLH": OLH(epsilon=1.0, domain=8), "GRR": GRR(epsilon=1.0, domain=8)}


@pytest.fixture(scope="module", params=ORACLES)
def z_scores(request):
    """The bias of each value under a method, in standard errors; and the mean of the sum."""
    estimates = collect(ORACLES[request.param], COUNTS, RUNS, 21)

    @cache
    def measure(name):
        values = np.array([METHODS[name].apply(estimate).value for estimate in estimates])
        bias = values.mean(axis=0) - TRUTH
        return bias / (values.std(axis=0) / np.sqrt(RUNS)), bias

    return measure


# Five standard errors either way. A right claim fails with probability below 1e-5 for 8 values; "none" is shown to have
# power by the methods after it, whose biases are found by the very same measure.


@pytest.mark.parametrize("name", ["base", "norm"])
def test_base_and_norm_are_unbiased(name, z_scores):
    z, _ = z_scores(name)
    assert np.abs(z).max() < 5


@pytest.mark.parametrize("name", ["base-pos", "post-pos"])
def test_lemma_1_positive_parts_are_biased_upward(name, z_scores):
    # All values gain; where the share is large against the noise, too little to be seen.
    z, bias = z_scores(name)
    assert (z > -5).all()
    assert (z[-3:] > 5).all()
    assert bias.sum() > 0.1


@pytest.mark.parametrize("name", [name for name, m in METHODS.items() if m.sums_to_one == "yes"])
def test_lemma_2_biases_cancel_where_the_sum_is_one(name, z_scores):
    _, bias = z_scores(name)
    assert bias.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["norm-mul", "norm-sub", "mle-apx", "power-ns"])
def test_lemma_4_consistency_lifts_the_smallest(name, z_scores):
    z, bias = z_scores(name)
    assert (z[-2:] > 5).all()
    assert bias[0] < 0  # somebody has to pay, and it is the most frequent


def test_norm_mul_takes_more_from_the_largest_than_norm_sub(z_scores):
    (_, mul), (_, sub) = z_scores("norm-mul"), z_scores("norm-sub")
    assert mul[0] < 1.5 * sub[0] < 0


def test_the_kept_variances_bound_the_error_of_projections():
    # E |f - truth|^2 <= sum of variances, for Base-Pos and Norm-Sub; by a wide margin here, so no chance of failing.
    for oracle in ORACLES.values():
        estimates = collect(oracle, COUNTS, 200, 22)
        for name in ("base-pos", "norm-sub"):
            after = [METHODS[name].apply(estimate) for estimate in estimates]
            error = np.mean([((a.value - TRUTH) ** 2).sum() for a in after])
            assert error < np.mean([a.variance.sum() for a in after])


# -- Norm -----------------------------------------------------------------------------------------------------------

FEW = [120, 50, 20, 10]
MANY = 3000


@pytest.mark.parametrize(
    "oracle", [OLH(epsilon=2.0, domain=4), OUE(epsilon=2.0, domain=4)], ids=lambda m: type(m).__name__
)
def test_variances_and_covariances_are_what_it_says(oracle):
    # Chance that a right claim is rejected: 10 moments at 5 standard errors, below 1e-5. The variance before norm is a
    # third larger, which is 8 standard errors.
    before = collect(oracle, FEW, MANY, seed=11)
    after = np.array([norm(estimate).value for estimate in before])
    n, truth = sum(FEW), np.array(FEW) / sum(FEW)
    noise = oracle.noise(n).centred(4, 1.0)
    assert norm(before[0]).noise == noise
    np.testing.assert_allclose(norm(before[0]).variance, noise.variance(after[0]))

    claimed = noise.pair_floor + noise.pair_slope * (truth[:, None] + truth[None, :])
    np.fill_diagonal(claimed, noise.variance(truth))
    stray = np.sqrt((np.outer(np.diag(claimed), np.diag(claimed)) + claimed**2) / MANY)
    covariance = np.cov(after.T)
    assert (np.abs(covariance - claimed) < 5 * stray).all()
    unprocessed = oracle.noise(n).variance(truth)
    assert (np.abs(np.diag(covariance) - unprocessed) > 5 * np.sqrt(2 / MANY) * unprocessed).all()

    far = (after.mean(axis=0) - truth) / np.sqrt(np.diag(claimed) / MANY)
    assert (np.abs(far) < 5).all()


@pytest.mark.parametrize(
    "oracle", [GRR(epsilon=1.0, domain=5), SubsetSelection(epsilon=1.0, domain=7)], ids=lambda m: type(m).__name__
)
def test_oracles_that_sum_to_one_are_left_as_they_are(oracle):
    (before,) = collect(oracle, [50] * oracle.size, 1, seed=12)
    after = norm(before)
    np.testing.assert_allclose(after.value, before.value, atol=1e-12)
    np.testing.assert_allclose(after.variance, before.variance, rtol=1e-9)
    for field in ("floor", "slope", "pair_floor", "pair_slope"):
        assert getattr(after.noise, field) == pytest.approx(getattr(before.noise, field), rel=1e-9, abs=1e-15)


def test_the_whole_domain_has_no_variance_left():
    total = norm(made([0.7, 0.2, 0.3, -0.1])).linear([1, 1, 1, 1])
    assert total.value[0] == pytest.approx(1.0)
    assert total.variance[0] == pytest.approx(0.0, abs=1e-15)


def test_norm_twice_is_norm_once():
    once = norm(made([0.7, 0.2, 0.3, -0.1]))
    twice = norm(once)
    np.testing.assert_allclose(twice.value, once.value, atol=1e-15)
    np.testing.assert_allclose(twice.variance, once.variance, rtol=1e-12)


def test_without_noise_the_values_are_independent():
    estimate = Estimate([0.7, 0.2, 0.3], [0.01, 0.02, 0.03], 100)
    # Var(x1 - (x1 + x2 + x3)/3) = 4/9 v1 + 1/9 v2 + 1/9 v3.
    assert norm(estimate).variance[0] == pytest.approx((4 * 0.01 + 0.02 + 0.03) / 9)
    same, with_noise = (made([0.7, 0.2, 0.3], noise=noise) for noise in (None, Noise(0.01, 0.0)))
    np.testing.assert_allclose(norm(same).variance, norm(with_noise).variance)


def test_a_cohorts_sampling_stays():
    estimate = made([0.7, 0.2, 0.3], slope=0.0, n=100).of_population(1000)
    after = norm(estimate)
    assert estimate.noise is not None
    assert after.noise is not None
    assert after.noise.sampling == estimate.noise.sampling > 0
    assert (after.variance > norm(made([0.7, 0.2, 0.3], noise=None, n=100)).variance).all()
