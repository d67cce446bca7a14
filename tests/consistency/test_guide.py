"""The guideline for choosing a method, and the choice by a population like the one that was estimated."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.consistency import METHODS, Choice, answer, base_cut, choose_method, consistent, norm, norm_sub, power_ns
from hubbub.consistency.guide import round_shares
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.unary import OUE
from hubbub.random.source import Random
from tests.consistency.estimates import ORACLES, collect, made

D = 64
COUNTS = [2000, 1000, 500, 300, 200] + [0] * (D - 5)


@pytest.fixture(scope="module")
def skewed():
    oracle = OUE(epsilon=1.0, domain=D)
    return oracle, collect(oracle, COUNTS, 1, 31)[0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50).filter(lambda x: sum(x) > 1e-6), st.integers(1, 10**7))
def test_rounding_gives_n_people_each_within_one(weights, n):
    shares = np.array(weights) / np.sum(weights)
    counts = round_shares(shares, n)
    assert counts.sum() == n
    assert (np.abs(counts - shares * n) <= 1).all()
    assert (counts >= 0).all()


def test_the_largest_remainders_go_up():
    assert round_shares([0.25, 0.31, 0.44], 10).tolist() == [3, 3, 4]
    assert round_shares([0.22, 0.37, 0.41], 10).tolist() == [2, 4, 4]


def test_rounding_refuses_what_does_not_sum_to_one():
    for shares in ([0.5, 0.6], [0.1, 0.2]):
        with pytest.raises(InvalidValue, match="shares: got"):
            round_shares(shares, 100)


def test_single_values_want_the_tail_removed(skewed):
    # Of 64 values 59 are empty: whatever leaves their noise in place has several times the error.
    oracle, estimate = skewed
    choice = choose_method(oracle, estimate, np.eye(D), rng=Random(seed=32), repetitions=8)
    assert isinstance(choice, Choice)
    assert set(choice.errors) == set(choice.stderr) == set(METHODS)
    assert list(choice.errors.values()) == sorted(choice.errors.values())
    assert choice.method == next(iter(choice.errors))
    assert choice.method not in ("base", "norm", "base-pos", "post-pos", "norm-mul")
    assert choice.errors[choice.method] < 0.4 * choice.errors["base"]
    # On single values Post-Pos is Base-Pos, and both cut the error of Base about in half.
    assert choice.errors["post-pos"] == choice.errors["base-pos"]
    assert 0.35 < choice.errors["base-pos"] / choice.errors["base"] < 0.7


def test_large_sets_want_the_sum_to_be_one(skewed):
    oracle, estimate = skewed
    rows = np.ones((1, D)) - np.eye(D)[-3:]
    choice = choose_method(oracle, estimate, rows, rng=Random(seed=33), repetitions=8)
    assert METHODS[choice.method].sums_to_one != "no"
    assert choice.errors["base-pos"] > 20 * choice.errors["norm"]
    assert choice.errors["base"] > 20 * choice.errors[choice.method]


def test_errors_are_those_of_the_real_population(skewed):
    # The synthetic population stands for the real one: its errors predict those of fresh reports. Base's is known
    # exactly; with 30 repetitions of 64 values each, 25% is more than 6 standard errors.
    oracle, estimate = skewed
    choice = choose_method(
        oracle, estimate, np.eye(D), rng=Random(seed=34), repetitions=30, methods=["base", "norm-sub"]
    )
    n, truth = sum(COUNTS), np.array(COUNTS) / sum(COUNTS)
    assert choice.errors["base"] == pytest.approx(oracle.noise(n).variance(truth).mean(), rel=0.25)
    fresh = collect(oracle, COUNTS, 30, 35)
    real = np.mean([((answer(e, np.eye(D), "norm-sub").value - truth) ** 2).mean() for e in fresh])
    assert choice.errors["norm-sub"] == pytest.approx(real, rel=0.35)
    assert choice.stderr["base"] < 0.1 * choice.errors["base"]


def test_the_same_seed_gives_the_same_choice(skewed):
    oracle, estimate = skewed
    first, second, other = (
        choose_method(oracle, estimate, np.eye(D), rng=Random(seed=s), repetitions=2, methods=["norm", "base"])
        for s in (1, 1, 2)
    )
    assert first == second
    assert first.errors != other.errors


def test_differences_leave_post_pos_out(skewed):
    oracle, estimate = skewed
    row = np.eye(D)[0] - np.eye(D)[1]
    choice = choose_method(oracle, estimate, row, rng=Random(seed=36), repetitions=2)
    assert set(choice.errors) == set(METHODS) - {"post-pos"}


def test_a_domain_of_names():
    grr = GRR(epsilon=2.0, domain=["a", "b", "c"])
    estimate = grr.estimate(grr.accumulate(grr.randomize(["a"] * 70 + ["c"] * 30, Random(seed=37))))
    choice = choose_method(grr, estimate, np.eye(3), rng=Random(seed=38), repetitions=3)
    # Its estimates sum to 1 by themselves: Norm has nothing to do.
    assert choice.errors["norm"] == pytest.approx(choice.errors["base"])


@pytest.mark.parametrize("kind", ORACLES, ids=lambda kind: kind.__name__)
def test_every_oracle_can_be_tried(kind):
    oracle = next(iter(kind.examples()))
    domain = range(oracle.size)
    estimate = oracle.estimate(oracle.accumulate(oracle.randomize([0] * 150 + [1] * 50, Random(seed=39))))
    choice = choose_method(oracle, estimate, np.eye(len(domain)), rng=Random(seed=40), repetitions=2)
    assert set(choice.errors) == set(METHODS)
    assert all(np.isfinite(list(choice.errors.values())))


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("repetitions", {"repetitions": 1}),
        ("repetitions", {"repetitions": True}),
        ("method", {"methods": ["best"]}),
        ("methods", {"methods": []}),
        ("mechanism", {"mechanism": OLH(epsilon=1.0, domain=D + 1)}),
        ("mechanism", {"mechanism": None}),
        ("weights", {"queries": np.eye(3)}),
        ("weights", {"queries": np.full((1, D), np.nan)}),
    ],
)
def test_bad_arguments_are_refused(field, options, skewed):
    oracle, estimate = skewed
    arguments = {"mechanism": oracle, "estimate": estimate, "queries": np.eye(D), "rng": Random(seed=1), **options}
    with pytest.raises(InvalidValue, match=f"^{field}: got"):
        choose_method(**arguments)


# -- the guideline --------------------------------------------------------------------------------------------------

VALUE = [0.7, 0.4, 0.1, -0.1, -0.2]


@pytest.mark.parametrize(("purpose", "method"), [("single", base_cut), ("frequent", norm), ("set", power_ns)])
def test_the_guideline(purpose, method):
    estimate = made(VALUE)
    assert consistent(estimate, for_=purpose).value.tolist() == method(estimate).value.tolist()


@pytest.mark.parametrize("name", [name for name in METHODS if name != "post-pos"])
def test_by_name(name):
    estimate = made(VALUE)
    assert consistent(estimate, method=name).value.tolist() == METHODS[name].apply(estimate).value.tolist()


def test_post_pos_is_for_results():
    with pytest.raises(InvalidValue, match="results of `answer`"):
        consistent(made(VALUE), method="post-pos")


@pytest.mark.parametrize(
    "options", [{}, {"for_": "set", "method": "norm"}, {"for_": "all"}, {"method": "norm_sub"}, {"method": ""}]
)
def test_anything_else_is_refused(options):
    with pytest.raises(InvalidValue, match="allowed: one of"):
        consistent(made(VALUE), **options)


def test_answers_are_sums_of_processed_shares():
    estimate, rows = made(VALUE), [[1, 0, 0, 1, 1], [0, 0, 0, 1, 1]]
    result = answer(estimate, rows, "norm-sub")
    np.testing.assert_allclose(result.value, np.array(rows) @ norm_sub(estimate).value)
    assert result.bias == "consistent"
    assert answer(estimate, rows).value.tolist() == power_ns(estimate).linear(rows).value.tolist()
    assert answer(estimate, rows, "base").value.tolist() == estimate.linear(rows).value.tolist()


def test_post_pos_applies_after_the_sum():
    estimate, rows = made(VALUE), [[1, 0, 0, 1, 1], [0, 0, 0, 1, 1]]
    result = answer(estimate, rows, "post-pos")
    np.testing.assert_allclose(result.value, [0.4, 0.0])  # before the sum it would be 0.7
    assert result.value.tolist() == METHODS["post-pos"].apply(estimate.linear(rows)).value.tolist()


def test_post_pos_refuses_differences():
    with pytest.raises(InvalidValue, match="weights: got"):
        answer(made(VALUE), [1, -1, 0, 0, 0], "post-pos")
    assert answer(made(VALUE), [0, 1, -1, 0, 0], "base").value[0] == pytest.approx(0.3)


def test_unknown_methods_and_bad_weights_are_refused():
    with pytest.raises(InvalidValue, match="method: got 'best'"):
        answer(made(VALUE), [1] * 5, "best")
    with pytest.raises(InvalidValue, match="5 finite weights"):
        answer(made(VALUE), [1] * 4, "norm")
