"""Checks of the estimator: unbiased, with the stated variance, and with intervals that hold the truth."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hubbub.checks.failure import FALSE_ALARM, CheckFailed, mean_is, require, smallest
from hubbub.checks.values import candidates_for, estimated, population, quantities_of, rows_of, some_values, truth_of
from hubbub.core.domain.base import Values
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Bools, Floats
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.oracle import SupportMechanism
from hubbub.mechanisms.ternary.ternary import Quantity, TernaryMechanism
from hubbub.random.source import Random

__all__ = ["check_bias_declared", "check_coverage", "check_linear", "check_unbiased", "check_variance"]

_INTERVALS = 2_000  # so that a coverage of 95% is known to 0.5%: two percentage points are four of those
_SPREAD = 200  # the variance of a count, so that its steps are small against it and the normal intervals hold
_LEAST, _MOST = 500, 60_000
_SUMS = 1_000  # squared errors of sums average 1 to 4.5%: a quarter too many or too few are seen
_CHUNK = 1 << 19


class Repetitions(NamedTuple):
    """Estimates of one quantity of one population, again and again: one row per repetition, one column per value."""

    quantity: Quantity
    truth: Floats
    value: Floats
    variance: Floats
    covered: Bools
    sums_error: Floats
    sums_variance: Floats
    declares_covariance: bool
    n: int


def check_bias_declared(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """An estimate declares the mechanism's own bias, its n, and variances that are not negative."""
    rng = Random(seed=rng_seed)
    reports = mechanism.randomize(some_values(mechanism, 2_000, rng), rng)
    estimate = mechanism.estimate(mechanism.accumulate(reports), candidates_for(mechanism))
    require(estimate.bias == mechanism.bias, f"the bias is {mechanism.bias}, and the estimate says {estimate.bias}")
    require(estimate.n == len(reports), f"an estimate from {len(reports)} reports says n = {estimate.n}")
    require(np.isfinite(estimate.value).all() and (estimate.variance >= 0).all(), "a value or variance is no number")


def check_unbiased(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Over repetitions, every estimated value averages the truth, and so do sums of many; false alarm: 1e-6."""
    for runs in _repeat(mechanism, rng_seed):
        error = runs.value - runs.truth
        # A small bias that all absent values share is seen in their sum.
        sums = np.stack([np.ones_like(runs.truth), runs.truth == 0, runs.truth > 0], axis=1).astype(float)
        p_values = mean_is(np.hstack([error, error @ sums]), 0.0)
        worst = int(np.argmax(np.abs(error.mean(axis=0))))
        require(
            smallest(p_values) > FALSE_ALARM,
            f"the estimator is biased (p = {smallest(p_values):.1e}): value {worst} has the {runs.quantity} "
            f"{runs.truth[worst]:.4g} and {len(error)} estimates of it average {runs.value[:, worst].mean():.4g}",
        )


def check_variance(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Squared errors average the variance that estimates carry, and that `noise` predicts; false alarm: 1e-6."""
    for runs in _repeat(mechanism, rng_seed):
        stated = runs.variance.mean(axis=0)
        ratio = ((runs.value - runs.truth) ** 2 / stated).mean(axis=1)
        p_value = float(mean_is(ratio[:, None], 1.0)[0])
        message = f"squared errors of the {runs.quantity} are {ratio.mean():.3f} times the variance (p = {p_value:.1e})"
        require(p_value > FALSE_ALARM, message)
        if isinstance(mechanism, SupportMechanism):
            predicted = mechanism.noise(runs.n).variance(runs.truth)
            p_value = smallest(mean_is(runs.variance, predicted))
            require(p_value > FALSE_ALARM, f"noise() predicts {predicted[:4]}, and estimates carry {stated[:4]}")


def check_coverage(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """95% intervals hold the truth in 93% to 97% of cases; false alarm: below 1e-4."""
    for runs in _repeat(mechanism, rng_seed):
        covered = float(runs.covered.mean())
        message = f"95% intervals of the {runs.quantity} hold the truth in {covered:.2%} of cases"
        require(0.93 <= covered <= 0.97, message)


def check_linear(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Sums and differences of values err as `linear` states; no more than that, where no covariance is declared."""
    for runs in _repeat(mechanism, rng_seed):
        stated = runs.sums_variance.mean(axis=0)
        # Such as the sum of all shares of an oracle whose reports each support one value: exact, up to rounding.
        certain = stated <= 1e-9 * (_contrasts(runs.truth) ** 2 @ runs.variance.mean(axis=0))
        require((np.abs(runs.sums_error[:, certain]) < 1e-9).all(), "a sum that linear() calls exact is not")
        ratio = runs.sums_error[:, ~certain] ** 2 / stated[~certain]
        p_values = mean_is(ratio, 1.0)
        if not runs.declares_covariance:
            p_values = np.where(ratio.mean(axis=0) <= 1, 1.0, p_values)
        require(
            smallest(p_values) > FALSE_ALARM,
            f"squared errors of sums and differences are {ratio.mean(axis=0).round(3)} times what linear() states "
            f"(p = {smallest(p_values):.1e})",
        )


@lru_cache(maxsize=2)  # four checks in a row look at one mechanism
def _repeat(mechanism: Mechanism, rng_seed: int) -> tuple[Repetitions, ...]:
    """Estimates of every quantity, from the same reports of the same people."""
    rng = Random(seed=rng_seed)
    n = _population(mechanism)
    values = population(mechanism, n, rng)
    positions = len(_known_truth(mechanism, values, "mean"))
    times = math.ceil(_INTERVALS / min(max(positions - 1, 1), 75))
    at_once = min(times, max(1, _CHUNK // n))
    every = [
        _unfilled(quantity, _known_truth(mechanism, values, quantity), times, n)
        for quantity in quantities_of(mechanism)
    ]
    for start in range(0, times, at_once):
        several = min(at_once, times - start)
        reports = mechanism.randomize(rows_of(values, np.tile(np.arange(n), several)), rng)
        for k in range(several):
            sketch = mechanism.accumulate(reports[k * n : (k + 1) * n])
            every = [_with_run(runs, start + k, estimated(mechanism, sketch, runs.quantity)) for runs in every]
    return tuple(every)


def _known_truth(mechanism: Mechanism, values: Values, quantity: Quantity) -> Floats:
    truth = truth_of(mechanism, values, quantity)
    if truth is None:
        raise CheckFailed("nothing says what the estimates should be: give the mechanism a method `truth(values)`")
    return truth


def _unfilled(quantity: Quantity, truth: Floats, times: int, n: int) -> Repetitions:
    value, variance = np.empty((times, len(truth))), np.empty((times, len(truth)))
    covered = np.empty(value.shape, dtype=bool)
    sums_error, sums_variance = (np.empty((min(times, _SUMS), len(_contrasts(truth)))) for _ in range(2))
    return Repetitions(quantity, truth, value, variance, covered, sums_error, sums_variance, False, n)


def _with_run(runs: Repetitions, row: int, estimate: Estimate) -> Repetitions:
    """The repetitions with one more row filled in."""
    low, high = estimate.interval(0.95)
    runs.value[row], runs.variance[row] = estimate.value, estimate.variance
    runs.covered[row] = (low <= runs.truth) & (runs.truth <= high)
    if row < len(runs.sums_error):
        weights = _contrasts(runs.truth)
        sums = estimate.linear(weights)
        runs.sums_error[row], runs.sums_variance[row] = sums.value - weights @ runs.truth, sums.variance
    return runs._replace(declares_covariance=estimate.noise is not None and estimate.noise.knows_pairs)


def _contrasts(truth: Floats) -> Floats:
    """Weights to try: all values, those that someone holds, and two halves against each other."""
    size = len(truth)
    return np.stack([np.ones(size), (truth > 0).astype(float), np.where(np.arange(size) % 2 == 0, 1.0, -1.0)])


def _population(mechanism: Mechanism) -> int:
    """How many people a repetition needs."""
    if isinstance(mechanism, SupportMechanism):
        spread = mechanism.moments().false_variance
    elif isinstance(mechanism, TernaryMechanism) and "frequency" in mechanism.answers:
        spread = 2 * float(mechanism.p_false)  # of the difference of the two signs' supports
    else:
        return _LEAST
    return min(max(_LEAST, math.ceil(_SPREAD / max(spread, 1e-9))), _MOST)
