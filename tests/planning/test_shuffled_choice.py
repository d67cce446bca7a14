"""Shuffled reports: estimates among fakes, the choice from a central epsilon, and what each adversary learns."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Sketch
from hubbub.mechanisms.frequency.local_hashing import SOLH
from hubbub.planning.shuffled import adversaries, choose_shuffled, choose_with_fakes, modulo_bias
from hubbub.privacy.amplify import amplify
from hubbub.privacy.fakes import estimate_without_fakes, mean_variance


def with_fakes(oracle, values, fakes, rng):
    """The sketch of reports and uniform fakes."""
    real = oracle.accumulate(oracle.randomize(values, rng))
    if isinstance(oracle, SOLH):
        return real + oracle.accumulate(oracle.reports(rng.uint64(fakes)))
    return real + Sketch(oracle.spec_id, fakes, np.bincount(rng.below(oracle.size, fakes), minlength=oracle.size))


@pytest.mark.parametrize(
    "oracle", [hb.GRR(epsilon=3.0, domain=10), hb.SOLH(epsilon=3.0, domain=10, buckets=16)], ids=["GRR", "SOLH"]
)
def test_fakes_are_accounted_for(oracle):
    # 200 batches: the mean of 10 estimates each within 5 of its standard errors: fails once in 100,000 seeds.
    rng, fakes = hb.Random(seed=7), 2000
    values = np.repeat(np.arange(4), [1000, 600, 300, 100])
    truth = np.bincount(values, minlength=10) / len(values)
    estimates = [estimate_without_fakes(oracle, with_fakes(oracle, values, fakes, rng), fakes) for _ in range(200)]
    errors = np.array([estimate.value - truth for estimate in estimates])
    assert (np.abs(errors.mean(axis=0)) < 5 * errors.std(axis=0) / np.sqrt(200)).all()
    stated = np.mean([estimate.variance for estimate in estimates], axis=0)
    np.testing.assert_allclose(errors.var(axis=0).mean(), stated.mean(), rtol=0.1)
    # Eq 9.5 takes 1/d off for local hashing too: wrong by a tenth in every cell, which this test would see.
    if isinstance(oracle, SOLH):
        assert np.abs(errors.mean(axis=0) - 0.1).min() > 20 * errors.std(axis=0).max() / np.sqrt(200)


def test_every_number_is_a_report():
    solh = hb.SOLH(epsilon=2.0, domain=50, buckets=8)
    numbers = hb.Random(seed=1).uint64(1000)
    reports = solh.reports(numbers)
    solh.check(reports)
    assert solh.numbers(reports).tolist() == numbers.tolist()
    sent = solh.randomize([3] * 1000, hb.Random(seed=2))
    assert solh.reports(solh.numbers(sent)).private["bucket"].tolist() == sent.private["bucket"].tolist()
    with pytest.raises(DecodeError, match="numbers"):
        solh.reports(np.arange(3))
    with pytest.raises(InvalidValue, match="power of two"):
        hb.SOLH(epsilon=2.0, domain=50, buckets=6)


def test_the_choice_keeps_to_the_target_and_is_the_best():
    choices = choose_shuffled(domain=100, n=20_000, epsilon=0.5, delta=1e-6)
    for choice in choices[:2]:
        assert amplify(choice.mechanism, n=20_000, delta=1e-6).epsilon <= 0.5 * (1 + 1e-6)
    assert choices == sorted(choices, key=lambda choice: choice.variance)
    local = hb.OLH(epsilon=0.5, domain=100).noise(20_000).floor
    assert choices[0].variance < local / 100


def test_fakes_leave_out_what_cannot_be_faked():
    choices = choose_shuffled(domain=100, n=5_000, epsilon=0.5, delta=1e-6, fakes=5_000)
    assert {type(choice.mechanism).__name__ for choice in choices} == {"GRR", "SOLH"}
    oue = hb.OUE(epsilon=1.0, domain=3)
    with pytest.raises(InvalidValue, match="oracle"):
        estimate_without_fakes(oue, Sketch(oue.spec_id, 10, np.zeros(3, dtype=np.int64)), 2)


def test_each_adversary_knows_more_than_the_one_before():
    solh = hb.SOLH(epsilon=5.0, domain=100, buckets=32)
    left = adversaries(solh, n=10_000, delta=1e-6, fakes=4_000)
    assert left.server.epsilon < left.server_and_people.epsilon < left.server_and_shufflers.epsilon
    assert left.server_and_people.epsilon == amplify(solh, n=1, delta=1e-6, fakes=4_000).epsilon
    assert left.server_and_shufflers.epsilon == solh.effective_epsilon
    assert left.server_and_shufflers.delta == 0
    # Corollary 9.5.2's formulas are looser, where they apply.
    assert left.server_and_people.epsilon < math.sqrt(14 * math.log(2 / 1e-6) * 32 / 4_000)


def test_fakes_of_numbers_modulo_a_domain_are_paid_for():
    for domain in (3, 1000, 65_000):
        grr = hb.GRR(epsilon=4.0, domain=domain)
        # The exact distance of a number below 2^64, as (its residue, its quotient), from a report that a device makes.
        over = Fraction((1 << 64) % domain, 1 << 64)
        assert modulo_bias(grr, 10) == pytest.approx(float(10 * over))
    grr = hb.GRR(epsilon=9.0, domain=60_000)
    uneven = adversaries(grr, n=10**6, delta=1e-9, fakes=10**6).server
    assert uneven.epsilon > amplify(grr, n=10**6, delta=1e-9, fakes=10**6).epsilon
    assert adversaries(grr, n=10**6, delta=1e-13, fakes=10**6).server.method == "local"  # too uneven for this delta


@pytest.mark.parametrize("fakes", [300, 3000])
def test_with_given_fakes_three_targets_are_kept(fakes):
    target: dict[str, Any] = {
        "domain": 16,
        "n": 2_000,
        "epsilon": 0.8,
        "delta": 1e-6,
        "colluding": 1.2,
        "most_local": 6.0,
    }
    for choice in choose_with_fakes(**target, fakes=fakes):
        left = adversaries(choice.mechanism, n=2_000, delta=1e-6, fakes=fakes)
        for spent, most in zip(left, (0.8, 1.2, 6.0), strict=True):
            assert spent.epsilon <= most * (1 + 1e-3)
        nearly = [spent.epsilon > 0.97 * most for spent, most in zip(left, (0.8, 1.2, 6.0), strict=True)]
        assert any(nearly)  # and no epsilon is given away


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "colluding", "most_local"), [(64, 1.0, 6.0), (4096, 0.5, 8.0)])
def test_the_search_keeps_to_three_targets_and_finds_the_best(domain, colluding, most_local):
    n, epsilon, delta = 10_000, 0.5, 1e-6
    target: dict[str, Any] = {"domain": domain, "n": n, "epsilon": epsilon, "delta": delta}
    target |= {"colluding": colluding, "most_local": most_local}
    best = choose_with_fakes(**target)[0]
    left = adversaries(best.mechanism, n=n, delta=delta, fakes=best.fakes)
    for spent, most in zip(left, (epsilon, colluding, most_local), strict=True):
        assert spent.epsilon <= most * (1 + 1e-3)
    assert best.variance == mean_variance(best.mechanism, n, best.fakes)
    for fakes in (best.fakes // 3, best.fakes * 3):
        other = choose_with_fakes(**target, fakes=fakes)[0]
        assert other.variance > 0.97 * best.variance


@pytest.mark.parametrize(
    ("field", "options"),
    [("domain", {"domain": 1}), ("n", {"n": 0}), ("delta", {"delta": 0.0}), ("colluding", {"colluding": -1.0})],
)
def test_targets_are_checked(field, options):
    with pytest.raises(InvalidValue, match=f"^{field}: "):
        choose_with_fakes(**{"domain": 9, "n": 100, "epsilon": 1.0, "delta": 1e-6, "fakes": 5, **options})
