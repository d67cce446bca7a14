"""Checks of what is estimated from a part: from some candidates, from weighted reports, from a cohort."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.checks.failure import require, require_refusal
from hubbub.checks.statistics import FALSE_ALARM, mean_is
from hubbub.checks.values import estimated, population, rows_of, some_values, truth_of
from hubbub.core.errors import HubbubError
from hubbub.core.random import Random
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.oracle import FrequencyOracle

_REPORTS = 60
_PEOPLE = 400  # noise and sampling have the same part in an error, however many there are
_COHORTS = 5
_TIMES = 300  # squared errors average 1 to about a twelfth: 30% too many or too few are seen
_AT_ONCE = 30  # that many times are drawn together
_MOST_CANDIDATES = 40


def check_support(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """The support of some candidates is what the whole sketch counts for them, and merges with nothing else.

    Example:
        >>> from hubbub import GRR
        >>> check_support(GRR(epsilon=1.0, domain=3))
    """
    oracle, candidates, rng = *_asked(mechanism), Random(seed=rng_seed)
    reports = oracle.randomize(some_values(oracle, _REPORTS, rng), rng)
    some = oracle.support(reports, candidates)
    everyone = oracle.estimate(oracle.accumulate(reports)).value[oracle.encode(candidates).astype(np.int64)]
    require(np.allclose(oracle.estimate(some, candidates).value, everyone), "candidates have other shares of their own")
    singles = sum(oracle.support(reports[row : row + 1], candidates).counts for row in range(_REPORTS))
    require(np.array_equal(some.counts, singles), "the support of a batch is not the sum of its reports'")
    weights = 1 + np.arange(_REPORTS) % 4
    weighed = oracle.support(reports, candidates, weights).counts
    for row, power in enumerate((1, 2)):
        repeated = oracle.support(reports[np.repeat(np.arange(_REPORTS), weights**power)], candidates).counts
        require(np.array_equal(weighed[row, :-1], repeated), f"weights to the power {power} count otherwise")
    if len(candidates) > 1:
        other = oracle.support(reports, candidates[:-1])
        require_refusal("supports of other candidates", HubbubError, lambda: some + other)
        require_refusal("estimating other candidates", HubbubError, lambda: oracle.estimate(some, candidates[::-1]))


def check_weights(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Totals of weights average the truth, and err as they state; false alarm: 1e-6.

    Example:
        >>> from hubbub import GRR
        >>> check_weights(GRR(epsilon=1.0, domain=3))
    """
    oracle, candidates, rng = *_asked(mechanism), Random(seed=rng_seed)
    values = some_values(oracle, _PEOPLE, rng)
    weights = 1 + rng.below(9, _PEOPLE).astype(np.int64)
    codes, wanted = oracle.encode(values), oracle.encode(candidates)
    truth = np.array([weights[codes == code].sum() for code in wanted], dtype=np.float64)
    error, variance = np.empty((_TIMES, len(truth))), np.empty((_TIMES, len(truth)))
    for time in range(_TIMES):
        sketch = oracle.support(oracle.randomize(values, rng), candidates, weights)
        estimate = oracle.estimate(sketch, candidates)
        error[time], variance[time] = estimate.value - truth, estimate.variance
    _errs_as_stated(error, variance, "totals of weights")


def check_of_population(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """A cohort's estimate of the population it was drawn from errs as `of_population` states; false alarm: 1e-6.

    Example:
        >>> from hubbub import GRR
        >>> check_of_population(GRR(epsilon=1.0, domain=3))
    """
    rng = Random(seed=rng_seed)
    values = population(mechanism, _PEOPLE * _COHORTS, rng)
    truth = truth_of(mechanism, values)
    assert truth is not None
    error, variance = np.empty((_TIMES, len(truth))), np.empty((_TIMES, len(truth)))
    for time in range(_TIMES):
        at = time % _AT_ONCE * _PEOPLE
        if not at:
            cohorts = [rng.permutation(len(values))[:_PEOPLE] for _ in range(_AT_ONCE)]
            reports = mechanism.randomize(rows_of(values, np.concatenate(cohorts)), rng)
        estimate = estimated(mechanism, mechanism.accumulate(reports[at : at + _PEOPLE]))
        if estimate.kind != "share" and estimate.spread is None:
            require_refusal("a population, of an unknown spread", HubbubError, partial(estimate.of_population, 10**6))
            return
        estimate = estimate.of_population(len(values))
        error[time], variance[time] = estimate.value - truth, estimate.variance
    _errs_as_stated(error, variance, "a cohort's estimates of its population")


def _asked(mechanism: Mechanism) -> tuple[FrequencyOracle, list[Any]]:
    assert isinstance(mechanism, FrequencyOracle)
    return mechanism, mechanism.example_values(_MOST_CANDIDATES)


def _errs_as_stated(error: NDArray[np.float64], variance: NDArray[np.float64], what: str) -> None:
    ratio = (error**2 / variance.mean(axis=0)).mean(axis=1)
    p_value = float(mean_is(ratio[:, None], 1.0)[0])
    require(p_value > FALSE_ALARM, f"{what}: squared errors are {ratio.mean():.3f} times the variance ({p_value:.1e})")
