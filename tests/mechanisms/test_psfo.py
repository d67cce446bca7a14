"""Padding and sampling: exact epsilons, no amplification but GRR's, sets of any size, the choice of the oracle."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from hubbub import FLH, GRR, OLH, OUE, PSFO, Ordinal, Random, Sets
from hubbub.checks.heuristic import check_heuristic_error
from hubbub.checks.probability import enumerate_outputs, worst_ratio
from hubbub.checks.sampling import check_weights
from hubbub.core.domain.base import Values
from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.sets.psfo import amplified_grr
from tests.shared.answers import estimated, outputs_of

TABLE_5_1 = {
    0.1: (0.19, 0.42, 0.72, 1.13, 1.83, 2.44),
    0.5: (0.83, 1.45, 2.01, 2.64, 3.51, 4.19),
    1.0: (1.49, 2.26, 2.90, 3.57, 4.46, 5.15),
    2.0: (2.62, 3.49, 4.17, 4.86, 5.77, 6.46),
    4.0: (4.68, 5.59, 6.29, 6.98, 7.89, 8.59),
}


@pytest.mark.parametrize("epsilon", TABLE_5_1)
def test_table_5_1_entry_for_entry(epsilon: float):
    amplified = [amplified_grr(epsilon, 1000, length).effective_epsilon for length in (2, 5, 10, 20, 50, 100)]
    assert [round(epsilon, 2) for epsilon in amplified] == list(TABLE_5_1[epsilon])


@pytest.mark.parametrize("length", [2, 5, 10, 50])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_epsilon_of_grr_is_exact_for_sets_of_every_size(length: int, epsilon: float):
    size = 2 * length + 3
    psfo = PSFO(epsilon=epsilon, domain=Sets(Ordinal(size), most=size), length=length, oracle="GRR")
    held = [range(k) for k in sorted({0, 1, length - 1, length, length + 1, size})]
    chances = psfo.prob(outputs_of(psfo), [*held, range(length, 2 * length), [size - 1]])
    worst = max(max(row) / min(row) for row in chances.tolist())
    assert worst == psfo.ratio()
    assert epsilon * (1 - 1e-12) < psfo.effective_epsilon <= epsilon
    assert all(sum(column, Fraction(0)) == 1 for column in chances.T.tolist())


@pytest.mark.parametrize("oracle", ["OLH", "OUE", "SUE", "SubsetSelection"])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_other_oracles_are_never_amplified(oracle: str, length: int):
    psfo = PSFO(epsilon=1.0, domain=Sets(Ordinal(7), most=length), oracle=oracle)
    worst = worst_ratio(enumerate_outputs(psfo, 1))
    if oracle == "SubsetSelection" and length > 1:  # its subsets may be too small to hold a whole set
        assert worst <= psfo.ratio() == psfo.inner.ratio()
    else:
        assert worst == psfo.ratio() == psfo.inner.ratio()


@pytest.mark.parametrize("kind", [OLH, OUE])
def test_an_oracle_that_counts_on_amplification_is_refused(kind: type[Any]):
    inner = kind(epsilon=amplified_grr(1.0, 4, 2).effective_epsilon, domain=6)
    with pytest.raises(InvalidValue, match=r"epsilon: got 1\.0; allowed: at least 1\.4"):
        PSFO(epsilon=1.0, domain=4, length=2, oracle=inner)


@pytest.mark.parametrize("oracle", ["GRR", "OLH", "OUE", "Hadamard", "SHE"])
def test_estimates_average_what_the_sets_say(oracle: str):
    # 60 estimates of each of 6 shares: an average 5 standard errors off is a chance of 6e-7 each, 2e-5 in all.
    psfo = PSFO(epsilon=2.0, domain=Sets(Ordinal(6), most=6), length=3, oracle=oracle)
    people = psfo.encode([{0, 1, 2, 3, 4, 5}] * 300 + [{0, 1}] * 400 + [set()] * 300 + [{5, 2, 0}] * 500)
    wanted = psfo.truth(people)
    assert wanted.round(4).tolist() == [0.7, 0.3667, 0.4333, 0.1, 0.1, 0.4333]
    rng = Random(seed=1)
    estimates = [estimated(psfo, people, rng) for _ in range(60)]
    average = np.mean([estimate.value for estimate in estimates], axis=0)
    assert np.all(np.abs(average - wanted) < 5 * np.sqrt(estimates[0].variance / 60))
    wrong = wanted * 1.25  # a length of 4 instead of 3
    assert np.any(np.abs(average - wrong) > 5 * np.sqrt(estimates[0].variance / 60))


def test_sets_longer_than_the_padding_are_declared():
    assert PSFO(epsilon=1.0, domain=Sets(Ordinal(9), most=3), length=3).bias == "none"
    psfo = PSFO(epsilon=1.0, domain=9, length=3)
    assert psfo.sets.most == 9
    assert psfo.bias == estimated(psfo, [range(9)] * 5, Random(seed=1)).bias == "heuristic"
    with pytest.raises(InvalidValue, match="a set of 4 items'; allowed: sets of at most 3 items"):
        PSFO(epsilon=1.0, domain=Sets(Ordinal(9), most=3)).randomize([range(4)], Random(seed=1))


def test_the_oracle_is_chosen_by_exact_variances():
    for epsilon in (0.5, 1.0, 2.0):
        for length in (1, 2, 5):
            for size in (10, 40, 100, 400, 1600):
                sets = Sets(Ordinal(size), most=length)
                chosen = PSFO(epsilon=epsilon, domain=sets)
                both = [PSFO(epsilon=epsilon, domain=sets, oracle=oracle) for oracle in ("GRR", "OLH")]
                assert chosen.variance(1000) == min(psfo.variance(1000) for psfo in both)
    # Eq 5.3, which leaves out q^2, is near the border and not on it.
    near = [size for size in range(300, 420) if isinstance(PSFO(epsilon=1.0, domain=size, length=6).inner, GRR)]
    border = 6 * 23 * np.e + 1
    assert abs(max(near) - border) < 0.1 * border


def test_a_batch_in_any_form_gives_the_same_reports():
    psfo = PSFO(epsilon=1.0, domain=Sets(Ordinal(30), most=4))
    rows = np.array([[3, 7, -1, -1], [-1, -1, -1, -1], [0, 1, 2, 29]])
    items = ItemSets(np.array([0, 2, 2, 6]), np.array([3, 7, 0, 1, 2, 29]), domain=30)
    forms: list[Values] = [rows, [(3, 7), (), (0, 1, 2, 29)], items]
    first, *others = (psfo.randomize(form, Random(seed=1)) for form in forms)
    assert all(first == other for other in others)
    assert psfo.encode(rows).padded(4).tolist() == rows.tolist()


OTHERS = ItemSets(np.array([0]), np.array([], dtype=np.int64), domain=31)


@pytest.mark.parametrize("bad", [[[30]], [[-1]], [[1, 1]], [["a"]], np.array([[30, -1]]), np.array([[-2, 3]]), OTHERS])
def test_bad_sets_are_refused(bad: Any):
    with pytest.raises(InvalidValue):
        PSFO(epsilon=1.0, domain=Sets(Ordinal(30), most=4)).randomize(bad, Random(seed=1))


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("length", {"length": -1}),
        ("length", {"length": 1.5}),
        ("oracle", {"oracle": "NoSuch"}),
        ("oracle", {"oracle": "Collision"}),
        ("oracle", {"oracle": GRR(epsilon=1.0, domain=9)}),
        ("oracle", {"oracle": 7}),
        ("mechanism", {"oracle": {"mechanism": "PSFO"}}),
    ],
)
def test_bad_specs_are_refused_by_name(field: str, given: dict[str, Any]):
    with pytest.raises(InvalidValue, match=f"^{field}:"):
        PSFO(**{"epsilon": 1.0, "domain": 9, "length": 2, **given})


def test_every_example_value_is_a_set_and_all_are_listed_where_they_fit():
    psfo = PSFO(epsilon=1.0, domain=Sets(Ordinal(4), most=2))
    every = [held for size in range(3) for held in combinations(range(4), size)]
    examples: list[Any] = [*psfo.example_values(11)]
    assert sorted(examples) == sorted(every)
    assert len(set(PSFO(epsilon=1.0, domain=400, length=3).example_values(50))) == 50


@pytest.mark.parametrize("check", [check_heuristic_error, check_weights])
def test_few_hash_functions_widen_the_intervals(check: Any):
    """Without their part of the error, intervals hold the truth in one case of ten."""
    oracle = FLH(epsilon=2.0, domain=Ordinal(12), functions=32)
    check(PSFO(epsilon=2.0, domain=Sets(Ordinal(10), most=2), oracle=oracle))
