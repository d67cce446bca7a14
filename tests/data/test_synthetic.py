"""Each generator against its own distribution, by a chi-square test.

With the seed fixed the tests are deterministic; a right generator would fail for one seed in a million. That the test
would notice a wrong one is shown on distributions a little off.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtr

from hubbub.core.errors import InvalidValue
from hubbub.data import categorical, gaussian_bins, geometric, sparse_vectors, uniform, zipf, zipf_weights
from hubbub.data.baskets import independent_baskets
from hubbub.mechanisms.ternary.vectors import INDEX_SHIFT
from hubbub.random.source import Random

N = 200_000
Weights = NDArray[np.floating[Any]]


def bins(mean: float, deviation: float) -> Weights:
    return np.diff(ndtr((np.arange(21) / 20 - mean) / deviation))


CASES: dict[str, tuple[Callable[[Random], NDArray[np.int64]], Weights, Weights]] = {
    "uniform": (lambda rng: uniform(N, 50, rng), np.ones(50), np.linspace(1, 1.1, 50)),
    "zipf": (lambda rng: zipf(N, 500, 1.1, rng), zipf_weights(500, 1.1), zipf_weights(500, 1.15)),
    "zipf, flat": (lambda rng: zipf(N, 500, 0.0, rng), np.ones(500), zipf_weights(500, 0.05)),
    "geometric": (lambda rng: geometric(N, 12, 0.6, rng), 0.6 ** np.arange(12), 0.62 ** np.arange(12)),
    "gaussian": (lambda rng: gaussian_bins(N, 20, rng, mean=0.4, deviation=0.2), bins(0.4, 0.2), bins(0.4, 0.21)),
    "categorical": (lambda rng: categorical(N, [3, 0, 1, 2], rng), np.array([3, 0, 1, 2.0]), np.array([3, 0, 1.1, 2])),
}


def p_value(codes: NDArray[np.int64], weights: Weights) -> float:
    seen = np.bincount(codes, minlength=weights.size)
    expected = N * weights / weights.sum()
    assert seen.size == weights.size
    assert not seen[expected == 0].any()
    held = expected > 0
    assert expected[held].min() > 5
    return float(chdtrc(held.sum() - 1, ((seen - expected)[held] ** 2 / expected[held]).sum()))


@pytest.mark.parametrize("name", CASES)
def test_the_distribution(name: str) -> None:
    draw, right, wrong = CASES[name]
    codes = draw(Random(seed=name))
    assert codes.dtype == np.int64
    assert p_value(codes, right) > 1e-6
    assert p_value(codes, wrong) < 1e-6
    assert codes.tolist() == draw(Random(seed=name)).tolist()


def test_zipf_weights() -> None:
    weights = zipf_weights(1000, 1.5)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights[0] / weights[3] == pytest.approx(8)


def test_the_ends() -> None:
    rng = Random(seed=1)
    assert uniform(0, 3, rng).size == zipf(0, 3, 1.0, rng).size == 0
    assert zipf(5, 1, 1.0, rng).tolist() == geometric(5, 4, 0.0, rng).tolist() == [0] * 5
    assert set(gaussian_bins(50, 10, rng, mean=0.55, deviation=1e-9).tolist()) == {5}
    assert set(categorical(200, [0, 1e308, 1e308, 0], rng).tolist()) == {1, 2}
    assert categorical(50, [1.0, 1e-300], rng).max() == 0


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("n", lambda rng: zipf(-1, 3, 1.0, rng)),
        ("n", lambda rng: uniform(1.5, 3, rng)),  # type: ignore[arg-type]
        ("domain", lambda rng: uniform(1, 0, rng)),
        ("domain", lambda rng: zipf(1, True, 1.0, rng)),
        ("exponent", lambda rng: zipf(1, 3, -1.0, rng)),
        ("exponent", lambda rng: zipf(1, 3, float("nan"), rng)),
        ("ratio", lambda rng: geometric(1, 3, 1.5, rng)),
        ("mean", lambda rng: gaussian_bins(1, 3, rng, mean=2.0)),
        ("deviation", lambda rng: gaussian_bins(1, 3, rng, deviation=0.0)),
        ("weights", lambda rng: categorical(1, [0.0, 0.0], rng)),
        ("weights", lambda rng: categorical(1, [1.0, -1.0], rng)),
        ("weights", lambda rng: categorical(1, [], rng)),
        ("sparsity", lambda rng: sparse_vectors(3, 4, 5, rng)),
        ("n", lambda rng: independent_baskets(-1, [1.0], 2.0, rng)),
        ("weights", lambda rng: independent_baskets(5, [], 2.0, rng)),
        ("mean", lambda rng: independent_baskets(5, [1.0], 0.0, rng)),
        ("mean", lambda rng: independent_baskets(5, [1.0], 51.0, rng)),
    ],
)
def test_what_they_refuse(field: str, call: Callable[[Random], Any]) -> None:
    with pytest.raises(InvalidValue, match=f"^{field}:"):
        call(Random(seed=1))


def test_sparse_vectors_are_any_set_of_positions_with_any_signs() -> None:
    people = sparse_vectors(N, 5, 3, Random(seed=1))
    held, plus = people.entries >> INDEX_SHIFT, people.entries & 1 << 32
    assert (np.diff(held, axis=1) > 0).all()
    sets = (1 << held).sum(axis=1)
    assert np.unique(sets).size == 10
    # Ten sets and eight combinations of signs, each against the even chance.
    signs = ((plus > 0) @ np.array([1, 2, 4])).astype(np.int64)
    codes = np.searchsorted(np.unique(sets), sets) * 8 + signs
    assert p_value(codes, np.ones(80)) > 1e-6
    assert p_value(codes, np.linspace(1, 1.1, 80)) < 1e-6


def test_sparse_vectors_at_the_ends() -> None:
    assert sparse_vectors(3, 4, 0, Random(seed=1)).frequencies().tolist() == [0.0] * 4
    assert sparse_vectors(3, 4, 4, Random(seed=1)).frequencies().tolist() == [1.0] * 4
    assert len(sparse_vectors(0, 4, 2, Random(seed=1))) == 0


def test_independent_baskets_hold_each_item_as_often_as_they_should() -> None:
    n, weights = 40_000, [3.0, 1.0, 1.0, 0.0]
    baskets = independent_baskets(n, weights, 2.0, Random(seed=1))
    rates = 1 - np.exp(-2.0 * np.array(weights) / 5)
    support = baskets.support()
    # Five standard deviations: one of three items misses with probability below 2e-6.
    assert (abs(support - n * rates) <= 5 * np.sqrt(n * rates * (1 - rates))).all()
    rows = [set(baskets[person].tolist()) for person in range(n)]
    both = sum({0, 1} <= held for held in rows) / n
    expected = rates[0] * rates[1]
    assert abs(both - expected) < 5 * np.sqrt(expected / n)
