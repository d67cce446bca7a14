import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hubbub.consistency import METHODS, base_cut, base_pos, norm, norm_cut, norm_mul, norm_sub, post_pos
from hubbub.consistency import project_simplex as project
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise
from hubbub.mechanisms.frequency.local_hashing import OLH
from tests.consistency.estimates import made

# Estimates as oracles make them: around shares, some negative, some above 1, some equal.
values = st.integers(1, 30).flatmap(
    lambda d: arrays(np.float64, d, elements=st.floats(-0.5, 1.5, allow_nan=False).map(lambda x: round(x, 3)))
)
every = pytest.mark.parametrize("name", METHODS)
TABLE = {  # Table 8.1, by hand: non-negative, sums to one
    "base-pos": (True, "no"),
    "post-pos": (True, "no"),
    "base-cut": (True, "no"),
    "norm": (False, "yes"),
    "norm-mul": (True, "yes"),
    "norm-cut": (True, "almost"),
    "norm-sub": (True, "yes"),
    "mle-apx": (True, "yes"),
    "power": (True, "no"),
    "power-ns": (True, "yes"),
}


def test_the_table_is_the_chapters():
    assert {name: (m.non_negative, m.sums_to_one) for name, m in METHODS.items() if name != "base"} == TABLE


@every
@given(value=values)
def test_promises_hold(name, value):
    method = METHODS[name]
    result = method.apply(made(value)).value
    if method.non_negative:
        assert (result >= 0).all()
    if method.sums_to_one == "yes":
        assert result.sum() == pytest.approx(1.0, abs=1e-11)
    if method.sums_to_one == "almost":
        assert result.sum() <= 1 + 1e-8


@every
def test_what_is_not_promised_does_not_hold(name):
    # One input on which each "no" of the table shows: 0.45 and 0.4 are far above the threshold, the sum is 1.35.
    method = METHODS[name]
    result = method.apply(made([0.45, 0.4, 0.35, 0.25, -0.05, -0.05])).value
    assert method.non_negative == bool((result >= 0).all())
    if method.sums_to_one != "yes":
        assert abs(result.sum() - 1) > 0.01


@every
@given(value=values)
def test_order_is_kept(name, value):
    method = METHODS[name]
    result = method.apply(made(value)).value
    rank = np.argsort(value, kind="stable")
    rises = np.diff(result[rank])
    same = np.diff(value[rank]) == 0
    assert (rises >= 0).all()
    assert (rises[same] == 0).all()
    if method.order == "strict":
        assert (rises[~same] > 0).all()


@every
def test_weak_order_ties_something(name):
    # The chapter says "if and only if"; a method that sets values to 0 makes different ones equal. Power does so only
    # where rounding does.
    result = METHODS[name].apply(made([0.7, 0.4, 0.1, -0.1, -0.2])).value
    tied = len(set(result.tolist())) < 5
    assert tied == (METHODS[name].order == "weak" and name != "power")


@every
@pytest.mark.parametrize(
    "value", [[-0.3, -0.1, -0.2], [0.0, 0.0, 0.0], [0.7, 0.3], [2.0, 1.5], [0.5, 0.5], [0.4], [1.0, 0.0]]
)
def test_degenerate_estimates(name, value):
    method = METHODS[name]
    result = method.apply(made(value)).value
    assert np.isfinite(result).all()
    assert (result >= 0).all() or not method.non_negative
    if method.sums_to_one == "yes":
        assert result.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["base", "base-pos", "norm", "norm-mul", "norm-cut", "norm-sub", "mle-apx"])
def test_consistent_shares_stay(name):
    value = [0.5, 0.25, 0.125, 0.125, 0.0]
    np.testing.assert_allclose(METHODS[name].apply(made(value)).value, value, atol=1e-15)


@pytest.mark.parametrize(
    "name", ["base", "base-pos", "base-cut", "norm", "norm-mul", "norm-cut", "norm-sub", "mle-apx"]
)
@given(value=values)
def test_applying_twice_changes_nothing(name, value):
    apply = METHODS[name].apply
    once = apply(made(value))
    np.testing.assert_allclose(apply(once).value, once.value, atol=1e-12)


@every
def test_a_new_estimate_and_the_old_one_untouched(name):
    before = made([0.7, 0.4, 0.1, -0.1])
    value, variance = before.value.copy(), before.variance.copy()
    after = METHODS[name].apply(before)
    assert before.value.tolist() == value.tolist()
    assert before.variance.tolist() == variance.tolist()
    assert before.bias == "none"
    assert after.n == before.n
    assert after.bias == ("none" if name in ("base", "norm") else "consistent")
    if name != "norm":
        assert after.variance.tolist() == variance.tolist()
        assert after.noise == before.noise


@every
def test_heuristic_stays_heuristic_and_labels_stay(name):
    after = METHODS[name].apply(made([0.7, 0.4, -0.1], bias="heuristic", labels=("a", "b", "c")))
    assert after.bias == "heuristic"
    assert after.labels == ("a", "b", "c")


@pytest.mark.parametrize("name", [name for name in METHODS if name != "base"])
def test_quantities_and_numbers_that_are_none_are_refused(name):
    with pytest.raises(InvalidValue, match="kind: got 'quantity'"):
        METHODS[name].apply(made([0.5, 0.5], kind="quantity"))
    with pytest.raises(InvalidValue, match="value: got"):
        METHODS[name].apply(made([0.5, np.nan]))


@every
@pytest.mark.parametrize("noise", [None, Noise(0.0, 0.0)])
def test_noise_is_asked_for_where_it_is_needed(name, noise):
    estimate = made([0.7, 0.4, -0.1], noise=noise)
    if METHODS[name].needs_noise:
        with pytest.raises(InvalidValue, match=f"noise: got .*{name.split('-')[0]}"):
            METHODS[name].apply(estimate)
    else:
        METHODS[name].apply(estimate)


def test_base_pos_and_post_pos():
    estimate = made([0.7, 0.4, -0.1])
    assert base_pos(estimate).value.tolist() == [0.7, 0.4, 0.0]
    assert post_pos(estimate.linear(np.eye(3))).value.tolist() == base_pos(estimate).value.tolist()
    assert post_pos(estimate.linear([0, 1, 1])).value.tolist() == pytest.approx([0.3])


def test_base_cut_uses_the_oracles_threshold():
    olh = OLH(epsilon=1.0, domain=100)
    threshold = olh.threshold(5000, alpha=2.0)
    value = np.zeros(100)
    value[:3] = threshold * 0.999, threshold * 1.001, -threshold * 1.001
    estimate = Estimate(value, np.full(100, 1e-3), 5000, noise=olh.noise(5000))
    assert np.flatnonzero(base_cut(estimate).value).tolist() == [1]
    assert base_cut(estimate).value[1] == value[1]
    assert np.flatnonzero(base_cut(estimate, alpha=0.05).value).tolist() == []
    assert np.flatnonzero(base_cut(estimate, alpha=3.0).value).tolist() == [0, 1]


def test_base_cut_lets_about_alpha_of_nothing_pass():
    # 40000 draws of pure noise in 40 domains of 1000: the number that pass is Poisson(80); outside 80 +- 45 has
    # probability below 1e-6, and alpha off by a factor of 2 gives 40 or 160.
    rng = np.random.default_rng(1)
    passed = sum(np.count_nonzero(base_cut(made(rng.normal(0, 0.1, 1000))).value) for _ in range(40))
    assert 35 < passed < 125


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf, True])
def test_bad_alpha_is_refused(alpha):
    with pytest.raises(InvalidValue, match="alpha: got"):
        base_cut(made([0.5, 0.5]), alpha)


@pytest.mark.parametrize("alpha", [2.0, 50.0])
def test_a_threshold_is_never_below_zero(alpha):
    # alpha of at least half the domain's size: quantile of 1/2 or less.
    assert base_cut(made([0.001, -0.001]), alpha).value.tolist() == [0.001, 0.0]


def test_norm_mul_scales():
    np.testing.assert_allclose(norm_mul(made([0.9, 0.3, -0.2])).value, [0.75, 0.25, 0.0])
    assert norm_mul(made([-0.1, -0.2])).value.tolist() == [0.5, 0.5]
    assert norm_mul(made([5e-324, 0.0])).value.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ([0.5, 0.3, -0.4], [0.5, 0.3, 0.0]),  # not enough to cut
        ([0.5, 0.375, 0.25, 0.125, -0.4], [0.5, 0.375, 0.0, 0.0, 0.0]),  # too much
        ([0.5, 0.3, 0.3], [0.5, 0.0, 0.0]),  # equals are kept or cut together
        ([1.25, 0.25], [1.0, 0.0]),  # something is kept always
        ([0.75, 0.75, 0.1], [0.5, 0.5, 0.0]),
        ([0.34, 0.28, 0.27, 0.11], [0.34, 0.28, 0.27, 0.11]),  # above 1 by rounding alone
    ],
)
def test_norm_cut(value, result):
    assert norm_cut(made(value)).value.tolist() == result


@given(values)
def test_norm_cut_finds_the_smallest_threshold(value):
    # Against the definition: every candidate threshold tried in turn.
    positive = np.maximum(value, 0)
    feasible = [t for t in np.append(positive, 0.0) if positive[positive >= t].sum() <= 1 + 1e-9]
    if feasible:
        expected = np.where(positive >= min(feasible), positive, 0.0)
        assert norm_cut(made(value)).value.tolist() == expected.tolist()


@given(values)
def test_norm_sub_is_the_projection(value):
    result = norm_sub(made(value)).value
    np.testing.assert_allclose(result, project(value), atol=1e-15)
    # And the definition: one delta, added to all that stay above 0.
    positive = result > 1e-12
    deltas = (result - value)[positive]
    assert np.ptp(deltas) < 1e-12
    assert (value[~positive] + deltas.mean() <= 1e-11).all()


@given(values)
def test_norm_adds_one_number(value):
    assert np.ptp(norm(made(value)).value - value) < 1e-14
