"""Checks of estimates of some candidates, from weighted reports, and from a cohort."""

from functools import partial

import numpy as np

from hubbub.checks.failure import FALSE_ALARM, mean_is, require, require_refusal
from hubbub.checks.heuristic import LEAST_COVERED
from hubbub.checks.values import estimated, population, rows_of, some_values, truth_of
from hubbub.core.domain import Sets
from hubbub.core.errors import HubbubError
from hubbub.core.reports import Array, Floats
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.oracle import SupportMechanism
from hubbub.privacy.enumeration import domain_of
from hubbub.random.source import Random

_REPORTS = 60
_PEOPLE = 400  # noise and sampling have the same part in an error, however many there are
_COHORTS = 5
_TIMES = 300  # squared errors average 1 to about a twelfth: 30% too many or too few are seen
_AT_ONCE = 30  # that many times are drawn together
_MOST_CANDIDATES = 40
_PEOPLE_OF_A_HEURISTIC, _TIMES_OF_A_HEURISTIC = 20_000, 10  # enough that the bias is not small against the noise
_NORMAL_95 = 1.96


def check_support(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """The support of some candidates is what the whole sketch counts for them, and merges with nothing else."""
    (oracle, candidates, places), rng = _candidates(mechanism), Random(seed=rng_seed)
    reports = oracle.randomize(some_values(oracle, _REPORTS, rng), rng)
    supports = oracle.support(reports, candidates)
    estimate, whole = oracle.estimate(supports, candidates), oracle.estimate(oracle.accumulate(reports))
    require(np.allclose(estimate.value, whole.value[places]), "candidates have other shares of their own")
    if oracle.bias == "none":
        require(np.allclose(estimate.variance, whole.variance[places]), "candidates have other variances of their own")
    singles = sum(oracle.support(reports[row : row + 1], candidates).counts for row in range(_REPORTS))
    require(np.array_equal(supports.counts, singles), "the support of a batch is not the sum of its reports'")
    weights = 1 + np.arange(_REPORTS) % 4
    weighted = oracle.support(reports, candidates, weights).counts
    for row, power in enumerate((1, 2)):
        repeated = oracle.support(reports[np.repeat(np.arange(_REPORTS), weights**power)], candidates).counts
        require(np.array_equal(weighted[row, :-1], repeated), f"weights to the power {power} count otherwise")
    if len(candidates) > 1:
        fewer = oracle.support(reports, candidates[:-1])
        require_refusal("supports of other candidates", HubbubError, lambda: supports + fewer)
        require_refusal("estimating other candidates", HubbubError, lambda: oracle.estimate(supports, candidates[::-1]))


def check_weights(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """Totals of weights average the truth, and err as they state; false alarm: 1e-6.

    Of a heuristic, 95% intervals of the totals hold the truth in 75% of cases at least.
    """
    (oracle, candidates, places), rng = _candidates(mechanism), Random(seed=rng_seed)
    heuristic = oracle.bias != "none"
    people, times = (_PEOPLE_OF_A_HEURISTIC, _TIMES_OF_A_HEURISTIC) if heuristic else (_PEOPLE, _TIMES)
    values = population(oracle, people, rng)
    weights = 1 + rng.below(9, people).astype(np.int64)
    shares = truth_of(oracle, rows_of(values, np.repeat(np.arange(people), weights)))
    assert shares is not None
    truth = shares[places] * int(weights.sum())
    error, variance = np.empty((times, len(truth))), np.empty((times, len(truth)))
    for time in range(times):
        sketch = oracle.support(oracle.randomize(values, rng), candidates, weights)
        estimate = oracle.estimate(sketch, candidates)
        error[time], variance[time] = estimate.value - truth, estimate.variance
    if heuristic:
        covered = float(np.mean(np.abs(error) <= _NORMAL_95 * np.sqrt(variance)))
        require(
            covered >= LEAST_COVERED, f"95% intervals of totals of weights hold the truth in {covered:.1%} of cases"
        )
    else:
        _errs_as_stated(error, variance, "totals of weights")


def check_of_population(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """A cohort's estimate of the population it was drawn from errs as `of_population` states; false alarm: 1e-6.

    Noise can hide the error of sampling. So, of shares, the variance that `of_population` adds is also compared with
    the mean squared difference of cohort and population, which the check knows; less than half of it is refused. (The
    variance of a mean may contain the spread of the values already.)
    """
    rng = Random(seed=rng_seed)
    values = population(mechanism, _PEOPLE * _COHORTS, rng)
    truth = truth_of(mechanism, values)
    assert truth is not None
    error, variance, added, difference = (np.empty((_TIMES, len(truth))) for _ in range(4))
    for time in range(_TIMES):
        start = time % _AT_ONCE * _PEOPLE
        if not start:
            cohorts = [rng.permutation(len(values))[:_PEOPLE] for _ in range(_AT_ONCE)]
            reports = mechanism.randomize(rows_of(values, np.concatenate(cohorts)), rng)
        estimate = estimated(mechanism, mechanism.accumulate(reports[start : start + _PEOPLE]))
        if estimate.kind != "share" and estimate.spread is None:
            require_refusal("a population, of an unknown spread", HubbubError, partial(estimate.of_population, 10**6))
            return
        whole = estimate.of_population(len(values))
        error[time], variance[time] = whole.value - truth, whole.variance
        added[time] = whole.variance - estimate.variance
        cohort = truth_of(mechanism, rows_of(values, cohorts[time % _AT_ONCE]))
        assert cohort is not None
        difference[time] = cohort - truth
    _errs_as_stated(error, variance, "a cohort's estimates of its population")
    sampling = float((difference**2).mean(axis=0).sum())
    require(
        estimate.kind != "share" or added.mean(axis=0).sum() >= sampling / 2,
        f"of_population adds a variance of {added.mean(axis=0).sum():.3g}, and sampling has {sampling:.3g}",
    )


def _candidates(mechanism: Mechanism) -> tuple[SupportMechanism, list[object], Array]:
    """The mechanism, some of the values (or items of sets) that it counts, and their places among all of them."""
    domain = domain_of(mechanism)
    if isinstance(domain, Sets):
        domain = domain.items
    assert isinstance(mechanism, SupportMechanism)
    assert domain is not None
    candidates = domain.examples(_MOST_CANDIDATES)
    return mechanism, candidates, domain.encode(candidates)


def _errs_as_stated(error: Floats, variance: Floats, subject: str) -> None:
    ratio = (error**2 / variance.mean(axis=0)).mean(axis=1)
    p_value = float(mean_is(ratio[:, None], 1.0)[0])
    require(
        p_value > FALSE_ALARM, f"{subject}: squared errors are {ratio.mean():.3f} times the variance ({p_value:.1e})"
    )
