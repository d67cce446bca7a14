"""Section 5.2.1 and 5.5.1 on paper: with how much more a sampled item may be reported."""

from __future__ import annotations

import math
from typing import NamedTuple

from hubbub.core.errors import InvalidValue, check_integer

LENGTHS = (2, 5, 10, 20, 50, 100)
"""The lengths to which sets are padded in the tables of chapter 5."""


class HashedBudget(NamedTuple):
    """What Theorem 5.5.1 allows OLH.

    Parameters
    ----------
    epsilon
        The budget eps' of OLH.
    most
        The number l' of items that may fall in one bucket.
    failure
        The bound on the probability that more do: at most delta.
    """

    epsilon: float
    most: int
    failure: float


def amplified(epsilon: float, length: int) -> float:
    """The budget eps' of GRR that spends epsilon on a set padded to this length (Theorem 5.2.1).

    Example:
        >>> round(amplified(1.0, 10), 2)
        2.9
    """
    check_integer("length", length, 1)
    return math.log1p(length * math.expm1(epsilon))


def amplified_hashing(epsilon: float, length: int, delta: float) -> HashedBudget:
    """The largest budget eps' of OLH that is (epsilon, delta) on a set padded to this length (Theorem 5.5.1).

    It is real-valued, as in the text, and as the theorem's proof for sets of at most this length.

    Parameters
    ----------
    epsilon, length
        As of `amplified`.
    delta
        The failure that is allowed.

    Example:
        >>> budget = amplified_hashing(4.0, 10, 1e-3)
        >>> round(budget.epsilon, 2), budget.most
        (5.19, 3)
    """
    check_integer("length", length, 1)
    if not 0 <= delta < 1:
        raise InvalidValue("delta", delta, "a number of at least 0, below 1")
    for most in range(1, length + 1):
        gain = length / most * math.expm1(epsilon)
        failure = math.comb(length, most + 1) / math.ceil(gain + 2) ** most
        if failure <= delta:
            return HashedBudget(math.log1p(gain), most, failure)
    raise AssertionError("no more items than there are fall in one bucket")
