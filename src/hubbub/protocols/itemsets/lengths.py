"""How many candidates people hold: the length to pad to, and the factor that makes up for longer sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate

__all__ = ["LengthShares", "significant_lengths"]

PERCENTILE = 0.9
ALPHA, RARELY = 0.05, 1e-6
"""How often chance passes the threshold in a study, and that of lengths beyond a gap."""
_UNSURE = 1.645
"""How many standard errors of the sum of all shares chance explains."""


@dataclass(frozen=True, eq=False)
class LengthShares:
    """The shares of people whose sets are of each length, from 0 on.

    Parameters
    ----------
    shares
        The share of each length.
    estimate, known
        What they were estimated as, and which of them were taken from there; any others share what is left of 1.

    Example:
        >>> lengths = LengthShares(np.array([0.1, 0.5, 0.3, 0.0, 0.1]))
        >>> lengths.percentile(), lengths.update_factor(4)
        (4, (1.0, 0.0))

    References
    ----------
    Dissertation, sections 5.2.5 and 5.3.1.
    """

    shares: NDArray[np.float64]
    estimate: Estimate | None = None
    known: NDArray[np.bool_] | None = None

    def percentile(self, part: float = PERCENTILE) -> int:
        """The shortest length that more than this part of the sets that are not empty do not pass; 1 if none is known.

        Example:
            >>> LengthShares(np.array([0.5, 0.25, 0.22, 0.03])).percentile()
            2
        """
        within = np.cumsum(self.shares[1:])
        if not within.size or not within[-1] > 0:
            return 1
        return int(np.argmax(within > part * within[-1])) + 1

    def update_factor(self, length: int, *, rest: bool = False) -> tuple[float, float]:
        """How many times too small an estimate is that pads to this length, and the variance of that (Eq 5.5).

        All items against those that are left: of a set longer than `length`, that many. As if the items of longer sets
        were those of shorter ones. Those that share what is left of 1 count only with `rest`: what many people hold is
        in short sets too, and a factor of all lengths is too large for it.

        Example:
            >>> [round(number, 2) for number in LengthShares(np.array([0.0, 0.5, 0.0, 0.5])).update_factor(1)]
            [2.0, 0.0]
        """
        lengths = np.arange(self.shares.size)
        shares = self.shares if rest or self.known is None else np.where(self.known, self.shares, 0.0)
        kept = float(np.minimum(lengths, length) @ shares)
        if not kept > 0:
            return 1.0, 0.0
        factor = float(lengths @ shares) / kept
        if self.estimate is None or self.known is None:
            return factor, 0.0
        missed = lengths - factor * np.minimum(lengths, length)
        left = np.where(self.known, 0.0, self.shares)
        if rest and left.any():  # what a share gains, the rest loses
            missed = missed - left @ missed / left.sum()
        return factor, float(self.estimate.linear(np.where(self.known, missed, 0.0) / kept).variance[0])


def significant_lengths(
    estimate: Estimate, variance: float, longest: int | None = None, *, published: bool = False
) -> LengthShares:
    """The estimated shares of lengths, without what chance explains, and with what is missing of all people.

    As published, a share counts as 0 unless it passes T = Phi^-1(1 - 0.05/m) sqrt(variance), with m lengths above 0:
    chance alone passes it once in twenty studies. That has two faults. A long length that chance raised multiplies
    every share. And long lengths are too rare to pass one by one, so that sets of them are forgotten. Therefore here

    - lengths beyond a gap, of two in a row that do not pass, must pass a threshold of one study in a million;
    - what the shares lack of 1, where chance does not explain it, is laid beyond the last length that passed, each
      length having the same part of what is left: half as long again on average.

    Parameters
    ----------
    estimate
        The share of each length, from 0 on.
    variance
        Of the estimate of a share that is 0.
    longest
        The longest that a set can be, where that is known.
    published
        Whether to leave it at the threshold, as the text does.

    Example:
        >>> estimate = Estimate([0.3, 0.48, 0.02, 0.15, -0.01, 0.01, 0.0, 0.035], [1e-4] * 8, 1000)
        >>> significant_lengths(estimate, 1e-4, published=True).shares.tolist()
        [0.3, 0.48, 0.0, 0.15, 0.0, 0.0, 0.0, 0.035]
        >>> significant_lengths(estimate, 1e-4).shares.round(3).tolist()
        [0.3, 0.48, 0.0, 0.15, 0.047, 0.016, 0.005, 0.002]

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
    return LengthShares(shares, estimate, known)
