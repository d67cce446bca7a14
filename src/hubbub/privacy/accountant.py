"""What many shuffled batches cost together: numerical composition of upper bounds of delta.

A bound of delta at every epsilon is the privacy profile of a pair of distributions that are at least as easy to tell
apart as any two neighbouring batches. The logarithm of the ratio of an outcome's two probabilities, the privacy loss,
adds up over the batches: its distribution is convolved. Every step rounds upwards: between the points of a grid the
profile is replaced by its chords, cut tails are counted as certain loss, and what is cut below is moved up.

References
----------
Koskela et al., 2020; Zhu et al., 2022 (Theorems 10 and 17: any adaptive choice of batches is covered).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Floats
from hubbub.mechanisms.base import ReportFormat
from hubbub.privacy.amplify import MOST_AMPLIFIED, Amplified, bounds, check_batch, check_unlinkable, compose
from hubbub.privacy.shuffle_bounds import COARSE, BlanketBound, CloneBound, clone_chance, stronger_clone_chance

Profile = Callable[[float], float]
"""An upper bound of delta at an epsilon of at least 0, in both directions."""
MOST_BATCHES = 1_000_000
POINTS = 96
"""Points of the grid above 0: at least a dozen within a standard deviation of the loss."""
_LEAST_DELTA = 1e-10
_ROUNDING = 1e-12
"""More than all rounding errors of the transforms together."""


class Losses(NamedTuple):
    """The distribution of a privacy loss: chances at multiples of a step, and the chance of a certain loss."""

    first: int
    chances: Floats
    certain: float

    def and_then(self, other: Losses, cut: float) -> Losses:
        """The loss of both together; of each end at most `cut` is given up."""
        size = len(self.chances) + len(other.chances) - 1
        width = 1 << (size - 1).bit_length()
        product = np.fft.rfft(self.chances, width) * np.fft.rfft(other.chances, width)
        chances = np.maximum(np.fft.irfft(product, width)[:size], 0.0)
        below, above = np.cumsum(chances), np.cumsum(chances[::-1])
        start, end = int(np.searchsorted(below, cut)), size - int(np.searchsorted(above, cut))
        kept = chances[start:end].copy()
        kept[0] += chances[:start].sum()
        certain = self.certain + other.certain - self.certain * other.certain + chances[end:].sum()
        return Losses(self.first + other.first + start, kept, float(certain))

    def delta(self, epsilon: float, step: float) -> float:
        """The delta at an epsilon."""
        loss = step * np.arange(self.first, self.first + len(self.chances))
        gain = -np.expm1(np.minimum(epsilon - loss, 0.0))
        return float(self.chances @ gain) + self.certain + _ROUNDING


def losses_of(profile: Profile, largest: float) -> tuple[Losses, float]:
    """The losses of a pair of distributions whose profile is at least this one, and the step between them.

    The pair has the largest convex profile below the points of the grid, which no convex profile through lower points
    exceeds. What lies above `largest` is certain loss.
    """
    step = largest / POINTS
    deltas = np.array([profile(number * step) for number in range(POINTS + 1)])
    ratios = np.exp(step * np.arange(POINTS + 1))
    # Both directions have one profile H, so that H(1/a) = 1 - 1/a + H(a)/a; and H(0) = 1.
    mirrored = (1 - 1 / ratios + deltas / ratios)[:0:-1]
    x = np.concatenate([[0.0], 1 / ratios[:0:-1], ratios])
    corners = _lower_hull(x, np.concatenate([[1.0], mirrored, deltas]))
    height = np.concatenate([[1.0], mirrored, deltas])[corners]
    slopes = np.append(np.diff(height) / np.diff(x[corners]), 0.0)
    # The change of slope at a ratio is the chance of that ratio under the second distribution.
    chances = np.zeros(len(x))
    chances[corners[1:]] = x[corners[1:]] * np.maximum(np.diff(slopes), 0.0)
    chances = chances[1:]
    return Losses(-POINTS, chances, max(1.0 - float(chances.sum()), 0.0)), step


def _lower_hull(x: Floats, y: Floats) -> list[int]:
    """The corners of the largest convex function that is nowhere above the points; x ascends."""
    corners: list[int] = []
    for place in range(len(x)):
        while len(corners) > 1:
            before, last = corners[-2], corners[-1]
            if (y[last] - y[before]) * (x[place] - x[last]) < (y[place] - y[last]) * (x[last] - x[before]):
                break
            corners.pop()
        corners.append(place)
    return corners


def composed_epsilon(profile: Profile, *, times: int, delta: float, most: float) -> float | None:
    """The epsilon of several outputs of one profile, which is 0 above `most`, at a delta; None if there is none."""
    spare = delta * 1e-4
    low, largest = 0.0, most
    if profile(most * (1 - 1e-9)) <= spare / times:
        while largest - low > 0.01 * largest:
            middle = (low + largest) / 2
            low, largest = (low, middle) if profile(middle) <= spare / times else (middle, largest)
    one, step = losses_of(profile, largest)
    cut = spare / (4 * times.bit_length())
    total = one
    for bit in f"{times:b}"[1:]:  # by squaring
        total = total.and_then(total, cut)
        if bit == "1":
            total = total.and_then(one, cut)
    high = step * (total.first + len(total.chances))
    if total.delta(high, step) > delta:
        return None
    low, high = 0.0, max(high, 0.0)
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if total.delta(middle, step) > delta else (low, middle)
    return high


def profile_of(mechanism: ReportFormat | float, n: int, *, delta: float, fakes: int = 0) -> Profile:
    """The smallest proved delta of n shuffled reports at each epsilon: by the blanket and by clones.

    Of a mechanism of which only the local epsilon is known, by clones alone.
    """
    if isinstance(mechanism, float):
        ratio = math.exp(mechanism)
        clones = CloneBound(ratio, n, stronger_clone_chance(ratio), tail=delta * 1e-7)
        return lambda epsilon: clones(epsilon)
    levels = mechanism.whole_reports or [(1.0, check_unlinkable(mechanism))]
    rows: list[list[Profile]] = []
    for share, whole in levels:
        ratio, blanket = math.exp(whole.effective_epsilon), whole.blanket()
        chances = (clone_chance(ratio), stronger_clone_chance(ratio))
        row: list[Profile] = [CloneBound(ratio, n, share * chance, tail=delta * 1e-7) for chance in chances]
        if blanket is not None:
            row.append(BlanketBound(blanket, n, fakes=fakes, share=share, cells=COARSE, tail=delta * 1e-7))
        rows.append(row)
    return lambda epsilon: max(min(bound(epsilon) for bound in row) for row in rows)


def accounted(mechanism: ReportFormat | float, *, n: int, delta: float, times: int, fakes: int = 0) -> Amplified:
    """The smallest proved (epsilon, delta) of one person's reports in several shuffled batches of at least n reports.

    The best of numerical composition, advanced composition, and the local epsilon of all reports together.

    Parameters
    ----------
    mechanism
        The mechanism by which every device reports in each batch, or its local epsilon where only that is known. Of a
        stream of changes, a batch is a whole horizon.
    n, fakes
        How many reports each batch has at least, and how many uniform fakes in addition.
    delta
        The delta of all batches together.
    times
        In how many batches the person has a report.

    Example:
        >>> from hubbub import GRR
        >>> week = accounted(GRR(epsilon=1.0, domain=3), n=10_000, delta=1e-6, times=7)
        >>> round(week.epsilon, 3), week.method
        (0.108, 'accountant')
    """
    check_integer("times", times, 1, MOST_BATCHES)
    check_batch(n, delta, fakes)
    part = delta / (2 * times)
    if isinstance(mechanism, float):
        local, best = mechanism, Amplified(mechanism * times, 0.0, "local")
    else:
        every = [*bounds(mechanism, n=n, delta=part, fakes=fakes)]
        if times > 1 and any(bound.one_batch for bound in every):
            raise InvalidValue("times", times, "1: a device that remembers can be recognised in a second batch")
        local = max(bound.epsilon for bound in every if bound.method == "local")
        one = min(every, key=lambda bound: bound.epsilon)
        several = compose([one] * times, slack=delta / 2 if times > 1 else 0.0)
        best = min(several, Amplified(local * times, 0.0, "local"), key=lambda bound: bound.epsilon)
    if local > MOST_AMPLIFIED or delta < _LEAST_DELTA:
        return best
    epsilon = composed_epsilon(profile_of(mechanism, n, delta=part, fakes=fakes), times=times, delta=delta, most=local)
    return best if epsilon is None or epsilon >= best.epsilon else Amplified(epsilon, delta, "accountant")
