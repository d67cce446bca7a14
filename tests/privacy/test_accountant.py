"""Numerical composition: against exact compositions, and against all outcomes of tiny shuffled batches."""

import math
from collections import defaultdict
from statistics import NormalDist

import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.privacy.accountant import accounted, composed_epsilon, losses_of, profile_of
from hubbub.privacy.amplify import amplify, compose
from tests.privacy.test_amplification import report_table

NORMAL = NormalDist()


def gaussian(scale: float):
    """The profile of two normal distributions with means `scale` apart."""

    def profile(epsilon: float) -> float:
        above, below = NORMAL.cdf(scale / 2 - epsilon / scale), NORMAL.cdf(-scale / 2 - epsilon / scale)
        return max(above - math.exp(epsilon) * below, 0.0)

    return profile


def binary(local: float):
    """The profile of randomised response of one bit."""
    return lambda epsilon: max(math.exp(local) - math.exp(epsilon), 0.0) / (math.exp(local) + 1)


def smallest(profile, delta: float) -> float:
    low, high = 0.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if profile(middle) > delta else (low, middle)
    return high


@pytest.mark.parametrize("times", [1, 7, 100, 2000])
def test_normal_distributions_add_up_as_they_should(times: int):
    # Exactly: the scale grows by the root of the number.
    exact = smallest(gaussian(0.02 * math.sqrt(times)), 1e-6)
    found = composed_epsilon(gaussian(0.02), times=times, delta=1e-6, most=10.0)
    assert found is not None
    assert exact <= found <= 1.01 * exact


@pytest.mark.parametrize("times", [1, 2, 3, 10, 200])
def test_random_bits_add_up_as_they_should(times: int):
    # Exactly: the number of true bits is binomial.
    local = 0.4
    true = math.exp(local) / (1 + math.exp(local))

    def exact(epsilon: float) -> float:
        rows = range(times + 1)
        chances = [math.comb(times, k) * true**k * (1 - true) ** (times - k) for k in rows]
        return sum(max(chances[k] - math.exp(epsilon) * chances[times - k], 0.0) for k in rows)

    found = composed_epsilon(binary(local), times=times, delta=1e-6, most=local)
    assert found is not None
    assert smallest(exact, 1e-6) <= found * (1 + 1e-9)
    assert found <= 1.01 * smallest(exact, 1e-6) + 0.004


def batch_worlds(n: int) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
    """The chances of all outcomes of a shuffled batch of bits, for one person's two values; others hold the first."""
    table = report_table(hb.GRR(epsilon=0.7, domain=2))

    def world(value: int) -> dict[tuple[int, ...], float]:
        ones = {0: 1.0}
        for held in (value, *[0] * (n - 1)):
            longer: dict[int, float] = defaultdict(float)
            for count, chance in ones.items():
                longer[count] += chance * float(table[held, 0])
                longer[count + 1] += chance * float(table[held, 1])
            ones = longer
        return {(count,): chance for count, chance in ones.items()}

    return world(0), world(1)


@pytest.mark.parametrize(("n", "times"), [(2, 1), (2, 2), (3, 2), (3, 4), (5, 3)])
def test_no_outcome_of_tiny_batches_exceeds_it(n: int, times: int):
    first, second = batch_worlds(n)
    worlds: list[dict[tuple[int, ...], float]] = [{(): 1.0}, {(): 1.0}]
    for _ in range(times):
        for place, batch in enumerate((first, second)):
            worlds[place] = {(*a, *b): x * y for a, x in worlds[place].items() for b, y in batch.items()}
    mechanism = hb.GRR(epsilon=0.7, domain=2)
    for delta in (0.02, 0.1):
        epsilon = accounted(mechanism, n=n, delta=delta, times=times).epsilon
        for left, right in (worlds, worlds[::-1]):
            exact = sum(max(chance - math.exp(epsilon) * right[outcome], 0.0) for outcome, chance in left.items())
            assert exact <= delta + 1e-12


def test_it_is_much_less_than_what_is_added_up():
    mechanism = hb.OLH(epsilon=1.0, domain=100)
    day = amplify(mechanism, n=10_000, delta=1e-6)
    year = accounted(mechanism, n=10_000, delta=1e-6, times=365)
    advanced = compose([amplify(mechanism, n=10_000, delta=1e-6 / 730)] * 365, slack=5e-7)
    assert year.method == "accountant"
    assert year.epsilon < 0.45 * advanced.epsilon < 0.4 * 365 * day.epsilon
    assert accounted(mechanism, n=10_000, delta=1e-6, times=1).epsilon == pytest.approx(day.epsilon, rel=0.03)
    epsilons = [accounted(mechanism, n=10_000, delta=1e-6, times=times).epsilon for times in (1, 2, 5, 30, 365)]
    assert epsilons == sorted(epsilons)


def test_losses_are_a_distribution_with_at_least_the_profile():
    profile = profile_of(hb.GRR(epsilon=1.0, domain=3), 1000, delta=1e-6)
    losses, step = losses_of(profile, 0.3)
    assert losses.chances.sum() + losses.certain == pytest.approx(1.0)
    assert (losses.chances >= 0).all()
    for number in range(60):
        assert losses.delta(number * 0.004, step) >= profile(number * 0.004) * (1 - 1e-3 - 1e-9)


def test_a_loss_that_is_certain_stays_certain():
    # Each output gives everything away with probability .01: of five, one does with probability 1 - .99^5 = .049.
    def leaking(epsilon: float) -> float:
        return max(binary(0.4)(epsilon), 0.01)

    assert composed_epsilon(leaking, times=5, delta=0.048, most=0.4) is None
    assert composed_epsilon(leaking, times=5, delta=0.06, most=0.4) is not None


def test_without_amplification_the_local_epsilon_is_left():
    nothing_to_hide_in = accounted(hb.GRR(epsilon=1.0, domain=3), n=1, delta=1e-6, times=3)
    assert nothing_to_hide_in.epsilon <= 3.0
    assert accounted(hb.GRR(epsilon=30.0, domain=3), n=1000, delta=1e-6, times=3).epsilon <= 90.0 + 1e-9


def test_what_cannot_be_added_up_is_refused():
    with pytest.raises(InvalidValue, match="times"):
        accounted(hb.GRR(epsilon=1.0, domain=3), n=10, delta=1e-6, times=0)
    with pytest.raises(InvalidValue, match="second batch"):
        accounted(hb.Loloha(epsilon=1.0, domain=3), n=1000, delta=1e-6, times=2)
