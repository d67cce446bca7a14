"""The bound by clones: it holds for every mechanism with a local epsilon."""

from __future__ import annotations

import math

import numpy as np

from hubbub.privacy.amplification.binomial import at_least, blocks, point

_BLOCKS = 400
_SLACK = 1 + 1e-3  # as in `blanket_bound`


def clone_chance(ratio: float) -> float:
    """The chance that another's report is a clone, as of 2021: e^-epsilon."""
    return 1 / ratio


def stronger_clone_chance(ratio: float) -> float:
    """The chance of a clone in the form of 2023, at its general value: 2/(e^epsilon + 1)."""
    return 2 / (ratio + 1)


class CloneBound:
    """An upper bound of delta by epsilon, where each other report is a clone with this chance.

    A clone stands for one of the two values of the report that matters, either as often, and that report itself for the
    right one with probability ratio/(ratio+1). Only the number C of clones matters, and how many stand for the first
    value. More clones hide better, so that a block of numbers is taken at its lower end.

    References
    ----------
    Feldman, McMillan and Talwar, "Hiding among the clones", 2021; "Stronger privacy amplification by shuffling", 2023.
    """

    def __init__(self, ratio: float, n: int, chance: float, *, tail: float = 1e-18) -> None:
        self._ratio = ratio
        self._clones = blocks(n - 1, chance, _BLOCKS, tail=tail)

    def __call__(self, epsilon: float) -> float:
        """The bound at an epsilon."""
        factor, clones = math.exp(epsilon), self._clones
        if factor >= self._ratio:
            return 0.0
        right, wrong = self._ratio / (self._ratio + 1), 1 / (self._ratio + 1)
        first_more, second_more = right - factor * wrong, factor * right - wrong
        odds = second_more / first_more  # where the first world is e^epsilon times as likely: a/(C+1-a) > odds
        start = clones.low + 2 - np.ceil((clones.low + 1) / (1 + odds))
        above, last = at_least(start, clones.low), point(start - 1, clones.low)
        deltas = np.maximum(first_more * last - (factor - 1) * above, 0.0)
        return min(float((clones.chance * deltas).sum() + clones.outside.sum()) * _SLACK, 1.0)


def clone_delta(ratio: float, n: int, epsilon: float, chance: float, *, tail: float = 1e-18) -> float:
    """The bound of `CloneBound` at one epsilon."""
    return CloneBound(ratio, n, chance, tail=tail)(epsilon)
