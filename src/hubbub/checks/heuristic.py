"""The check of heuristic estimates: the error that they declare is about the error that they have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.checks.failure import require
from hubbub.checks.values import candidates_for, population, truth_of
from hubbub.core.estimate import Estimate
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.core.ternary import as_ternary
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.privacy.probes import domain_of

__all__ = ["check_heuristic_error", "heuristics"]

_INTERVALS, _LEAST_TIMES = 400, 40
_PEOPLE, _PEOPLE_OF_A_RATIO = 20_000, 2_000
LEAST_COVERED = 0.75
_MOST_WIDE = 3.0
_MEDIAN = 0.6745  # of a normal error, in standard deviations


class Heuristic(NamedTuple):
    """A heuristic answer: the number of people to try, its estimate from a sketch, and the truth from values."""

    n: int
    read: Callable[[Sketch], Estimate]
    truth: Callable[[Any], NDArray[np.float64]]
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


def _shares(mechanism: Mechanism, values: Any) -> NDArray[np.float64]:
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


def _conditional(mechanism: TernaryMechanism, values: Any) -> NDArray[np.float64]:
    people = as_ternary(values, mechanism.dimension)
    frequencies = people.frequencies()
    with np.errstate(invalid="ignore"):
        return np.where(frequencies > 0, people.means() / frequencies, np.nan)
