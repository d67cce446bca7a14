"""What a search can find at all: the sensitivity threshold, and how many of what it finds are expected to be chance."""

from __future__ import annotations

import math
from statistics import NormalDist

from hubbub.core.errors import InvalidValue


def sensitivity_threshold(sigma: float, candidates: float, n: int, false_positives: float = 1.0) -> float:
    """The share Psi that so many candidates whom nobody holds are expected to pass by chance (Definition 4.3.1).

    Parameters
    ----------
    sigma
        The standard deviation of one report's estimate: that of a share is sigma / sqrt(n).
    candidates
        How many are tested.
    n
        How many reports there are.
    false_positives
        How many are expected to pass.

    Example:
        >>> sigma = math.sqrt(4 * math.exp(2) / (math.exp(2) - 1) ** 2)
        >>> round(sensitivity_threshold(sigma, 2**64, 10**6), 6)
        0.007726

    References
    ----------
    Dissertation, section 4.3.2; Table 4.1.
    """
    if not n >= 1:
        raise InvalidValue("n", n, "at least 1")
    if not false_positives > 0:
        raise InvalidValue("false_positives", false_positives, "a number above 0")
    if false_positives >= candidates / 2:
        return 0.0
    return -NormalDist().inv_cdf(false_positives / candidates) * sigma / math.sqrt(n)


def expected_false_positives(sigma: float, candidates: float, n: int, share: float) -> float:
    """How many candidates whom nobody holds are expected above a share by chance.

    Example:
        >>> round(expected_false_positives(1.7, 2**20, 10**4, sensitivity_threshold(1.7, 2**20, 10**4, 3.0)), 6)
        3.0
    """
    return candidates * 0.5 * math.erfc(share * math.sqrt(n) / sigma / math.sqrt(2))
