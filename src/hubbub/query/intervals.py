"""Intervals of ratios and of square roots."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.query.duals import Dual
from hubbub.query.joint import JointEstimate


@dataclass(frozen=True)
class AnswerInterval:
    """An estimate, its interval and standard error, and the possible range. What is unknown is NaN or infinite."""

    value: float
    low: float
    high: float
    stderr: float
    least: float = -math.inf
    most: float = math.inf


def fieller(top: Dual, bottom: Dual, joint: JointEstimate, reach: float, least: float, most: float) -> AnswerInterval:
    """Fieller's interval of a ratio of two sums: all r for which top - r bottom does not differ significantly from 0.

    Parameters
    ----------
    top, bottom
        The two sums, with their gradients with respect to the estimates.
    joint
        The estimates with their covariances.
    reach
        The half width of an interval in standard errors.
    least, most
        The range of possible values of the ratio.

    Example:
        >>> joint = JointEstimate(np.array([8.0, 2.0]), (np.diag([1.0, 0.25]),))
        >>> top, bottom = Dual(8.0, np.array([1.0, 0.0])), Dual(2.0, np.array([0.0, 1.0]))
        >>> interval = fieller(top, bottom, joint, 1.0, -math.inf, math.inf)
        >>> round(interval.low, 2), interval.value, round(interval.high, 2)
        (3.08, 4.0, 5.45)
        >>> fieller(top, bottom, joint, 4.0, -math.inf, math.inf).high  # the denominator may be 0
        inf
    """
    ratio = top / bottom
    if math.isnan(ratio.value):
        return AnswerInterval(math.nan, -math.inf, math.inf, math.inf, least, most)
    stderr = math.sqrt(joint.variance(ratio.gradient))
    own = joint.variance(bottom.gradient)
    a = bottom.value**2 - reach**2 * own
    if not a > 0 or not math.isfinite(own):  # the denominator may be 0: any ratio is possible
        return AnswerInterval(ratio.value, -math.inf, math.inf, stderr, least, most)
    b = top.value * bottom.value - reach**2 * joint.covariance(top.gradient, bottom.gradient)
    c = top.value**2 - reach**2 * joint.variance(top.gradient)
    spread = math.sqrt(max(b * b - a * c, 0.0))
    return AnswerInterval(ratio.value, (b - spread) / a, (b + spread) / a, stderr, least, most)


def root_interval(square: Dual, joint: JointEstimate, reach: float) -> AnswerInterval:
    """The interval of a square root: the roots of the ends of its argument's interval.

    Example:
        >>> joint = JointEstimate(np.array([16.0]), (np.array([[49.0]]),))
        >>> interval = root_interval(Dual(16.0, np.ones(1)), joint, 1.0)
        >>> interval.low, interval.value, round(interval.high, 2)
        (3.0, 4.0, 4.8)
    """
    if math.isnan(square.value) or not np.isfinite(square.gradient).all():
        return AnswerInterval(math.nan, 0.0, math.inf, math.inf, 0.0)
    wide = reach * math.sqrt(joint.variance(square.gradient))
    value, low, high = (math.sqrt(max(end, 0.0)) for end in (square.value, square.value - wide, square.value + wide))
    stderr = wide / reach / (2 * value) if value > 0 else math.inf
    return AnswerInterval(value, low, high, stderr, 0.0)
