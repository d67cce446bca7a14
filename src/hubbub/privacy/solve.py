"""Solving for the number of reports, or for epsilon, that a standard error takes."""

from __future__ import annotations

import math

from hubbub.core.errors import InvalidValue
from hubbub.core.plugin_guard import PluginFailed
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.privacy.plan_request import PlanRequest

MOST_EPSILON = 20.0
"""The largest epsilon that a plan proposes: above it, a report nearly reveals its value."""

LEAST_EPSILON = 0.01
"""The smallest epsilon that a plan proposes."""

_MOST_REPORTS = 1 << 53
_PRECISION = 1e-13


def standard_error(kind: type[FrequencyOracle], request: PlanRequest, n: int, epsilon: float) -> float:
    """The predicted standard error of a share; infinite where the oracle refuses the setting or fails."""
    try:
        return math.sqrt(kind(epsilon=epsilon, domain=request.domain).variance(n, request.share))
    except (InvalidValue, PluginFailed):
        return math.inf


def needed_n(kind: type[FrequencyOracle], request: PlanRequest, epsilon: float, stderr: float) -> int:
    """The fewest reports that bring the standard error down to `stderr`: the variance is exactly one report's over n."""
    oracle = kind(epsilon=epsilon, domain=request.domain)
    single = oracle.variance(1, request.share)
    if single > stderr**2 * _MOST_REPORTS:
        raise InvalidValue(
            "stderr", stderr, f"at least {math.sqrt(single / _MOST_REPORTS):.3g}, which takes 2^53 reports"
        )
    n = max(1, math.ceil(single / stderr**2) - 1)
    while math.sqrt(oracle.variance(n, request.share)) > stderr:
        n += 1
    return n


def needed_epsilon(
    kind: type[FrequencyOracle], request: PlanRequest, n: int, stderr: float, most: float = MOST_EPSILON
) -> float | None:
    """The smallest epsilon whose standard error is at most `stderr`, by bisection; None if `most` does not reach it.

    With a limit on how far forged reports may move a share, the smallest epsilon that keeps this limit too. The error
    is computed from the oracle's integers and is a step function of epsilon: the result is the beginning of a step, and
    its error is at or just below `stderr`.
    """

    def reached(epsilon: float) -> bool:
        if standard_error(kind, request, n, epsilon) > stderr:
            return False
        return request.most_shift is None or request.tolerates(
            request.shift(kind(epsilon=epsilon, domain=request.domain))
        )

    low, high = most, most
    if not reached(high):
        return None
    while reached(low):
        if low <= LEAST_EPSILON:
            return low
        low, high = max(low / 2, LEAST_EPSILON), low
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
