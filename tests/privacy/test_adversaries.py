"""The guarantees against three adversaries, fakes that are drawn as shares, and the search for their number."""

import math
from fractions import Fraction

import pytest

import hubbub as hb
from hubbub.core.errors import InvalidValue
from hubbub.planning.shuffled import adversaries, choose_with_fakes, modulo_bias
from hubbub.privacy.amplify import amplify
from hubbub.privacy.fakes import mean_variance


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
    target = {"domain": 16, "n": 2_000, "epsilon": 0.8, "delta": 1e-6, "colluding": 1.2, "most_local": 6.0}
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
    target = {"domain": domain, "n": n, "epsilon": epsilon, "delta": delta}
    best = choose_with_fakes(**target, colluding=colluding, most_local=most_local)[0]
    left = adversaries(best.mechanism, n=n, delta=delta, fakes=best.fakes)
    for spent, most in zip(left, (epsilon, colluding, most_local), strict=True):
        assert spent.epsilon <= most * (1 + 1e-3)
    assert best.variance == mean_variance(best.mechanism, n, best.fakes)
    for fakes in (best.fakes // 3, best.fakes * 3):
        other = choose_with_fakes(**target, colluding=colluding, most_local=most_local, fakes=fakes)[0]
        assert other.variance > 0.97 * best.variance


@pytest.mark.parametrize(
    ("field", "options"),
    [("domain", {"domain": 1}), ("n", {"n": 0}), ("delta", {"delta": 0.0}), ("colluding", {"colluding": -1.0})],
)
def test_targets_are_checked(field, options):
    with pytest.raises(InvalidValue, match=f"^{field}: "):
        choose_with_fakes(**{"domain": 9, "n": 100, "epsilon": 1.0, "delta": 1e-6, "fakes": 5, **options})
