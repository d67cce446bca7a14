"""The interval of an estimate: of a ratio of sums, of a variance, and of a product of what has intervals itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.core.noise import normal_reach
from hubbub.core.reports import Floats
from hubbub.query.sums import Dual, JointEstimate

ANGLES = 1025
"""At how many points an ellipse is looked at: the ends of an interval are exact to 0.001% of its width."""


@dataclass(frozen=True)
class AnswerInterval:
    """An estimate, its interval and standard error, and the possible range. What is unknown is NaN or infinite."""

    value: float
    low: float
    high: float
    stderr: float
    least: float = -math.inf
    most: float = math.inf

    def root(self) -> AnswerInterval:
        """The interval of the square root; what is below 0 counts as 0."""
        value, low, high, most = (math.sqrt(max(end, 0.0)) for end in (self.value, self.low, self.high, self.most))
        value = math.nan if math.isnan(self.value) else value
        stderr = (
            self.stderr * (high - low) / (self.high - self.low) if math.isfinite(high) and high > low else self.stderr
        )
        return AnswerInterval(value, low, high, stderr, 0.0, most)


Ends = tuple[float, float]


def times(left: Ends, right: Ends) -> Ends:
    """The least and the largest product of two numbers that are within given ends."""
    products = [0.0 if 0.0 in (a, b) else a * b for a in left for b in right]
    return min(products), max(products)


def inverse(ends: Ends) -> Ends:
    """The ends of 1 / x; without a bound if x can be 0."""
    return (1 / ends[1], 1 / ends[0]) if ends[0] > 0 or ends[1] < 0 else (-math.inf, math.inf)


def fieller(top: Dual, bottom: Dual, joint: JointEstimate, reach: float) -> AnswerInterval:
    """Fieller's interval of a ratio of two sums: all r for which top - r bottom does not differ significantly from 0.

    Parameters
    ----------
    top, bottom
        The two sums, with their gradients with respect to the estimates.
    joint
        The estimates with their covariances.
    reach
        The half width of an interval in standard errors.

    Example:
        >>> joint = JointEstimate(np.array([8.0, 2.0]), (np.diag([1.0, 0.25]),))
        >>> top, bottom = Dual(8.0, np.array([1.0, 0.0])), Dual(2.0, np.array([0.0, 1.0]))
        >>> interval = fieller(top, bottom, joint, 1.0)
        >>> round(interval.low, 2), interval.value, round(interval.high, 2)
        (3.08, 4.0, 5.45)
        >>> fieller(top, bottom, joint, 4.0).high  # the denominator may be 0
        inf
    """
    ratio = top / bottom
    if math.isnan(ratio.value):
        return AnswerInterval(math.nan, -math.inf, math.inf, math.inf)
    stderr = math.sqrt(joint.variance(ratio.gradient))
    joint = joint.widened(reach)
    own = joint.variance(bottom.gradient)
    a = bottom.value**2 - reach**2 * own
    if not a > 0 or not math.isfinite(own):  # the denominator may be 0: any ratio is possible
        return AnswerInterval(ratio.value, -math.inf, math.inf, stderr)
    b = top.value * bottom.value - reach**2 * joint.covariance(top.gradient, bottom.gradient)
    c = top.value**2 - reach**2 * joint.variance(top.gradient)
    spread = math.sqrt(max(b * b - a * c, 0.0))
    return AnswerInterval(ratio.value, (b - spread) / a, (b + spread) / a, stderr)


def spread_ends(count: Ends, first: Ends, second: Ends, *, away: float, sample: bool) -> Ends:
    """The ends of a variance, from those of a count and of sums of differences and of their squares."""
    if not count[0] > sample:
        return 0.0, math.inf
    means, squares = times(first, inverse(count)), times(second, inverse(count))
    largest, least = max(abs(means[0]), abs(means[1])), max(means[0], -means[1], 0.0)
    low, high = max(squares[0] - largest**2, 0.0), max(squares[1] - least**2, 0.0)
    return _of_sample(*_moved(low, high, away), count) if sample else _moved(low, high, away)


def _moved(low: float, high: float, away: float) -> Ends:
    """The ends of a variance if each number may be this far from what it was taken to be: spreads differ by no more."""
    return max(math.sqrt(low) - away, 0.0) ** 2, (math.sqrt(high) + away) ** 2


def _of_sample(low: float, high: float, count: Ends) -> Ends:
    """The ends of a variance with squares divided by the count less 1, which is of at least two people."""
    fewest, largest = max(count[0], 2.0), max(count[1], 2.0)
    return low * largest / (largest - 1), high * fewest / (fewest - 1)


def variance_interval(
    sums: Floats, covariance: Floats, level: float, *, width: float, sample: bool, away: float = 0.0
) -> AnswerInterval:
    """The interval of a variance: all v for which some mean is compatible with the sums.

    With N the count, S1 the sum and S2 the sum of squares, v is kept if there is a mean m for which S1 - m N and
    S2 - (v + m^2) N together do not differ significantly from 0. The pairs (m, v + m^2) that are kept are an ellipse,
    whose extent in any direction is Fieller's interval; it has no bound where N does not differ significantly from 0.

    Parameters
    ----------
    width
        The range of the measure.
    sample
        Whether sums of squares are divided by N - 1 rather than by N.
    away
        How far each number may be from what it was taken to be.
    """
    count = float(sums[0])
    fewer = count - sample
    value = math.nan if abs(count) < 1e-9 or abs(fewer) < 1e-9 else float(sums[2] - sums[1] ** 2 / count) / fewer
    # Popoviciu's inequality; a sample variance is of at least two people
    most = width**2 / 4 * (2 if sample else 1) if math.isfinite(width) else math.inf
    statistic = -2 * math.log1p(-level)  # of chi squared with two degrees of freedom
    if not np.isfinite(covariance).all() or count**2 <= statistic * covariance[0, 0] or count <= 0:
        return AnswerInterval(value, 0.0, math.inf, math.inf, 0.0, most)
    products = (np.outer(sums, sums) - statistic * covariance) / (count**2 - statistic * covariance[0, 0])
    middle = products[0, 1:]
    values, vectors = np.linalg.eigh(np.outer(middle, middle) - products[1:, 1:])
    angles = np.linspace(0, 2 * math.pi, ANGLES)
    edge = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * [np.cos(angles), np.sin(angles)])
    variances = middle[1] + edge[1] - (middle[0] + edge[0]) ** 2
    low, high = _moved(max(float(variances.min()), 0.0), max(float(variances.max()), 0.0), away)
    if sample:
        reach = math.sqrt(statistic * max(float(covariance[0, 0]), 0.0))
        low, high = _of_sample(low, high, (count - reach, count + reach))
    return AnswerInterval(value, low, high, (high - low) / (2 * normal_reach(level)), 0.0, most)
