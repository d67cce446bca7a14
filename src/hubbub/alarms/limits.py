"""The limits of a sequential test, from the rate of false alarms that is allowed."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.alarms.run_length import mean_steps, median_steps

SHEWHART = 0.2
"""The part of the false alarms that goes to single steps: large jumps are found at once, small ones hardly later."""
SLACK = 1.2
"""Standard errors of the baseline that are added to k. With 24 and with 168 steps none is found faster by more than 5%
(`tests/alarms/test_limits.py`)."""
NODES = 21
_CLOSE = 1e-3


class AlarmLimits(NamedTuple):
    """A step's standardised estimate x adds x - k to a sum that is never below 0; h is the limit of the sum, z of x.

    h is infinite where steps cannot be added up.

    Example:
        >>> limits = limits_for(1 / 720)
        >>> round(limits.h, 1), round(limits.z, 1)
        (4.9, 3.5)
    """

    k: float
    h: float
    z: float


@lru_cache(maxsize=1024)
def limits_for(false_alarms: float, *, baseline: int = 0, pools: bool = True) -> AlarmLimits:
    """The limits at which a test on one side has so many false alarms a step, if the truth is at the threshold.

    Parameters
    ----------
    false_alarms
        How many a step, on average.
    baseline
        Over how many steps the threshold was learnt; 0 if it is given. What is learnt is wrong by a standard error of
        1/sqrt(baseline) steps' standard errors, the same in all steps that follow: the rate is the average over it.
    pools
        Whether the errors of steps are independent. Where they are not, only single steps are judged: the rate holds
        however the errors go together.

    Example:
        >>> [round(limit, 2) for limit in limits_for(1 / (16 * 720))]
        [0.5, 7.72, 4.14]
        >>> [round(limit, 2) for limit in limits_for(1 / (16 * 720), baseline=24)]
        [0.74, 7.63, 4.23]
    """
    if not pools:
        # What was learnt is then counted in the standard error of every step.
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
    """In how many steps half of the jumps of so many standard errors are found; None if it takes too long.

    Example:
        >>> [median_delay(limits_for(1 / (16 * 720)), jump) for jump in (1.0, 4.0)]
        [14, 2]
    """
    if math.isinf(limits.h):
        return 1 if jump >= limits.z else None  # the next steps may be wrong in the same way
    drifts, weights = _errors(baseline)
    return median_steps(drifts + jump, weights, k=limits.k, h=limits.h, z=limits.z)


def _errors(baseline: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a learnt threshold may be off by, in standard errors of a step, and how likely that is."""
    if not baseline:
        return np.zeros(1), np.ones(1)
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return points / math.sqrt(baseline), weights / weights.sum()
