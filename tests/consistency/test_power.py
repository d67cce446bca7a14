import tracemalloc

import numpy as np
import pytest

from hubbub.consistency import PowerLaw, norm_sub, power, power_ns
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise


def posterior_means(observed, n, deviation, exponent):
    """Eq 8.7 by the sum over every possible count."""
    counts = np.arange(1, n + 1, dtype=np.float64)
    out = []
    for y in observed:
        log_mass = -0.5 * ((counts / n - y) / deviation) ** 2 - exponent * np.log(counts)
        mass = np.exp(log_mass - log_mass.max())
        out.append((mass @ counts) / mass.sum() / n)
    return np.array(out)


def log_likelihood(observed, n, deviation, exponent):
    counts = np.arange(1, n + 1, dtype=np.float64)
    prior = counts**-exponent / (counts**-exponent).sum()
    return sum(np.log(prior @ np.exp(-0.5 * ((counts / n - y) / deviation) ** 2)) for y in observed)


# Noise from far below one person to most of the population: sums one by one, quadrature near 0 and far from it.
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.5, 3.0, 10.0])
@pytest.mark.parametrize(
    ("n", "deviation"),
    [(1, 0.1), (3, 0.1), (50, 0.3), (1000, 1e-5), (1000, 5e-4), (1000, 0.02), (100_000, 2e-4), (100_000, 5e-3)],
)
def test_means_agree_with_the_sum_over_every_count(n, deviation, exponent):
    inside = [-40, -8, -1, 0, 0.3, 1, 5, 10, 23.9, 24.1, 30]
    observed = np.array([x * deviation for x in inside] + [1 / 3, 0.9])
    observed = observed[observed <= 1]
    means = PowerLaw(n, deviation, exponent).means(observed)
    np.testing.assert_allclose(means, posterior_means(observed, n, deviation, exponent), rtol=1e-6)


@pytest.mark.parametrize(("n", "deviation"), [(1000, 0.02), (100_000, 2e-4), (100_000, 5e-3)])
def test_near_and_above_one(n, deviation):
    observed = np.array([1 - deviation, 1.0, 1 + deviation, 1 + 5 * deviation])
    expected = posterior_means(observed, n, deviation, 1.5)
    np.testing.assert_allclose(PowerLaw(n, deviation, 1.5).means(observed), expected, atol=0.01 * deviation)
    assert (expected < 1).all()


def test_order_is_kept_where_the_quadrature_changes():
    # Around 24 deviations, neighbours are summed over different nodes.
    law = PowerLaw(1_000_000, 0.002, 2.0)
    for step in (1e-9, float(np.spacing(0.048))):
        assert (np.diff(law.means(0.048 + step * np.arange(-1000.0, 1000.0))) >= 0).all()


def test_equal_observations_get_equal_means():
    observed = np.tile([0.3, 0.001, 0.02], 100)
    means = PowerLaw(10_000, 0.01, 1.5).means(observed).reshape(100, 3)
    assert (means == means[0]).all()


@pytest.mark.parametrize("deviation", [0.001, 0.02])
def test_the_fit_is_the_most_likely_exponent(deviation):
    rng = np.random.default_rng(3)
    n = 2000
    counts = np.arange(1, n + 1)
    weights = counts**-1.8
    observed = rng.choice(counts, 60, p=weights / weights.sum()) / n + rng.normal(0, deviation, 60)
    fitted = PowerLaw.fit(observed, n, deviation).exponent
    grid = np.linspace(0, 10, 101)
    likelihood = [log_likelihood(observed, n, deviation, s) for s in grid]
    assert fitted == pytest.approx(grid[int(np.argmax(likelihood))], abs=0.1)
    # Taking close observations together costs next to nothing.
    assert log_likelihood(observed, n, deviation, fitted) > max(likelihood) - 0.01


@pytest.mark.parametrize("exponent", [1.3, 2.0])
def test_the_fit_recovers_the_exponent(exponent):
    # 4000 draws: the standard error is below 0.03 (the Fisher information of a power law), so 0.15 is 5 of them.
    rng = np.random.default_rng(4)
    n = 100_000
    weights = np.arange(1, n + 1) ** -exponent
    shares = rng.choice(np.arange(1, n + 1), 4000, p=weights / weights.sum()) / n
    fitted = PowerLaw.fit(shares + rng.normal(0, 1e-4, 4000), n, 1e-4).exponent
    assert fitted == pytest.approx(exponent, abs=0.15)


def test_the_fit_stays_in_its_range():
    assert PowerLaw.fit(np.full(100, -0.5), 1000, 0.1).exponent == pytest.approx(10.0, abs=1e-4)
    assert PowerLaw.fit(np.full(100, 0.9), 1000, 0.01).exponent == pytest.approx(0.0, abs=1e-4)


def test_the_posterior_mean_has_the_least_squared_error_where_the_prior_holds():
    # Shares drawn from the law itself: the mean must beat the observation, the observation cut at 0, and the mean
    # under a wrong exponent. 20000 draws separate them by many standard errors.
    rng = np.random.default_rng(6)
    n, deviation, size = 10_000, 0.004, 20_000
    weights = np.arange(1, n + 1) ** -1.5
    shares = rng.choice(np.arange(1, n + 1), size, p=weights / weights.sum()) / n
    observed = shares + rng.normal(0, deviation, size)

    def error(guess):
        return ((guess - shares) ** 2).mean()

    best = error(PowerLaw(n, deviation, 1.5).means(observed))
    assert best < 0.6 * error(np.maximum(observed, 0))
    assert best < 0.99 * error(PowerLaw(n, deviation, 1.0).means(observed))
    assert best < 0.99 * error(PowerLaw(n, deviation, 2.2).means(observed))


def test_power_puts_the_parts_together():
    rng = np.random.default_rng(8)
    value = np.append([0.4, 0.2, 0.1], rng.normal(0, 0.01, 100))
    estimate = Estimate(value, np.full(103, 2e-4), 5000, noise=Noise(1e-4, 1e-3))
    law = PowerLaw.fit(value, 5000, 0.01)
    result = power(estimate)
    assert result.value.tolist() == law.means(value).tolist()
    assert (result.value >= 1 / 5000).all()
    assert power_ns(estimate).value.tolist() == norm_sub(result).value.tolist()
    assert power_ns(estimate).variance.tolist() == estimate.variance.tolist()


def test_memory_is_bounded():
    # 20000 values and ten million people: every count for every value would be 1.6 terabytes.
    rng = np.random.default_rng(9)
    observed = np.append([0.5, 0.1, 0.02], rng.normal(0, 6e-4, 19_997))
    tracemalloc.start()
    means = PowerLaw.fit(observed, 10_000_000, 6e-4).means(observed)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100e6
    assert means[0] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("field", "law"),
    [("n", (0, 0.1, 1.0)), ("deviation", (9, 0.0, 1.0)), ("deviation", (9, np.nan, 1.0)), ("exponent", (9, 0.1, 11.0))],
)
def test_impossible_laws_are_refused(field, law):
    with pytest.raises(InvalidValue, match=f"{field}: got"):
        PowerLaw(*law)
