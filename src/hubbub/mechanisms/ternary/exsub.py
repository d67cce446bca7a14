"""ExSub, exclusive subsets: a report is m positions with a sign each, more often with a true sign among them.

The arithmetic of exclusive subsets: the chance that a random signed set misses a vector, and the best set size.

A set of m of D positions with a fair sign each meets the vector's s entries in J positions, hypergeometric, and misses
all of their signs with probability q = E[2^-J]. Everything about ExSub follows from q, at (D, s, m) and one less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from hubbub.mechanisms.ternary.rates import Quantity
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.mechanisms.weights import search_power


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


@dataclass(frozen=True, kw_only=True)
class ExSub(SignedSets):
    """Means of sparse ternary vectors with a small error at any epsilon; entries can be reported as they come.

    A set that holds a true sign has the weight 1, one that misses them all e^-eps (`SignedSets` has the rest). Rates:
    section 5.4 of the paper, with D everywhere. Of means `NetSub` has a smaller error; of frequencies ExSub has.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    m
        How many positions a report says, fewer than d + s; 0 chooses the number with the smallest error of the mean.
        For frequencies take `ExSub.best_for("frequency", ...)`: with one entry and a small epsilon, what is best for
        the mean (nearly every position) tells next to nothing of frequencies.
    bits, least
        A set that misses has the weight `least` where others have 2^bits, at least e^-eps of it; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> exsub = ExSub(epsilon=2.0, dimension=16, sparsity=2)
        >>> reports = exsub.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> exsub.estimate(exsub.accumulate(reports)).value.round(1)[[3, 5]].tolist(), exsub.m
        ([1.0, -1.0], 2)

    References
    ----------
    sao2-exsub, section 5 (Definition 5.1, Algorithm 3, Proposition 5.2, Lemma B.1).
    """

    key_value: ClassVar[Literal["no", "named", "chosen"]] = "chosen"

    def _choose(self) -> None:
        if self.m == 0:
            self._set("m", best_size(self.epsilon, self.positions, self.sparsity))
        self._integer("m", 1, self.positions - 1)

    @classmethod
    def best_for(cls, of: Quantity, *, epsilon: float, dimension: int, sparsity: int) -> Self:
        if of == "mean":
            return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity)
        cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=1)  # refuses an invalid setting
        m = best_size(epsilon, dimension + sparsity, sparsity, of="frequency")
        return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=m)

    def prefers(self, trues: Any, reverses: Any) -> Any:
        return trues > 0

    def share(self, positions: int, entries: int, size: int, *, trues: int = 0, reverses: int = 0) -> Fraction:
        return Fraction(1) if trues else 1 - miss_chance(positions, entries, size)

    def _both(self) -> Fraction:
        # Of two vectors, the opposite ones share the fewest sets: a set that holds a sign of neither must miss every
        # position of theirs, where of two disjoint ones it may hold reversed signs.
        preferred = self.share(self.positions, self.sparsity, self.m)
        d, s, m = self.positions, self.sparsity, self.m
        return 2 * preferred - 1 + Fraction(math.perm(d - m, s), math.perm(d, s))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=math.log(2), dimension=2, sparsity=1, m=2)
        yield cls(epsilon=1.0, dimension=4, sparsity=2, m=2)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)
