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


@dataclass(frozen=True, eq=False)
class LengthShares:
    """The shares of people whose sets are of each length, from 0 on, with those that chance explains set to 0.

    Parameters
    ----------
    shares
        The share of each length.
    estimate
        What they were estimated as.

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

    def update_factor(self, length: int) -> tuple[float, float]:
        """How many times too small an estimate is that pads to this length, and the variance of that (Eq 5.5).

        All items against those that are left: of a set longer than `length`, that many. As if the items of longer sets
        were those of shorter ones.

        Example:
            >>> [round(number, 2) for number in LengthShares(np.array([0.0, 0.5, 0.0, 0.5])).update_factor(1)]
            [2.0, 0.0]
        """
        lengths = np.arange(self.shares.size)
        kept = float(np.minimum(lengths, length) @ self.shares)
        if not kept > 0:
            return 1.0, 0.0
        factor = float(lengths @ self.shares) / kept
        if self.estimate is None:
            return factor, 0.0
        weights = np.where(self.shares > 0, lengths - factor * np.minimum(lengths, length), 0.0) / kept
        return factor, float(self.estimate.linear(weights).variance[0])


def significant_lengths(
    estimate: Estimate, variance: float, longest: int | None = None, *, gaps: bool = True
) -> LengthShares:
    """The estimated shares of lengths, 0 where they do not pass the significance threshold.

    With m lengths above 0 it is T = Phi^-1(1 - 0.05/m) sqrt(variance): chance alone passes it once in twenty studies.
    Being long, a length that did would multiply every share. So lengths beyond a gap, of two in a row that do not pass
    it, must pass a higher one, which chance passes in one study of a million. `gaps=False` is as the text has it.

    Parameters
    ----------
    estimate
        The share of each length, from 0 on.
    variance
        Of the estimate of a share that is 0.
    longest
        The longest that a set can be, where that is known: what is longer counts as 0.
    gaps
        Whether lengths beyond a gap must pass the higher threshold.

    Example:
        >>> estimate = Estimate([0.3, 0.5, 0.02, 0.18], [1e-4] * 4, 1000)
        >>> significant_lengths(estimate, 1e-4).shares.tolist()
        [0.3, 0.5, 0.0, 0.18]
        >>> chance = Estimate([0.3, 0.7, 0.01, 0.0, 0.02, -0.01, 0.035], [1e-4] * 7, 1000)
        >>> [significant_lengths(chance, 1e-4, gaps=gaps).shares.tolist()[6] for gaps in (True, False)]
        [0.0, 0.035]
    """
    if len(estimate) < 2:
        raise InvalidValue("estimate", len(estimate), "the shares of at least two lengths")
    lengths = len(estimate) - 1 if longest is None else min(longest, len(estimate) - 1)
    low, high = (-NormalDist().inv_cdf(chance / lengths) * math.sqrt(variance) for chance in (ALPHA, RARELY))
    known = (estimate.value > low) & (np.arange(len(estimate)) <= lengths)
    gap = np.flatnonzero(~known[1:-1] & ~known[2:])
    if gaps and gap.size:
        known[gap[0] + 1 :] &= estimate.value[gap[0] + 1 :] > high
    return LengthShares(np.where(known, estimate.value, 0.0), estimate)
