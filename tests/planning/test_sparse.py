"""Plans for sparse vectors: floors that no mechanism can pass, and local epsilons for a central one."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from hubbub import GRR, OUE, Random, amplify
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.planning.minimax import absolute_floor, largest_floor, sampling_error, shares_floor, squared_floor
from hubbub.planning.sparse import compare_ternary

TERNARY = {name: kind for name, kind in MECHANISMS.usable().items() if issubclass(kind, TernaryMechanism)}
OPTIMAL = ("CoCo", "Collision", "ExSub", "NetSub", "NetSeed")
"""Mechanisms whose error has the rate d s / (n eps^2), by their papers."""
MOST_CONSTANT = 14.0


def test_floors_by_hand() -> None:
    setting: Any = {"epsilon": math.log(3), "dimension": 64, "sparsity": 4, "n": 1000}  # E = 2
    assert math.isclose(squared_floor(**setting), 64 * 4 / (32 * 1000 * 4))
    assert math.isclose(absolute_floor(**setting), 64 * math.sqrt(4 / 128_000) / 2)
    assert math.isclose(largest_floor(**setting), math.sqrt(4 * math.log(64) / 512_000) / 2)
    few: Any = {**setting, "n": 1}
    assert squared_floor(**few) == 16 / 256
    assert absolute_floor(**few) == 1.0
    assert largest_floor(**{**few, "epsilon": 1e-3}) == 0.25
    assert largest_floor(**{**few, "dimension": 15}) == 0


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"dimension": 0}, {"sparsity": 65}, {"n": 0}])
def test_floors_of_no_setting(wrong: dict[str, float]) -> None:
    setting: Any = {"epsilon": 1.0, "dimension": 64, "sparsity": 4, "n": 1000, **wrong}
    for floor in (squared_floor, absolute_floor, largest_floor):
        with pytest.raises(InvalidValue, match=next(iter(wrong))):
            floor(**setting)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("dimension", "sparsity"), [(16, 1), (64, 4), (128, 8), (256, 16)])
def test_stated_errors_are_above_the_floor_and_below_the_rate(epsilon: float, dimension: int, sparsity: int) -> None:
    setting: Any = {"epsilon": epsilon, "dimension": dimension, "sparsity": sparsity, "n": 1_000_000}
    rows = {row.mechanism: row for row in compare_ternary(**setting)}
    for row in rows.values():
        assert row.error is None or row.error + sampling_error(sparsity=sparsity, n=1_000_000) > squared_floor(
            **setting
        )
    for name in OPTIMAL:
        error = rows[name].error
        assert error is not None
        assert error < MOST_CONSTANT * dimension * sparsity / (1_000_000 * epsilon**2)


@pytest.mark.parametrize("name", sorted(TERNARY))
def test_measured_errors_are_those_stated_and_above_the_floor(name: str) -> None:
    """The squared error of 40 runs on a crowd of the floor's proof, within 5 standard errors of what is stated."""
    dimension, sparsity, n, runs = 32, 2, 500, 40
    mechanism = TERNARY[name].best_for("mean", epsilon=1.0, dimension=dimension, sparsity=sparsity)
    if "mean" not in mechanism.answers:
        pytest.skip("its reports tell no mean")
    rng = np.random.default_rng(7)
    errors = []
    for run in range(runs):
        vectors = np.zeros((n, dimension), dtype=np.int8)
        for bucket in range(sparsity):  # one entry of each bucket, of either sign
            entries = bucket * (dimension // sparsity) + rng.integers(0, dimension // sparsity, n)
            vectors[np.arange(n), entries] = rng.choice([-1, 1], n)
        estimate = mechanism.estimate(mechanism.accumulate(mechanism.randomize(vectors, Random(seed=run))))
        errors.append(float(((estimate.value - vectors.mean(axis=0)) ** 2).sum()))
    mean, error = float(np.mean(errors)), float(np.std(errors) / math.sqrt(runs))
    assert abs(mean - mechanism.mse(n, of="mean")) < 5 * error
    floor = squared_floor(epsilon=1.0, dimension=dimension, sparsity=sparsity, n=n)
    assert mean + sampling_error(sparsity=sparsity, n=n) > floor


def test_local_epsilons_for_a_central_one() -> None:
    setting: Any = {"dimension": 64, "sparsity": 4, "n": 10_000}
    rows = compare_ternary(epsilon=4.0, **setting, central_epsilon=0.3)
    best = rows[0]
    assert best.error is not None
    assert best.effective_epsilon is not None
    assert 0.3 < best.effective_epsilon <= 4.0
    mechanism = TERNARY[best.mechanism].best_for("mean", epsilon=best.effective_epsilon, dimension=64, sparsity=4)
    assert amplify(mechanism, n=10_000, delta=1e-6).epsilon <= 0.3 * 1.001
    local = compare_ternary(epsilon=0.3, **setting)[0]
    assert local.error is not None
    assert best.error < local.error / 10


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("n", [1, 10, 200])
def test_the_floor_of_two_shares_is_below_the_error_of_the_best_estimate_from_the_best_mechanism(
    epsilon: float, n: int
) -> None:
    """Of one bit randomised response is the best mechanism, and its reports' mean given the prior the best estimate.

    The crowds are the two of the proof. Thirty times the floor would be above: the constants are not that loose.
    """
    growth = math.expm1(epsilon)
    shift = min(1.0, 1 / (8 * n * growth**2)) ** 0.5
    truth, ones = np.array([(1 - shift) / 2, (1 + shift) / 2]), np.arange(n + 1)
    high = math.exp(epsilon) / (1 + math.exp(epsilon))
    rates = truth * high + (1 - truth) * (1 - high)
    chances = np.asarray(binom.pmf(ones[:, None], n, rates))  # of each count, in each crowd
    posterior = chances / chances.sum(axis=1, keepdims=True)
    error = float((chances.sum(axis=1) / 2) @ (posterior @ truth**2 - (posterior @ truth) ** 2))
    assert shares_floor(epsilon=epsilon, size=1, n=n) <= error < 30 * shares_floor(epsilon=epsilon, size=1, n=n)
    assert shares_floor(epsilon=epsilon, size=2, n=n) == pytest.approx(2 * shares_floor(epsilon=epsilon, size=1, n=n))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("size", [2, 3, 64, 1000])
def test_oracles_of_shares_err_more_than_the_floor(epsilon: float, size: int) -> None:
    for n in (1, 100, 100_000):
        error = min(
            size * float(oracle.noise(n).variance(np.array(1 / size))) + (1 - 1 / size) / n
            for oracle in (GRR(epsilon=epsilon, domain=size), OUE(epsilon=epsilon, domain=size))
        )
        assert shares_floor(epsilon=epsilon, size=size, n=n) < error
    assert shares_floor(epsilon=epsilon, size=size, n=100, most=2) >= shares_floor(epsilon=epsilon, size=size, n=100)
