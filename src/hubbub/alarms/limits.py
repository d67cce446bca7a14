"""The limits of a sequential test, from the allowed rate of false alarms and the run length of the test.

The run length of a sequential test, the number of steps to its signal, from the Markov chain of its statistic.

The test adds up standardised steps, S = max(0, S + x - k), and signals when S reaches h, or when one step alone reaches
z (a CUSUM with a Shewhart limit). Between two signals S is a Markov chain on [0, h). Cut into cells it is a matrix,
whose powers give the probability that the test has not signalled yet (Brook and Evans 1972).
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.reports import Floats

CELLS = 60
"""Cells of the chain. With more cells, average run lengths grow by less than 1%: the error is on the safe side."""
MOST_STEPS = 5000
"""The longest delay that is looked for."""


def mean_steps(drift: float, *, k: float, h: float, z: float) -> float:
    """The average number of steps to a signal, if every step is normal with mean `drift` and variance 1."""
    transitions = _chain(drift, k, h, z)
    return float(np.linalg.solve(np.eye(CELLS) - transitions, np.ones(CELLS))[0])


def median_steps(drifts: Floats, weights: Floats, *, k: float, h: float, z: float) -> int | None:
    """The median number of steps to a signal, if the mean of all steps is one of `drifts` with these probabilities.

    None if it is more than `MOST_STEPS`.
    """
    chains = np.stack([_chain(float(drift), k, h, z) for drift in drifts])
    running = np.zeros((len(drifts), 1, CELLS))
    running[:, 0, 0] = weights
    for step in range(1, MOST_STEPS + 1):
        running = running @ chains
        if running.sum() <= 0.5:
            return step
    return None


def _chain(drift: float, k: float, h: float, z: float) -> Floats:
    """The probabilities of the transitions between cells without a signal."""
    width = 2 * h / (2 * CELLS - 1)  # the first cell is half as wide, around 0
    moves = (np.arange(-(CELLS - 1), CELLS + 1) - 0.5) * width + k
    below = _normal(np.minimum(moves, z) - drift)
    cells = np.arange(CELLS)
    move = cells[None, :] - cells[:, None] + CELLS - 1
    transitions: Floats = below[move + 1] - below[move]
    transitions[:, 0] = below[move[:, 0] + 1]  # sums below 0 become 0
    return transitions


def _normal(points: Floats) -> Floats:
    return np.array([_phi(point) for point in points.tolist()])


@lru_cache(maxsize=1 << 14)
def _phi(point: float) -> float:
    return math.erfc(-point / math.sqrt(2)) / 2


SHEWHART = 0.2
"""The share of false alarms that single steps may cause: large jumps are found at once, small ones hardly later."""
SLACK = 1.2
"""How many standard errors of the baseline are added to k. For baselines of 24 and 168 steps, no other value finds
jumps more than 5% faster (`tests/alarms/test_sequential.py`)."""
NODES = 21
_CLOSE = 1e-3


class AlarmLimits(NamedTuple):
    """The limits of a CUSUM test. A standardised estimate x adds x - k to a sum that is never below 0.

    The test signals when the sum reaches h, or when a single x reaches z. h is infinite if errors of steps are
    dependent.
    """

    k: float
    h: float
    z: float


@lru_cache(maxsize=1024)
def limits_for(false_alarms: float, *, baseline: int = 0, independent: bool = True) -> AlarmLimits:
    """The limits with which a one-sided test has the given rate of false alarms, if the truth is at the threshold.

    Parameters
    ----------
    false_alarms
        The average number of false alarms per step.
    baseline
        The number of steps over which the threshold was learnt; 0 for a given threshold. A learnt threshold has an
        error of 1/sqrt(baseline) standard errors of a step, the same in all later steps. The rate is the average over
        it.
    independent
        Whether the errors of steps are independent. If not, only single steps are tested: the rate then holds whatever
        the dependence.
    """
    if not independent:
        # The error of a learnt threshold is then part of the standard error of every step.
        return AlarmLimits(0.0, math.inf, -NormalDist().inv_cdf(false_alarms))
    k = 0.5 + (SLACK / math.sqrt(baseline) if baseline else 0.0)
    z = -NormalDist().inv_cdf(SHEWHART * false_alarms) * math.sqrt(1 + (1 / baseline if baseline else 0.0))
    drifts, weights = _errors(baseline)

    def rate(h: float) -> float:
        lengths = (mean_steps(float(drift), k=k, h=h, z=z) for drift in drifts)
        return math.fsum(weight / length for weight, length in zip(weights.tolist(), lengths, strict=True))

    low, high = 0.0, 4.0
    while rate(high) > false_alarms:
        low, high = high, 2 * high
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if rate(middle) > false_alarms else (low, middle)
    return AlarmLimits(k, high, z)


@lru_cache(maxsize=1024)
def median_delay(limits: AlarmLimits, jump: float, *, baseline: int = 0) -> int | None:
    """The median number of steps until a jump of `jump` standard errors is found; None if it takes too long."""
    if math.isinf(limits.h):
        return 1 if jump >= limits.z else None  # later steps may have the same error
    drifts, weights = _errors(baseline)
    return median_steps(drifts + jump, weights, k=limits.k, h=limits.h, z=limits.z)


def _errors(baseline: int) -> tuple[Floats, Floats]:
    """Possible errors of a learnt threshold, in standard errors of a step, with their probabilities."""
    if not baseline:
        return np.zeros(1), np.ones(1)
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return points / math.sqrt(baseline), weights / weights.sum()


def stderr_at(estimate: Estimate, weights: Floats, level: float) -> float:
    """The standard error of a weighted sum if the true sum were `level`; 0 if the estimate has no noise model.

    The variance of a share grows with the share. With the variance at the estimate alone, a low estimate would seem
    more precise than it is, and would be found below a threshold too often. So the variance is also computed at the
    nearest shares whose weighted sum is `level`.
    """
    noise = estimate.noise
    if noise is None or not noise.knows_pairs:
        return 0.0
    moved = estimate.value + weights * (level - weights @ estimate.value) / (weights @ weights)
    variance = weights**2 @ noise.variance(moved) + noise.cross_terms(moved, weights[None, :])[0]
    return math.sqrt(max(float(variance), 0.0))
