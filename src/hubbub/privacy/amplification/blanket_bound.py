"""The bound by the privacy blanket, evaluated numerically, for every mechanism whose blanket is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hubbub.privacy.amplification.binomial import Floats, at_least, blocks, point

if TYPE_CHECKING:
    from hubbub.core.blanket import Blanket

COARSE, FINE = 1 << 9, 1 << 14
"""How many blocks of counts there are in all, for a first look and for an answer."""
_SLACK = 1 + 1e-3  # tails are right to about 3e-6, of which a difference of two loses a factor of up to a hundred


class BlanketBound:
    """An upper bound of delta by epsilon, for one report among n that are shuffled with uniform fakes.

    Someone who sees the shuffled reports sees the report that matters among M draws from the blanket: itself, each of
    the n - 1 others with probability `mass`, and the fakes. With L = mass (w(W) - e^epsilon w'(W)) of a draw W, w and
    w' the weights that the two values give it,

        delta(epsilon)  <=  E[ (1/M) ( L_1 + ... + L_M )_+ ].

    It is largest where w and w' are 1 or `ratio` and prefer as little in common as they can: any other pair has a
    distribution of L that is less spread out, with the same mean. So S of M draws tell the two values apart, by fair
    signs whose sum is D; T draws are preferred by both; and with E = ratio, e = e^epsilon,

        L_1 + ... + L_M = mass ( (E-1)(e+1)/2 D - (e-1) ( M + (E-1)(S/2 + T) ) ).

    Counts are taken in blocks, each at its worst end: fewer draws M, fewer T, and a D of more signs. There are at most
    `cells` of them, and they leave out a probability of about `tail`, which is added at its worst. They do not depend
    on epsilon, and are made once.

    References
    ----------
    Balle, Bell, Gascon and Nissim, "The privacy blanket of the shuffle model", 2019 (Lemma 5.3).
    """

    def __init__(self, blanket: Blanket, n: int, *, fakes: int = 0, cells: int = FINE, tail: float = 1e-18) -> None:
        self._mass, self._ratio = float(blanket.mass), float(blanket.ratio)
        shared = float(blanket.shared)
        apart = min(2 * (float(blanket.preferred) - shared), 1.0)
        side = round(cells ** (1 / 3 if shared else 1 / 2))
        self._blanket_reports = blocks(n - 1, self._mass, side, tail=tail)
        self._draws = self._blanket_reports.low[0] + 1 + fakes
        telling = blocks(self._draws, apart, side, tail=tail)
        least, signs, weight, outside = telling.low / 2, telling.high, telling.chance, telling.outside
        if shared:
            rest = blocks((self._draws[:, None] - signs).ravel(), min(shared / (1 - apart), 1.0), side, tail=tail)
            shape = (*signs.shape, -1)
            least, signs = least[:, :, None] + rest.low.reshape(shape), signs[:, :, None]
            outside = outside + (weight * rest.outside.reshape(weight.shape)).sum(axis=1)
            weight = weight[:, :, None] * rest.chance.reshape(shape)
        self._least, self._weight, self._outside = least, weight, outside
        self._signs = np.broadcast_to(signs, least.shape)

    def __call__(self, epsilon: float) -> float:
        """The bound at an epsilon."""
        ratio, factor, draws = self._ratio, math.exp(epsilon), self._draws
        if factor >= ratio:
            return 0.0
        gain, cost = (ratio - 1) * (factor + 1) / 2, factor - 1
        draws_of_block = draws.reshape(-1, *[1] * (self._least.ndim - 1))
        gained = ahead(self._signs, cost * (draws_of_block + (ratio - 1) * self._least) / gain)
        of_draws = gain * (self._weight * gained).reshape(len(draws), -1).sum(axis=1) / draws
        # Counts that are left out add at most mass (ratio - 1) to delta, times their probability.
        total = self._blanket_reports.chance[0] @ (of_draws + self._outside * (ratio - 1))
        total += self._blanket_reports.outside[0] * (ratio - 1)
        return min(self._mass * float(total) * _SLACK, 1.0)


def blanket_delta(
    blanket: Blanket, n: int, epsilon: float, *, fakes: int = 0, cells: int = FINE, tail: float = 1e-18
) -> float:
    """The bound of `BlanketBound` at one epsilon."""
    if math.exp(epsilon) >= blanket.ratio:
        return 0.0
    return BlanketBound(blanket, n, fakes=fakes, cells=cells, tail=tail)(epsilon)


def ahead(signs: Floats, threshold: Floats) -> Floats:
    """The expectation of (D - threshold)_+, where D is a sum of so many fair signs."""
    heads = (signs + threshold) / 2  # D = 2 B - signs, with B heads
    first = np.floor(heads) + 1
    tail = at_least(first, signs)
    # The heads above a place are a tail and one point of it: no more than a digit or two cancel.
    mean = (signs / 2 - heads) * tail + signs / 4 * point(first - 1, np.maximum(signs - 1, 0.0))
    return np.where(first > signs, 0.0, np.where(heads < 0, -threshold, 2 * np.maximum(mean, 0.0)))
