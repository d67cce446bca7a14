"""Checks of estimates that are not unbiased: consistent ones, and heuristic ones with their declared error."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hubbub.checks.failure import FALSE_ALARM, mean_is, require
from hubbub.checks.values import candidates_for, population, some_values, truth_of
from hubbub.core.domain.base import Values
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Bools, Floats, Sketch
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.mechanisms.ternary.vectors import as_ternary
from hubbub.privacy.enumeration import domain_of
from hubbub.random.source import Random
from hubbub.statistics.distribution import Distribution

_MANY = 10**10
_CLOSE = 0.02
_PEOPLE_OF_A_DISTRIBUTION, _TIMES = 1_500, 500
_ASKED = (0.1, 0.5, 0.9)
_FORGED, _ROUNDED = 15, 1e-4


def check_consistent(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """A consistent estimate is a valid distribution near the truth, with an unbiased mean and intervals that hold.

    - It is a `Distribution`: shares that are not negative and sum to 1.
    - From the expected reports of 10^10 people, no share of people below a number is off by 2% or more.
    - The mean is unbiased (false alarm: 1e-6), and its 95% intervals hold the truth in 91% to 98.5% of cases.
    - Where a tenth of 10^10 reports is forged, the mean and the share below the middle of the range move no further
      than `influence` and `share_influence` state.
    - The 95% intervals of quantiles hold the truth in at least 91% (false alarms: below 1e-4).
    """
    rng = Random(seed=rng_seed)
    values = np.asarray(some_values(mechanism, _PEOPLE_OF_A_DISTRIBUTION, rng), dtype=np.float64)
    truth = truth_of(mechanism, values)
    require(truth is not None, "nothing says what the estimates should be: give the mechanism a method `truth(values)`")
    assert truth is not None
    limit = _estimate(mechanism, expected_sketch(mechanism, values, _MANY))
    off = float(np.abs(np.cumsum(limit.value - truth)).max())
    require(off < _CLOSE, f"with any number of reports, the share below some number is off by {off:.1%}")
    _check_forged(mechanism, values, truth)
    quantiles = np.quantile(values, _ASKED, method="inverted_cdf")
    errors, covered, within = (
        np.empty(_TIMES),
        np.empty(_TIMES, dtype=bool),
        np.empty((_TIMES, len(_ASKED)), dtype=bool),
    )
    for k in range(_TIMES):
        estimate = _estimate(mechanism, mechanism.accumulate(mechanism.randomize(values, rng)))
        mean = estimate.mean()
        errors[k] = mean.value[0] - values.mean()
        covered[k] = _covers(mean.interval(), values.mean())[0]
        within[k] = _covers(estimate.quantile(_ASKED).interval(), quantiles)
    p_value = float(mean_is(errors[:, None], 0.0)[0])
    require(p_value > FALSE_ALARM, f"the mean is biased by {errors.mean():.3g} (p = {p_value:.1e})")
    share = float(covered.mean())
    require(0.91 <= share <= 0.985, f"95% intervals of the mean hold the truth in {share:.1%} of cases")
    least = float(within.mean(axis=0).min())
    require(least >= 0.91, f"95% intervals of quantiles hold the truth in {least:.1%} of cases")


def _check_forged(mechanism: Any, values: Floats, truth: Floats) -> None:
    """Forge several reports in turn, each added to the expected reports of honest people."""
    honest, forged = expected_sketch(mechanism, values, _MANY * 9 // 10), _MANY // 10
    outputs = mechanism.outputs()
    stated, middle = mechanism.influence(), len(truth) // 2
    require(stated is not None, "nothing says how far forged reports move the mean: give it a method `influence()`")
    below = np.arange(len(truth)) < middle
    border = float(_estimate(mechanism, honest).borders[middle])
    shares = mechanism.share_influence(mechanism.low, border)
    answers = [("mean", float(values.mean()), stated), ("share below the middle", float(truth @ below), shares)]
    for number in np.unique(np.linspace(0, len(outputs) - 1, _FORGED).astype(int)):
        single = mechanism.accumulate(outputs[number : number + 1])
        estimate = _estimate(mechanism, honest + Sketch(mechanism.spec_id, forged, single.counts * forged))
        centre = estimate.linear(below).centre
        assert centre is not None
        for (answer, before, influence), after in zip(answers, (estimate.mean().value[0], centre[0]), strict=True):
            up, down = influence.shift(0.1, before)
            within = before - down - _ROUNDED <= after <= before + up + _ROUNDED
            require(
                within,
                f"forged reports move the {answer} by {after - before:.3g}, and influence says {-down:.3g}, {up:.3g}",
            )


def expected_sketch(mechanism: Mechanism, values: Values, n: int) -> Sketch:
    """The expected sketch of n people, among whom these values are as common as they are here."""
    outputs = mechanism.outputs()
    assert outputs is not None
    different, times = np.unique(np.asarray(values), return_counts=True)
    chance = np.exp(mechanism.log_prob(outputs, different)) @ (times / times.sum())
    singles = [mechanism.accumulate(outputs[k : k + 1]).counts for k in range(len(outputs))]
    counts = np.rint(n * chance).astype(np.int64)
    return Sketch(mechanism.spec_id, int(counts.sum()), np.tensordot(counts, np.array(singles), axes=1))


def _estimate(mechanism: Mechanism, sketch: Sketch) -> Distribution:
    estimate = mechanism.estimate(sketch)
    require(isinstance(estimate, Distribution), "an estimate that is only consistent is a Distribution")
    assert isinstance(estimate, Distribution)
    whole = bool((estimate.value >= 0).all()) and abs(float(estimate.value.sum()) - 1) < 1e-9
    require(whole, "the shares of a distribution are not negative and sum to 1")
    return estimate


def _covers(interval: tuple[Floats, Floats], truth: Any) -> Bools:
    low, high = interval
    return np.asarray((low <= truth) & (truth <= high))


_INTERVALS, _LEAST_TIMES = 400, 40
_PEOPLE, _PEOPLE_OF_A_RATIO = 20_000, 2_000
LEAST_COVERED = 0.75
_MOST_WIDE = 3.0
_MEDIAN = 0.6745  # of a normal error, in standard deviations


class Heuristic(NamedTuple):
    """A heuristic answer: the number of people to try, its estimate from a sketch, and the truth from values."""

    n: int
    read: Callable[[Sketch], Estimate]
    truth: Callable[[Any], Floats]
    """By position; NaN where there is no truth, such as the mean among no people."""


def heuristics(mechanism: Mechanism) -> Iterator[Heuristic]:
    """The answers of a mechanism that are declared as heuristic."""
    if mechanism.bias == "heuristic":
        candidates = candidates_for(mechanism)
        yield Heuristic(
            _PEOPLE, lambda sketch: mechanism.estimate(sketch, candidates), lambda values: _shares(mechanism, values)
        )
    if isinstance(mechanism, TernaryMechanism) and "conditional" in mechanism.answers:
        yield Heuristic(
            _PEOPLE_OF_A_RATIO,
            lambda sketch: mechanism.estimate(sketch, of="conditional"),
            lambda values: _conditional(mechanism, values),
        )


def check_heuristic_error(mechanism: Mechanism, rng_seed: int = 1) -> None:
    """95% intervals of a heuristic hold the truth in 75% of cases at least, and are not three times too wide.

    A heuristic whose intervals have the right width and hold it in 86% of cases fails less than once in 10,000 times.
    """
    for n, read, truth_of_values in heuristics(mechanism):
        rng = Random(seed=rng_seed)
        values = population(mechanism, n, rng)
        truth = truth_of_values(values)
        positions = np.flatnonzero(~np.isnan(truth))
        times = max(_LEAST_TIMES, math.ceil(_INTERVALS / positions.size))
        covered, errors = np.empty((times, positions.size), dtype=bool), np.empty(times)
        for k in range(times):
            estimate = read(mechanism.accumulate(mechanism.randomize(values, rng)))
            require(estimate.bias == "heuristic", f"an estimate without a guarantee says its bias is {estimate.bias}")
            low, high = estimate.interval(0.95)
            covered[k] = ((low <= truth) & (truth <= high))[positions]
            common = positions[0]  # the most common value is the first: see `some_values`
            errors[k] = abs(estimate.value[common] - truth[common]) / max(estimate.stderr[common], 1e-300)
        share = float(covered.mean())
        require(share >= LEAST_COVERED, f"95% intervals of a heuristic hold the truth in {share:.1%} of cases")
        wide = _MEDIAN / max(float(np.median(errors)), 1e-300)
        require(wide <= _MOST_WIDE, f"a heuristic declares an error {wide:.3g} times as large as the one there is")


def _shares(mechanism: Mechanism, values: Values) -> Floats:
    """The true shares of the candidates, or what the mechanism's own `truth` says."""
    truth = truth_of(mechanism, values)
    if truth is not None:
        return truth
    domain, candidates = domain_of(mechanism), candidates_for(mechanism)
    require(
        domain is not None, "nothing says what the estimates should be: give the mechanism a method `truth(values)`"
    )
    assert domain is not None
    codes = domain.encode(values)
    names = domain.encode(candidates) if candidates is not None else np.arange(domain.size or 0)
    return np.array([np.mean(codes == code) for code in names])


def _conditional(mechanism: TernaryMechanism, values: Values) -> Floats:
    people = as_ternary(values, mechanism.dimension)
    frequencies = people.frequencies()
    with np.errstate(invalid="ignore"):
        return np.where(frequencies > 0, people.means() / frequencies, np.nan)
