"""The arithmetic of exclusive subsets: the chance that a random signed set misses a vector, and the best set size.

A set of m of D positions with a fair sign each meets the vector's s entries in J positions, hypergeometric, and misses
all of their signs with probability q = E[2^-J]. Everything about ExSub follows from q, at (D, s, m) and one less.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hubbub.mechanisms.ternary.rates import Quantity
from hubbub.mechanisms.two_weights import search_power


def miss_chance(positions: int, entries: int, size: int) -> Fraction:
    """The exact chance that a random signed set of `size` positions holds none of the entries."""
    # C(D-s, m-j)/C(D, m) is a quotient of products of s factors, however large m is.
    whole = sum(
        math.comb(entries, j) * math.perm(size, j) * math.perm(positions - size, entries - j) << entries - j
        for j in range(min(entries, size) + 1)
    )
    return Fraction(whole, math.perm(positions, entries) << entries)


def best_size(epsilon: float, positions: int, entries: int, *, of: Quantity = "mean") -> int:
    """The size m of sets with the smallest mean squared error over all positions (Lemma B.1), by bisection.

    The paper's ceil(D/((e^eps+1) s + 2)) is about half of it, and costs 4 to 48% more error.
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
