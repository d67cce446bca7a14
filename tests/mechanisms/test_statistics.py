"""Measured variance and coverage of every unbiased oracle, at every setting.

Variance: at least 40,000 squared errors a setting, so that their mean has a standard error of about 0.7% and the band
of 3% is four of them: a failure probability below 1e-4 a setting, fixed by the seed. Coverage: at least 5,000
intervals, a standard error of 0.3%; the band 93-97% is more than six of them.
"""

import math

import numpy as np
import pytest

import hubbub as hb
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.numeric.mean import MeanMechanism

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
DOMAINS = (2, 3, 16, 1024)
ORACLES = [kind for kind in MECHANISMS.values() if issubclass(kind, FrequencyOracle) and kind.bias == "none"]
MEANS = [kind for kind in MECHANISMS.values() if issubclass(kind, MeanMechanism)]


def population(n: int, d: int) -> np.ndarray:
    """A third holds the first value, the rest are spread over half of the values, the first two at least."""
    return np.where(np.arange(n) % 3 == 0, 0, np.arange(n) % max(2, d // 2))


def errors(oracle: FrequencyOracle, n: int, repetitions: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The errors and the stated standard errors of all values in a number of collections of n people."""
    values, rng = population(n, oracle.size), hb.Random(seed=seed)
    truth = np.bincount(values, minlength=oracle.size) / n
    off, stated = [], []
    block = max(1, min(repetitions, 2_000_000 // (n * max(1, oracle.size // 64))))
    for start in range(0, repetitions, block):
        count = min(block, repetitions - start)
        reports = oracle.randomize(np.tile(values, count), rng)
        for k in range(count):
            estimate = oracle.estimate(oracle.accumulate(reports[k * n : (k + 1) * n]))
            off.append(estimate.value - truth)
            stated.append(estimate.stderr)
    return np.array(off), np.array(stated)


def check_variance(oracle: FrequencyOracle, n: int = 120) -> None:
    # GRR's two shares are one number twice, and subset selection's nearly so: count half of the values as independent.
    repetitions = math.ceil(40_000 / max(1, oracle.size // 2))
    off, _ = errors(oracle, n, repetitions, seed=1)
    truth = np.bincount(population(n, oracle.size), minlength=oracle.size) / n
    predicted = oracle.noise(n).variance(truth).mean()
    assert abs((off**2).mean() / predicted - 1) < 0.03


def check_coverage(oracle: FrequencyOracle) -> None:
    q = oracle.moments().false_mean if oracle.support_range == (0, 1) else 1.0
    n = max(400, math.ceil(30 / q))
    repetitions = math.ceil(5_000 / max(1, oracle.size // 2))
    off, stated = errors(oracle, n, max(repetitions, 12), seed=2)
    assert 0.93 < (np.abs(off) <= 1.959964 * stated).mean() < 0.97


@pytest.mark.slow
@pytest.mark.parametrize("d", DOMAINS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", ORACLES, ids=lambda kind: kind.__name__)
def test_variance_and_coverage_everywhere(kind: type[FrequencyOracle], epsilon: float, d: int) -> None:
    oracle = kind(epsilon=epsilon, domain=d)
    check_variance(oracle)
    check_coverage(oracle)


def test_a_wrong_variance_is_noticed() -> None:
    class Optimist(hb.OUE):
        def noise(self, n: int) -> object:  # type: ignore[override]
            return super().noise(round(n * 1.08))

    with pytest.raises(AssertionError):
        check_variance(Optimist(epsilon=1.0, domain=64))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", MEANS, ids=lambda kind: kind.__name__)
def test_means_are_unbiased_with_the_stated_variance(kind: type[MeanMechanism], epsilon: float) -> None:
    mechanism = kind(epsilon=epsilon, low=0.0, high=10.0)
    n, repetitions, rng = 200, 40_000, hb.Random(seed=3)
    values = np.where(np.arange(n) % 2 == 0, 9.0, 6.0)
    reports = mechanism.randomize(np.tile(values, repetitions), rng)
    estimates = [mechanism.estimate(mechanism.accumulate(reports[k * n : (k + 1) * n])) for k in range(repetitions)]
    off = np.array([float(estimate.value[0]) for estimate in estimates]) - values.mean()
    predicted = np.mean([mechanism.variance(n, value) for value in (9.0, 6.0)])
    assert abs(off.mean()) < 5 * math.sqrt(predicted / repetitions)  # failure probability below 1e-6
    assert abs((off**2).mean() / predicted - 1) < 0.03
    stated = np.mean([float(estimate.variance[0]) for estimate in estimates])
    assert predicted * 0.97 < stated  # stochastic rounding cannot tell the values' spread, and states more


@pytest.mark.parametrize(("epsilon", "variance"), [(1.0, 4.2890), (2.0, 1.0423), (4.0, 0.2190)], ids=["1", "2", "4"])
def test_the_hybrid_mechanism_has_the_variance_of_the_formula(epsilon: float, variance: float) -> None:
    hybrid = hb.Hybrid(epsilon=epsilon)
    for value in (-1.0, -0.3, 0.0, 0.9):
        assert hybrid.variance(1, value) == pytest.approx(variance, abs=5e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_parts_of_the_hybrid_mechanism_have_the_variances_of_the_formulas(epsilon: float) -> None:
    power, half = math.exp(epsilon), math.exp(epsilon / 2)
    for value in (0.0, 0.5, 1.0):
        rounding = ((power + 1) / (power - 1)) ** 2 - value**2
        piecewise = value**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
        assert hb.StochasticRounding(epsilon=epsilon).variance(1, value) == pytest.approx(rounding, rel=1e-9)
        assert hb.Piecewise(epsilon=epsilon).variance(1, value) == pytest.approx(piecewise, rel=2e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_staircase_has_the_least_variance_of_additive_noise(epsilon: float) -> None:
    # Geng and Viswanath, 2014, for a range of 2; the grid costs at most 1%.
    b = math.exp(-epsilon)
    least = 4 * ((b * (1 + b) / 2) ** (2 / 3) + b) / (1 - b) ** 2
    assert least * 0.99 < hb.Staircase(epsilon=epsilon, turns=64).variance(1, 0.5) < least * 1.01


def test_one_bit_mean_is_stochastic_rounding() -> None:
    # Ding, Kulkarni and Yekhanin, 2017, Eq 1: of x in [0, m], a 1 has the probability below.
    power, numbers = math.e, [0.0, 3.0, 7.5, 10.0]
    rounding = hb.StochasticRounding(epsilon=1.0, low=0.0, high=10.0)
    ends = rounding.outputs()
    assert ends is not None
    chances = [1 / (power + 1) + x / 10 * (power - 1) / (power + 1) for x in numbers]
    assert np.exp(rounding.log_prob(ends, numbers))[1] == pytest.approx(chances, rel=1e-9)
    numbers_of_bits = [10 * (bit * (power + 1) - 1) / (power - 1) for bit in (0, 1)]
    assert 5 + 5 * rounding.number_of(np.arange(2)) == pytest.approx(numbers_of_bits, rel=1e-9)
