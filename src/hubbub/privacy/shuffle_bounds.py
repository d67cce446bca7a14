"""Valid bounds of amplification by shuffling: the privacy blanket, clones, and closed formulas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.reports import Floats
from hubbub.privacy.binomial_tails import at_least, blocks, point

if TYPE_CHECKING:
    from hubbub.mechanisms.weights import Blanket

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

    Where each other person is in the batch by chance, with probability `share`, that is n - 1 and `share` times `mass`.

    Counts are taken in blocks, each at its worst end: fewer draws M, fewer T, and a D of more signs. There are at most
    `cells` of them, and they leave out a probability of about `tail`, which is added at its worst. They do not depend
    on epsilon, and are made once.

    References
    ----------
    Balle et al., 2019 (Lemma 5.3).
    """

    def __init__(
        self,
        blanket: Blanket,
        n: int,
        *,
        fakes: int = 0,
        share: float = 1.0,
        cells: int = FINE,
        tail: float = 1e-18,
    ) -> None:
        self._mass, self._ratio = float(blanket.mass), float(blanket.ratio)
        shared = float(blanket.shared)
        apart = min(2 * (float(blanket.preferred) - shared), 1.0)
        side = round(cells ** (1 / 3 if shared else 1 / 2))
        self._blanket_reports = blocks(n - 1, share * self._mass, side, tail=tail)
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
    """The expectation of (D - threshold)_+, where D is a sum of a number of fair signs."""
    heads = (signs + threshold) / 2  # D = 2 B - signs, with B heads
    first = np.floor(heads) + 1
    tail = at_least(first, signs)
    # The heads above a place are a tail and one point of it: no more than a digit or two cancel.
    mean = (signs / 2 - heads) * tail + signs / 4 * point(first - 1, np.maximum(signs - 1, 0.0))
    return np.where(first > signs, 0.0, np.where(heads < 0, -threshold, 2 * np.maximum(mean, 0.0)))


_BLOCKS = 400


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
    Feldman, McMillan and Talwar, 2021; Feldman, McMillan and Talwar, 2023.
    """

    def __init__(self, ratio: float, n: int, chance: float, *, tail: float = 1e-18) -> None:
        self._ratio = ratio
        self._clones = blocks(n - 1, chance, _BLOCKS, tail=tail)

    def __call__(self, epsilon: float) -> float:
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


def efmrtt19(epsilon: float, n: int, delta: float) -> float | None:
    """12 epsilon sqrt(ln(1/delta)/n), for epsilon below 1/2, n of at least 1,000 and delta below 1/100.

    References
    ----------
    Erlingsson et al., 2019.
    """
    if not (epsilon < 0.5 and n >= 1000 and delta < 0.01):
        return None
    return 12 * epsilon * math.sqrt(math.log(1 / delta) / n)


def fmt21(epsilon: float, n: int, delta: float) -> float | None:
    """ln(1 + (E-1)/(E+1) (8 sqrt(E ln(4/delta)/n) + 8 E/n)), E = e^epsilon, while E is at most n/(16 ln(2/delta)).

    References
    ----------
    Feldman, McMillan and Talwar, 2021 (Theorem 3.1).
    """
    power = math.exp(epsilon)
    if power > n / (16 * math.log(2 / delta)):
        return None
    inner = 8 * math.sqrt(power * math.log(4 / delta) / n) + 8 * power / n
    return math.log1p((power - 1) / (power + 1) * inner)


def csuzz19(weight: float, n: int, delta: float) -> float | None:
    """sqrt(32 ln(4/delta) weight/n) of randomised response with two answers, where a false one has chance 1/weight.

    It is a bound while it is below 1, and above sqrt(192 ln(4/delta)/n): where weight is above 6.

    References
    ----------
    Cheu et al., 2019; T. Wang, 2021, Table 9.1.
    """
    epsilon = math.sqrt(32 * math.log(4 / delta) * weight / n)
    return epsilon if weight > 6 and epsilon < 1 else None


def binomial_epsilon(weight: float, n: int, delta: float) -> float | None:
    """sqrt(14 ln(2/delta) weight/(n-1)), where each other report hits a given output with chance 1/weight.

    It is a bound while it is at most 1, and not below 27 weight/(n-1).

    References
    ----------
    Balle et al., 2019 (Theorem 3.1); T. Wang, 2021, Theorems 9.2.1 and 9.3.2.
    """
    if n < 2:
        return None
    epsilon = max(math.sqrt(14 * math.log(2 / delta) * weight / (n - 1)), 27 * weight / (n - 1))
    return epsilon if epsilon <= 1 else None
