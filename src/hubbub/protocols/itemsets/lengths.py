"""The distribution of set sizes ("lengths"): the length to pad sets to, and the correction for longer sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate

PERCENTILE = 0.9
ALPHA, RARELY = 0.05, 1e-6
"""The probability that any length passes its threshold by chance in a study; and the same for lengths beyond a gap."""
_UNSURE = 1.645
"""A sum of shares that is below 1 by fewer standard errors than this may be below 1 by chance."""


@dataclass(frozen=True, eq=False)
class LengthShares:
    """The share of people whose set has each length, from 0 on.

    Parameters
    ----------
    shares
        The share of each length.
    known
        Which shares were estimated; the others were extrapolated.

    References
    ----------
    Dissertation, sections 5.2.5 and 5.3.1.
    """

    shares: NDArray[np.float64]
    known: NDArray[np.bool_] | None = None

    def percentile(self, part: float = PERCENTILE) -> int:
        """The smallest length such that more than this part of the non-empty sets are no longer; 1 if all are empty."""
        within = np.cumsum(self.shares[1:])
        if not within.size or not within[-1] > 0:
            return 1
        return int(np.argmax(within > part * within[-1])) + 1

    def update_factor(self, length: int) -> float:
        """The factor by which estimates are too small if sets are padded to this length (Eq 5.5).

        It is the number of all items divided by the number of items left if longer sets are cut to `length` items. It
        is right on average, and for each item if longer sets have the same items as shorter ones. Extrapolated lengths
        do not count: frequent items are in short sets too, and the factor of all lengths would be too large for them.
        """
        lengths = np.arange(self.shares.size)
        shares = self.shares if self.known is None else np.where(self.known, self.shares, 0.0)
        remaining = float(np.minimum(lengths, length) @ shares)
        return float(lengths @ shares) / remaining if remaining > 0 else 1.0


def upper_limits(shares: Estimate, sizes: Estimate, length: int, longest: int) -> tuple[Estimate, ...]:
    """Estimates that are at least the true shares on average, whatever longer sets contain; one for each cut.

    Padded to `length` = l, an item of a set of k items is reported with probability min(1, l/k). Hence, for any cut
    t >= l, the true share is at most t/l times the share that is reported, plus the sum over k > t of (1 - t/k) times
    the share of sets of k items. The second term is estimated from `sizes`; a constant is taken off its coefficients,
    because the shares of all sizes sum to 1, which makes its error as small as it can be. Rare items have the lowest
    limit at a long cut, frequent ones at a short cut.

    Parameters
    ----------
    shares
        The shares that are reported, of the population.
    sizes
        The share of each size, from 0 on, of the population, from reports of other people.
    length, longest
        The length that sets were padded to, and the size of the largest possible set.
    """
    limits = []
    cuts = [length * 2**doubled for doubled in range(64) if length * 2**doubled < longest]
    for cut in [*cuts, max(length, longest)]:
        lengths = np.arange(1, min(longest + 1, len(sizes)))
        beyond = np.concatenate([[0.0], np.maximum(0.0, 1 - cut / lengths)])
        constant = float(beyond.mean()) if beyond.any() else 0.0
        weights = np.zeros(len(sizes))
        weights[: beyond.size] = beyond - constant
        part = sizes.linear(weights)
        times = cut / length
        value = times * shares.value + float(part.value[0]) + constant
        limits.append(Estimate(value, times**2 * shares.variance + float(part.variance[0]), shares.n))
    return tuple(limits)


def significant_lengths(
    estimate: Estimate, variance: float, longest: int | None = None, *, published: bool = False
) -> LengthShares:
    """The shares of lengths that are significantly above 0, and an extrapolated share of longer sets.

    As published, a share counts as 0 unless it passes T = Phi^-1(1 - 0.05/m) sqrt(variance), with m lengths above 0:
    chance alone passes it once in twenty studies. That has two faults. If chance raises the share of a long length, all
    estimates are multiplied by too large a factor. And long lengths are too rare to pass one by one, so that long sets
    are ignored. Therefore

    - lengths beyond a gap (two consecutive lengths that do not pass) must pass a threshold that chance passes in one
      study in a million;
    - if the shares sum to significantly less than 1, the rest is distributed over the lengths beyond the last that
      passed, each having the same part of what is left: these sets are half as long again on average.

    Parameters
    ----------
    estimate
        The share of each length, from 0 on.
    variance
        The variance of the estimate of a share that is 0.
    longest
        The length of the longest possible set, if known.
    published
        Whether to use the threshold alone, as published.

    References
    ----------
    Dissertation, section 5.3.1, step 2.
    """
    if len(estimate) < 2:
        raise InvalidValue("estimate", len(estimate), "the shares of at least two lengths")
    most = len(estimate) - 1 if longest is None else min(longest, len(estimate) - 1)
    low, high = (-NormalDist().inv_cdf(chance / most) * math.sqrt(variance) for chance in (ALPHA, RARELY))
    known = (estimate.value > low) & (np.arange(len(estimate)) <= most)
    gap = np.flatnonzero(~known[1:-1] & ~known[2:])
    if gap.size and not published:
        known[gap[0] + 1 :] &= estimate.value[gap[0] + 1 :] > high
    shares = np.where(known, estimate.value, 0.0)
    last, missing = int(np.flatnonzero(known).max(initial=0)), 1 - float(shares.sum())
    if not published and 0 < last < most and missing > _UNSURE * math.sqrt(variance * known.sum()):
        further = np.arange(most - last)
        tail = (1 - 1 / max(1.0, last / 2)) ** further
        shares[last + 1 : most + 1] = missing * tail / tail.sum()
    return LengthShares(shares, known)
