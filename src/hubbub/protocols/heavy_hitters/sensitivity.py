"""The limits of a search: the sensitivity threshold, and the expected number of false positives."""

from __future__ import annotations

import math
from statistics import NormalDist

from hubbub.core.errors import InvalidValue

_ROUNDING = 1e-6
_NEGLIGIBLE = 1e-12


def sensitivity_threshold(sigma: float, candidates: float, n: int, false_positives: float = 1.0) -> float:
    """The share Psi above which chance is expected to put `false_positives` candidates (Definition 4.3.1).

    Parameters
    ----------
    sigma
        The standard deviation of the estimate from one report; that from n reports is sigma / sqrt(n).
    candidates
        How many candidates are tested.
    n
        How many reports there are.
    false_positives
        How many candidates that nobody has are expected above the share.

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
    """The expected number of candidates above a share, of those that nobody has."""
    return candidates * 0.5 * math.erfc(share * math.sqrt(n) / sigma / math.sqrt(2))


def supported_by_chance(rates: tuple[float, float], candidates: float, n: int, share: float) -> float:
    """The expected number of candidates at or above a share, of those that nobody has, by the exact law of supports.

    A support is Binomial(n, q), whose upper tail is heavier than a normal one: at epsilon 3 and 4,000 reports 2.2 times
    as heavy 4 standard errors out.

    Parameters
    ----------
    rates
        The probabilities p and q that a report supports the device's own value, and another value.
    candidates, n
        As of `sensitivity_threshold`.
    share
        The smallest estimated share that counts.
    """
    p, q = rates
    support = math.ceil(n * (q + share * (p - q)) - _ROUNDING)
    if support <= n * q:  # the lower tail is the smaller one
        return candidates * (1 - _tail(n, 1 - q, n - support + 1))
    return candidates * _tail(n, q, support)


def _tail(n: int, q: float, least: int) -> float:
    """The probability that Binomial(n, q) is at least `least`, which is above the mean."""
    if least > n:
        return 0.0
    ways = math.lgamma(n + 1) - math.lgamma(least + 1) - math.lgamma(n - least + 1)
    term, total = math.exp(ways + least * math.log(q) + (n - least) * math.log1p(-q)), 0.0
    for count in range(least, n + 1):
        total += term
        term *= (n - count) / (count + 1) * q / (1 - q)
        if term <= _NEGLIGIBLE * total:
            break
    return total
