"""ToPL's threshold of least expected error (T. Wang et al., 2021, Eq 8, corrected), and how it is searched for.

The search for ToPL's threshold: square waves of a number's magnitude, and an extrapolated tail.

About half a percent of the people are above the best threshold. Square waves over the whole range cannot tell so small
a share from none: the paper's SW-W then takes what EM makes of the noise. Here devices report the magnitude (the
logarithm) of their number instead, so that all quantiles have the same relative precision. Quantiles that the reports
determine to 10% are estimated from them. The tail above the highest of these is extrapolated from the last of them.
"""

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of
from hubbub.core.reports import Floats, Sketch
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.views.basic import Binned


def range_errors(shares: Floats, points: Floats, thetas: Floats, *, epsilon: float, r: int) -> Floats:
    """The mean squared error of a sum over a random range of at most r values, for each threshold.

    Eq 8: the variance of one report times the mean length (r+2)/3, plus the squared bias of clipping times the mean
    squared length (r+1)(r+2)/6, where the paper prints r^2/24.
    """
    variance = Hybrid(epsilon=epsilon, low=0.0, high=1.0).variance(1)  # the same for any value, above epsilon 0.61
    noise = (r + 2) / 3 * variance * thetas**2
    above = np.maximum(points[None, :] - thetas[:, None], 0.0) @ shares
    return np.asarray(noise + (r + 1) * (r + 2) / 6 * above**2)


CELLS, SPAN = 1024, 1 << 20
"""The number of cells, as in the paper, and the ratio of the largest number to the first border. The ratio is generous:
a threshold depends on quantiles down to a fiftieth of it."""
PRECISE = 0.1
"""Quantiles are estimated from the reports where their relative standard error is at most this."""
MOST_TAIL, APART, MEDIAN = 0.15, (2.0, 4.0), 0.5
"""The largest share that the tail may have. Its slope is the smallest slope from quantiles at these multiples of
the tail's share, and from the median: a gap between two clusters of values would give too large a slope."""
_BODY, _HALVINGS, _STEPS = 1000, 20, 20


def magnitudes(most: float) -> Binned:
    """The view of the search: which of 1,024 cells a number is in; borders grow by a constant factor."""
    return Binned(first=most / SPAN, factor=SPAN ** (1 / (CELLS - 2)), cells=CELLS)


def search_wave(units: int) -> SquareWave:
    """The mechanism of the search."""
    return SquareWave(epsilon=epsilon_of(units), low=0.0, high=CELLS - 1.0, cells=CELLS - 1)


def numbers_of(view: Binned) -> Floats:
    """A representative number for each cell: the geometric mean of its borders; half the first border for cell 0."""
    middle = view.borders * math.sqrt(view.factor)
    return np.concatenate([[view.first / 2], middle[:-1], view.borders[-1:]])


def people_above(wave: SquareWave, view: Binned, sketch: Sketch) -> tuple[Floats, Floats]:
    """The estimated distribution: shares of the people, and the number that the people of each share have.

    If a share d moves by h cells, 2 h cells change by n gain d each, and have the variance n (near + far)/2: that is
    one standard deviation for h = (near + far) / (4 n gain^2 d^2). The tail begins at the smallest share for which this
    is at most `PRECISE`. It is that of a log-normal distribution: the logarithms of its quantiles are linear in the
    quantiles of the normal distribution.
    """
    cumulative = np.cumsum(wave.likeliest(sketch))
    ends = np.log(np.append(view.borders, view.borders[-1]))
    near, far = wave.rates
    error = math.log(view.factor) * (near + far) / (4 * sketch.n * (near - far) ** 2)  # of a quantile, times d^2

    def quantiles(above: float | Floats) -> Floats:
        return np.asarray(np.interp(1 - np.asarray(above), cumulative, ends))

    start = min(math.sqrt(error / PRECISE), MOST_TAIL)
    body = np.linspace(1.0, start, _BODY + 1)
    tail = start * 0.5 ** (np.arange(_HALVINGS * _STEPS + 1) / _STEPS)
    normal = NormalDist().inv_cdf
    starts = (*(times * start for times in APART), MEDIAN)
    slope = min((quantiles(start) - quantiles(other)) / (normal(other) - normal(start)) for other in starts)
    above = np.array([normal(start) - normal(float(share)) for share in np.sqrt(tail[1:] * tail[:-1])])
    logs = np.concatenate([quantiles((body[1:] + body[:-1]) / 2), quantiles(start) + slope * above])
    shares = -np.diff(np.concatenate([body, tail[1:-1], [0.0]]))
    return shares, np.exp(np.minimum(logs, ends[-1]))


def tail_theta(
    wave: SquareWave, view: Binned, sketch: Sketch, *, most: float, epsilon: float, r: int
) -> tuple[float, float]:
    """The threshold of least expected error (Eq 8, corrected), and how much of the mean clipping to it loses.

    Parameters
    ----------
    wave, view, sketch
        The mechanism and view of the search, and the sketch of its reports.
    most
        The largest number.
    epsilon
        What a report of a clipped value will spend.
    r
        The most values that a range has.
    """
    shares, numbers = people_above(wave, view, sketch)
    thetas = np.minimum(view.borders, most)  # the last border may be above `most` by rounding
    theta = float(thetas[int(np.argmin(range_errors(shares, numbers, thetas, epsilon=epsilon, r=r)))])
    return theta, float(shares @ np.maximum(numbers - theta, 0.0))


def clipped_away(
    wave: SquareWave, view: Binned, sketch: Sketch, theta: float, groups: int = 1, people: int = 0
) -> tuple[Estimate, Estimate]:
    """What clipping to a threshold hides: the share of people above it, and how much of the mean their numbers lose.

    The threshold rests on an extrapolated tail, which a few huge values need not follow. These estimates do not: their
    intervals are those of the reports of the search alone. The upper end of the loss is what rare large values could
    add to the mean without being noticed. The loss is linear in the unbiased shares of the cells, whose covariance is
    known; its interval is extended by what the width of the cells can hide. The threshold is taken as given, although
    it is found from the same reports. Where one of several `groups` of devices was asked, intervals allow for the
    drawing of its `people`, who may have sent several of the reports each.
    """
    drawn = wave.distribution(sketch).of_groups(groups, min(sketch.n, people))
    distribution, most = drawn, float(view.borders[-1])
    label = f"above {theta:.4g}"
    if theta >= most:  # nothing is clipped
        nothing = Estimate(np.zeros(1), np.zeros(1), sketch.n, "heuristic", labels=(label,))
        return nothing, replace(nothing, kind="quantity", labels=("of the mean",))
    above = distribution.share(int(np.argmin(np.abs(view.borders - theta))) + 0.5, wave.high)
    numbers = numbers_of(view)
    lost = distribution.linear(np.maximum(numbers - theta, 0.0))
    rounding = (math.sqrt(view.factor) - 1) * float(distribution.value @ np.where(numbers > theta, numbers, 0.0))
    error = lost.stderr + rounding / NormalDist().inv_cdf(0.975)
    return (
        replace(above, bias="heuristic", labels=(label,)),
        replace(lost, variance=error**2, bias="heuristic", kind="quantity", labels=("of the mean",)),
    )
