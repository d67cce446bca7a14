"""FutureRand: randomised response of every entry; patterns too near to the truth or too far from it are redrawn."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.random.integers import exp_floor
from hubbub_papers.baselines.signs import SignVector

__all__ = ["Annulus", "FutureRand", "authors_gap", "best_annulus", "published_annulus"]

UNIT = 1 << 32
_STEPS = 16  # of the search, for each border
_MOST_RATE = 20.0  # past that a decay is no longer an integer of 32 bits

Floats = NDArray[np.float64]


class Annulus(NamedTuple):
    """Which numbers of disagreeing signs are kept, and of 2^32 how much less likely each one more of them is."""

    low: int
    high: int
    decay: int


@dataclass(frozen=True, kw_only=True)
class FutureRand(SignVector):
    """Means of sparse ternary vectors, in d signs: the noise of the s entries is drawn together, before they come.

    Each of s signs is turned with probability 1/(e^r + 1), zeros are fair coins. Where the number of turned signs is
    from `low` to `high` the pattern is kept; else a uniform one of all those outside is drawn. What is nearest and what
    is farthest is thereby no longer telling, and r may be of the order eps/sqrt(s), where s parts of epsilon would
    allow eps/s. The worst ratio is that of the likeliest pattern kept to one drawn anew, exactly, from the integers.

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    low, high, decay
        The numbers of turned signs that are kept, and of 2^32, e^-r. With `decay` = 0 they are searched for.

    Example:
        >>> from hubbub import Random
        >>> future = FutureRand(epsilon=2.0, dimension=4, sparsity=2)
        >>> reports = future.randomize([{0: 1, 2: -1}] * 20_000, Random(seed=1))
        >>> future.estimate(future.accumulate(reports)).value.round(1)[[0, 2]].tolist()
        [1.0, -1.0]

    References
    ----------
    Ohrimenko, Wirth and Wu, 2022. Its constants (`FutureRand.published`), r = eps/(5 sqrt s) and an annulus from s/(e^r
    + 1) - 2 sqrt s to where a pattern is as likely as under fair coins, are for its proof and spend a fraction of eps;
    the default is the annulus and the r with the smallest error whose exact ratio is e^eps: ours.
    """

    low: int = 0
    high: int = 0
    decay: int = 0

    def _resolve(self) -> None:
        self._resolve_shape()
        self._check_weights(33 * self.sparsity + self.sparsity)
        if self.decay == 0:
            for field, value in best_annulus(self.epsilon, self.sparsity)._asdict().items():
                self._set(field, value)
        if self.decay == UNIT:
            raise InvalidValue("epsilon", self.epsilon, "an epsilon that 32-bit weights can tell from 0")
        self._integer("decay", 1, UNIT - 1)
        self._integer("low", 0, self.sparsity)
        self._integer("high", self.low, self.sparsity)

    @cached_property
    def weights(self) -> list[int]:
        return annulus_weights(self.sparsity, Annulus(self.low, self.high, self.decay))

    @classmethod
    def published(cls, *, epsilon: float, dimension: int, sparsity: int) -> Self:
        """With the constants of the paper: a report spends far less than epsilon."""
        low, high, decay = published_annulus(epsilon, sparsity)
        return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, low=low, high=high, decay=decay)


def annulus_weights(sparsity: int, annulus: Annulus) -> list[int]:
    """The weight of a pattern that disagrees 0, 1, ..., s times."""
    low, high, decay = annulus
    plain = [decay**h * UNIT ** (sparsity - h) for h in range(sparsity + 1)]
    outside = [h for h in range(sparsity + 1) if not low <= h <= high]
    if not outside:
        return plain
    patterns = sum(math.comb(sparsity, h) for h in outside)
    anew = sum(math.comb(sparsity, h) * plain[h] for h in outside)
    return [plain[h] * patterns if low <= h <= high else anew for h in range(sparsity + 1)]


def published_annulus(epsilon: float, sparsity: int) -> Annulus:
    """The annulus and the decay of the paper."""
    rate = epsilon / (5 * math.sqrt(sparsity))
    low = math.ceil(sparsity / (math.exp(rate) + 1) - 2 * math.sqrt(sparsity))
    high = math.floor(sparsity / rate * math.log(2 / (1 + math.exp(-rate))))
    return Annulus(max(low, 0), high, math.ceil(UNIT * math.exp(-rate)))


def authors_gap(epsilon: float, sparsity: int) -> float:
    """What the code of S. Wang, Li, Xin et al., 2023, divides by: P(kept) (e^r - 1)/(e^r + 1), half of the true gap.

    It takes a pattern's being kept for independent of how many signs are turned (github.com/wangsw/OnlineLDP,
    futurerand.py). There, moreover, an entry that differs from 0 says nothing, so that the error is of the noise alone.
    """
    low, high, decay = published_annulus(epsilon, sparsity)
    turned = decay / (decay + UNIT)
    kept = sum(math.comb(sparsity, h) * turned**h * (1 - turned) ** (sparsity - h) for h in range(low, high + 1))
    return kept * (1 - 2 * turned)


def best_annulus(epsilon: float, sparsity: int) -> Annulus:
    """The annulus and the decay with the smallest error of the mean, among those that spend at most epsilon."""
    wanted = min(epsilon, 2 * _MOST_RATE)
    low, high = _candidates(sparsity)
    slow, fast = np.zeros(low.size), np.full(low.size, _MOST_RATE)
    for _ in range(48):  # the largest rate that each annulus allows
        middle = (slow + fast) / 2
        within = _logarithms(sparsity, low, high, middle)[0] <= wanted
        slow, fast = np.where(within, middle, slow), np.where(within, fast, middle)
    best = int(np.argmax(_logarithms(sparsity, low, high, slow)[1]))
    annulus = Annulus(int(low[best]), int(high[best]), math.ceil(UNIT * math.exp(-slow[best])))
    power = exp_floor(epsilon)
    while annulus.decay < UNIT and _exact_ratio(sparsity, annulus) > power:
        annulus = annulus._replace(decay=annulus.decay + 1)
    return annulus


def _candidates(sparsity: int) -> tuple[Floats, Floats]:
    """Pairs of borders with a number outside of them: all pairs, or `_STEPS` of each around the middle."""
    low = high = np.arange(sparsity + 1.0)
    if sparsity > 2 * _STEPS:
        steps = np.linspace(0, 1, _STEPS) * math.sqrt(sparsity)
        low = np.unique(np.clip(np.ceil(sparsity / 2 - 3 * steps), 0, None))
        high = np.unique(np.clip(np.floor(sparsity / 2 + 3 * steps - steps[-1]), None, sparsity))
    pairs = np.array([(a, b) for a in low for b in high if a <= b and b - a < sparsity])
    return pairs[:, 0], pairs[:, 1]


def _logarithms(sparsity: int, low: Floats, high: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """For each annulus and rate, ln of the worst ratio, and the gap between p_true and p_reverse."""
    h = np.arange(sparsity + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log(np.arange(sparsity, 0, -1)) - np.log(h[1:]))])  # ln of binomials
    inside = (low[:, None] <= h) & (h <= high[:, None])
    weight = -rate[:, None] * h
    anew = _log_sum(np.where(inside, -np.inf, ways + weight)) - _log_sum(np.where(inside, -np.inf, ways))
    weight = np.where(inside, weight, anew[:, None])
    chance = np.exp(ways + weight - _log_sum(ways + weight)[:, None])
    return weight.max(axis=1) - weight.min(axis=1), chance @ (1 - 2 * h / sparsity)


def _log_sum(logs: Floats) -> Floats:
    top = logs.max(axis=1, keepdims=True)
    return np.asarray(top[:, 0] + np.log(np.exp(logs - top).sum(axis=1)))


def _exact_ratio(sparsity: int, annulus: Annulus) -> Fraction:
    weights = annulus_weights(sparsity, annulus)
    return Fraction(max(weights), min(weights))
