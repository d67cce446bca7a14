"""NetSub, the net rule: a report is m positions with a sign each, more often with more true than reversed signs.

The arithmetic of the net rule: how often a random signed set reaches a net of t, and the best size and t.

A set of m of D positions with a fair sign each meets the vector's s entries in J positions, hypergeometric. There each
sign is true or reversed like a fair coin, so trues minus reverses are where a random walk of J steps ends. With

    H(j) = P(J = j),  W(j) = P(walk of j steps >= t),  G(j) = E[walk; walk >= t] = k C(j, k) / 2^j

(k = ceil((j+t)/2); the sum telescopes), f = e^-eps and Z = f + (1-f) sum H W, the mean weight, the chance to say an
entry's position is sum j H (f + (1-f) W) / (s Z), and p_true - p_reverse = (1-f) sum H G / (s Z). The error follows
from the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from hubbub.core.reports import Floats, Ints
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.mechanisms.ternary.ternary import Quantity
from hubbub.mechanisms.weights import search_power

if TYPE_CHECKING:
    from hubbub.mechanisms.ternary.set_forms import SetForm

GRID_POINTS = 1 << 10  # sizes m looked at together: all of them, or a grid that is narrowed down
_MOST_T = 1 << 8
_EQUAL = 1e-9  # errors that differ by less are ties, on any machine: the smallest t and m is taken


class SizeAndThreshold(NamedTuple):
    """A size m, a threshold t, and the squared error of one report with them, summed over the d positions."""

    m: int
    t: int
    error: float


def net_share(positions: int, entries: int, size: int, t: int) -> Fraction:
    """The exact share of the signed sets of `size` positions whose trues minus reverses reach t."""
    # C(D-s, m-j)/C(D, m) is a quotient of products of s factors, however large m is.
    whole = 0
    for j in range(min(entries, size) + 1):
        reaching = sum(math.comb(j, trues) for trues in range(max(0, (j + t + 1) // 2), j + 1))
        sets = math.perm(size, j) * math.perm(positions - size, entries - j)
        whole += math.comb(entries, j) * sets * reaching << entries - j
    return Fraction(whole, math.perm(positions, entries) << entries)


@lru_cache(maxsize=256)
def best_net(
    epsilon: float, dimension: int, sparsity: int, *, of: Quantity = "mean", least: int = 1
) -> SizeAndThreshold:
    """The size m and the threshold t with the smallest error over all positions; of equals the smallest t, then m.

    Up to 1,024 positions every pair is looked at. Beyond, a grid of sizes is narrowed down around its best: the error
    as a function of m has at most a few dips, all of them wide; and t stops at 256. Sizes below `least` are left out.
    """
    positions = dimension + sparsity
    low, high, best = least, positions, SizeAndThreshold(least, 1, math.inf)
    while True:
        sizes = _grid(low, high)
        errors = net_errors(epsilon, dimension, sparsity, sizes, of=of)
        close = errors <= min(float(errors.min()), best.error) * (1 + _EQUAL)
        if close.any():
            row, column = (int(k) for k in np.argwhere(close)[0])  # rows are thresholds
            best = SizeAndThreshold(int(sizes[column]), row + 1, float(errors[row, column]))
        if len(sizes) == high - low + 1:
            return best
        at = int(np.searchsorted(sizes, best.m))
        low, high = int(sizes[max(at - 1, 0)]), int(sizes[min(at + 1, len(sizes) - 1)])


def net_errors(epsilon: float, dimension: int, sparsity: int, sizes: Ints, *, of: Quantity) -> Floats:
    """The squared error of one report over all d positions: a row for each threshold t >= 1, a column for each size m.

    Infinite where no set reaches the threshold; for frequencies also where all positions are reported equally often.
    """
    floor = 1 / search_power(epsilon)
    entries = np.arange(sparsity + 1)
    overlaps = _overlaps(dimension, sparsity, sizes)
    reaching, ahead = _walks(sparsity, min(sparsity, _MOST_T))
    weight = floor + (1 - floor) * reaching
    total = weight @ overlaps.T
    reported = (weight * entries) @ overlaps.T / total  # how many of the s entries, on average
    held, missing = reported / sparsity, (sizes - reported) / dimension
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if of == "mean":
            gap = (1 - floor) * (ahead @ overlaps.T) / (sparsity * total)
            errors = (reported + (dimension - sparsity) * missing) / gap**2 - sparsity
        else:
            gap = held - missing
            gap[np.abs(gap) < 1e-12] = 0.0  # every position is reported: the rest is rounding
            errors = sparsity * held * (1 - held) + (dimension - sparsity) * missing * (1 - missing)
            errors = errors / gap**2
    return np.where(np.isfinite(errors), errors, np.inf)


def _grid(low: int, high: int) -> Ints:
    """All sizes, or a grid of them that is denser near the two ends of the range."""
    if high - low < GRID_POINTS:
        return np.arange(low, high + 1)
    offsets = np.geomspace(1, high - low, GRID_POINTS // 2).astype(np.int64)
    return np.unique(np.concatenate([[low, high], low + offsets, high - offsets]))


def _overlaps(dimension: int, sparsity: int, sizes: Ints) -> Floats:
    """The chance that a set of each size (row) meets each number of entries (column), weights one from the other."""
    m, j = sizes[:, None].astype(np.float64), np.arange(sparsity + 1.0)
    possible = (j <= m) & (m - j <= dimension)
    up, down = (sparsity - j) * (m - j), (j + 1) * (dimension - m + j + 1)
    steps = np.log(np.where((up > 0) & (down > 0), up / np.where(down > 0, down, 1.0), 1.0))[:, :-1]
    logs = np.concatenate([np.zeros((len(sizes), 1)), np.cumsum(steps, axis=1)], axis=1)
    logs[~possible] = -np.inf
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _walks(steps: int, most: int) -> tuple[Floats, Floats]:
    """W and G of the module's docstring: one row per threshold from 1 to `most`, one column per number of steps."""
    reaching, ahead = np.zeros((most, steps + 1)), np.zeros((most, steps + 1))
    t = np.arange(1, most + 1)
    walk = np.zeros(2 * steps + 3)  # P(the walk is at x), at index steps + 1 + x
    walk[steps + 1] = 1.0
    for j in range(steps + 1):
        if j:
            walk[1:-1] = (walk[:-2] + walk[2:]) / 2
        above = np.cumsum(walk[::-1])[::-1]
        reaching[:, j] = above[steps + 1 + t]
        first = t + (j + t) % 2  # a walk of j steps ends at places of j's parity
        ahead[:, j] = np.where(first <= j, (j + first) / 2 * walk[np.minimum(steps + 1 + first, 2 * steps + 2)], 0.0)
    return reaching, ahead


@dataclass(frozen=True, kw_only=True)
class NetSub(SignedSets):
    """Means of sparse ternary vectors with the smallest error of all mechanisms; entries can be reported as they come.

    A set in which trues minus reverses reach t has the weight 1, any other e^-eps (`SignedSets` has the rest). ExSub
    asks for one true sign, however many are reversed: its sets must be small, or nearly all of them hold one. Here a
    set may say every position, and the preferred ones are still about a half of all.

    Where every position is said (m = d + s), a report tells nothing of frequencies: `answers` is ("mean",).

    Parameters
    ----------
    epsilon
        What one report may spend.
    dimension, sparsity
        The length d of the vectors, and how many entries s of one may differ from 0.
    m
        How many positions a report says, at most d + s.
    t
        How many more true signs than reversed ones a preferred set has at least. Where both m and t are 0, the pair
        with the smallest error of the mean is chosen; `NetSub.best_for("frequency", ...)` chooses for frequencies.
    bits, least
        A set that falls short has the weight `least` where others have 2^bits, at least e^-eps of it; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> net = NetSub(epsilon=1.0, dimension=128, sparsity=8)
        >>> net.m, net.t, round(net.mse())
        (136, 1, 6111)
        >>> reports = net.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> net.estimate(net.accumulate(reports)).value.round(1)[[3, 5]].tolist()
        [1.0, -1.0]

    References
    ----------
    Ours: docs/net-rule.md.
    """

    key_value: ClassVar[Literal["no", "named", "chosen"]] = "chosen"
    t: int = 0

    def _choose(self) -> None:
        if self.m == 0 and self.t == 0:
            choice = best_net(self.epsilon, self.dimension, self.sparsity)
            self._set("m", choice.m)
            self._set("t", choice.t)
        self._integer("m", 1, self.positions)
        self._integer("t", 1, min(self.m, self.sparsity))

    @classmethod
    def best_for(cls, of: Quantity, *, epsilon: float, dimension: int, sparsity: int) -> Self:
        if of == "mean":
            return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity)
        cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=1, t=1)  # refuses an invalid setting
        m, t, _ = best_net(epsilon, dimension, sparsity, of="frequency")
        return cls(epsilon=epsilon, dimension=dimension, sparsity=sparsity, m=m, t=t)

    def prefers(self, trues: Any, reverses: Any) -> Any:
        return trues - reverses >= self.t

    def share(self, positions: int, entries: int, size: int, *, trues: int = 0, reverses: int = 0) -> Fraction:
        return net_share(positions, entries, size, self.t - trues + reverses)

    @cached_property
    def form(self) -> SetForm:
        from hubbub.mechanisms.ternary.set_forms import shortest_form  # a stream of changes sends no whole set

        return shortest_form(self.positions, self.m)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=math.log(2), dimension=2, sparsity=1, m=2, t=1)
        yield cls(epsilon=1.0, dimension=4, sparsity=2, m=2, t=2)
        yield cls(epsilon=1.0, dimension=3, sparsity=3, m=6, t=1)
        yield cls(epsilon=1.0, dimension=4, sparsity=2, m=5, t=1)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)
