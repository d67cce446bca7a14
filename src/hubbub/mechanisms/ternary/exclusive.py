"""The arithmetic of exclusive subsets: how likely a random signed set misses a vector, and the best size of a set.

A set of m of D positions with a fair sign each meets the vector's s entries in J positions, hypergeometric, and misses
all of their signs with probability q = E[2^-J]. Everything about ExSub follows from q, at (D, s, m) and one less.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.ternary.ternary import Quantity, Rates, search_power

__all__ = ["best_size", "exclusive_rates", "group_weights", "miss_chance"]


def miss_chance(positions: int, entries: int, size: int) -> Fraction:
    """The exact chance that a random signed set of `size` positions holds none of the entries.

    Example:
        >>> miss_chance(3, 1, 2)
        Fraction(2, 3)
    """
    # C(D-s, m-j)/C(D, m) is a quotient of products of s factors, however large m is.
    whole = sum(
        math.comb(entries, j) * math.perm(size, j) * math.perm(positions - size, entries - j) << entries - j
        for j in range(min(entries, size) + 1)
    )
    return Fraction(whole, math.perm(positions, entries) << entries)


def exclusive_rates(positions: int, entries: int, size: int, floor: Fraction) -> Rates:
    """The rates of ExSub, where `floor`, e^-eps, is the weight of a set that misses, beside 1 of one that does not.

    Example:
        >>> exclusive_rates(3, 1, 2, Fraction(1, 2))[:3]
        (Fraction(1, 2), Fraction(5, 16), Fraction(1, 4))
    """
    rest = positions - 1, size - 1  # one position is given: the others decide whether the set misses
    gain = 1 - floor
    each = Fraction(size, 2 * positions) / (1 - gain * miss_chance(positions, entries, size))
    return Rates(
        true=each,
        false=each * (1 - gain * miss_chance(rest[0], entries, rest[1])),
        reverse=each * (1 - gain * miss_chance(rest[0], entries - 1, rest[1])),
    )


def group_weights(positions: int, entries: int, size: int, *, missing: int, meeting: int) -> dict[tuple[int, int], int]:
    """The exact weight of every group of sets: those with so many true signs and so many reversed ones (Algorithm 3).

    In proportion to the number of sets in it times the weight of one; no group that can be is left out.

    Example:
        >>> group_weights(3, 1, 2, missing=1, meeting=2)
        {(0, 0): 2, (0, 1): 2, (1, 0): 4}
    """
    weights = {}
    for held in range(min(entries, size) + 1):
        # Of all sets, C(s,j) C(D-s,m-j) 2^(m-j) share `held` positions with the vector, up to a common factor.
        sets = math.perm(size, held) * math.perm(positions - size, entries - held) << entries - held
        if sets:
            for true in range(held + 1):
                ways = math.comb(entries, true) * math.comb(entries - true, held - true)
                weights[true, held - true] = ways * sets * (meeting if true else missing)
    return weights


def best_size(epsilon: float, positions: int, entries: int, *, of: Quantity = "mean") -> int:
    """The size m of sets with the smallest mean squared error over all positions (Lemma B.1), by bisection.

    The paper's ceil(D/((e^eps+1) s + 2)) is about half of it, and costs 4 to 48% more error.

    Example:
        >>> best_size(1.0, 136, 8), best_size(1.0, 136, 8, of="frequency")
        (9, 8)
    """
    low, high = 1, positions - 1
    while low < high:  # the error falls, and then rises
        middle = (low + high) // 2
        if _error(epsilon, positions, entries, middle, of) <= _error(epsilon, positions, entries, middle + 1, of):
            high = middle
        else:
            low = middle + 1
    return low


def _error(epsilon: float, positions: int, entries: int, size: int, of: Quantity) -> float:
    gain = 1 - 1 / search_power(epsilon)
    missed = _miss_chance(positions, entries, size)
    held_other = gain * _miss_chance(positions - 1, entries - 1, size - 1)
    none_there = gain * _miss_chance(positions - 1, entries, size - 1)
    true = size / (2 * positions) / (1 - gain * missed)
    both, false = true * (2 - held_other), true * (1 - none_there)
    if of == "mean":
        gap = true * held_other
        return (entries * (both - gap**2) + (positions - entries) * 2 * false) / gap**2
    gap = true * (2 * none_there - held_other)
    return (entries * both * (1 - both) + (positions - entries) * 2 * false * (1 - 2 * false)) / gap**2


def _miss_chance(positions: int, entries: int, size: int) -> float:
    """`miss_chance` in floats: the hypergeometric weights one from the other, each right to a few last places."""
    first = max(0, entries + size - positions)
    j = np.arange(first, min(entries, size), dtype=np.float64)
    steps = np.log((entries - j) * (size - j)) - np.log((j + 1) * (positions - entries - size + j + 1))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return float((weights * 0.5 ** np.arange(first, first + weights.size)).sum() / weights.sum())
