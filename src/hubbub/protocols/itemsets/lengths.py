"""The sizes of sets ("lengths"), the correction for long sets, and candidate itemsets."""

import heapq
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Bools, Floats

Itemset = tuple[int, ...]
"""The codes of its items, in ascending order."""

LOWERED = 0.9
"""The normalised share of the most frequent item: if it were 1, adding this item to a set would not lower the guess."""


def largest_guess(k: int) -> int:
    """The most items that a candidate may have: fewer than log2 k, but at least two.

    The subsets of a frequent itemset are as frequent, and a set of s items has 2^s subsets.
    """
    return max(2, math.ceil(math.log2(k)) - 1)


def guess_itemsets(shares: Mapping[int, float], *, most: int, largest: int, top: float = LOWERED) -> list[Itemset]:
    """The itemsets of two items or more with the largest guessed shares, the largest first.

    The guess is the product of the items' normalised shares, `top` f(x) / max f, as if items were independent. Items
    without a positive share are in no candidate.

    `shares`: the estimated share of each item, by its code. `most`: how many itemsets to return, if there are enough.
    `top`: the normalised share of the most frequent item.

    References
    ----------
    T. Wang, 2021, section 5.3.2.
    """
    positive = {code: share for code, share in shares.items() if share > 0}
    if not positive:
        return []
    highest = max(positive.values())
    ranked = sorted(((top * share / highest, code) for code, share in positive.items()), key=_by_share)
    itemsets: list[Itemset] = []
    for places in _by_product([share for share, _ in ranked], largest):
        if len(itemsets) == most:
            break
        if len(places) > 1:
            itemsets.append(tuple(sorted(ranked[place][1] for place in places)))
    return itemsets


def _by_share(item: tuple[float, int]) -> tuple[float, int]:
    return -item[0], item[1]


def _by_product(factors: list[float], largest: int) -> Iterator[tuple[int, ...]]:
    """Sets of places in a list of descending factors below 1, by descending product; equal products by first place.

    A best-first search: the children of a set have its last place moved on by one, or the next place added. Every set
    has one parent, whose product is at least as large.
    """
    queue: list[tuple[float, Itemset]] = [(-factors[0], (0,))]
    while queue:
        _, places = heapq.heappop(queue)
        yield places
        step = places[-1] + 1
        if step == len(factors):
            continue
        children: list[Itemset] = [(*places[:-1], step)] + [(*places, step)] * (len(places) < largest)
        for child in children:
            heapq.heappush(queue, (-math.prod(factors[place] for place in child), child))


PERCENTILE = 0.9
ALPHA, RARELY = 0.05, 1e-6
"""The probability that any length passes its threshold by chance in a study; and the same for lengths beyond a gap."""
_UNSURE = 1.645
"""A sum of shares that is below 1 by fewer standard errors than this may be below 1 by chance."""


@dataclass(frozen=True, eq=False)
class LengthShares:
    """The share of people whose set has each length, from 0 on.

    `known`: which shares were estimated; the others were extrapolated.

    References
    ----------
    T. Wang, 2021, sections 5.2.5 and 5.3.1.
    """

    shares: Floats
    known: Bools | None = None

    def percentile(self, part: float = PERCENTILE) -> int:
        """The smallest length such that more than this part of the non-empty sets are no longer; 1 if all are empty."""
        within = np.cumsum(self.shares[1:])
        if not within.size or not within[-1] > 0:
            return 1
        return int(np.argmax(within > part * within[-1])) + 1

    def update_factor(self, length: int) -> float:
        """The factor by which estimates are too small if sets are padded to this length (Eq 5.5).

        It is the number of all items divided by the number of items left if longer sets are cut to `length` items. It
        is right on average, and for each item if longer sets have the same items as shorter ones. Extrapolated lengths
        do not count: frequent items are in short sets too, and the factor of all lengths would be too large for them.
        """
        lengths = np.arange(self.shares.size)
        shares = self.shares if self.known is None else np.where(self.known, self.shares, 0.0)
        remaining = float(np.minimum(lengths, length) @ shares)
        return float(lengths @ shares) / remaining if remaining > 0 else 1.0


def upper_limits(shares: Estimate, sizes: Estimate, length: int, longest: int) -> tuple[Estimate, ...]:
    """Estimates that are at least the true shares on average, whatever longer sets contain; one for each cut.

    Padded to `length` = l, an item of a set of k items is reported with probability min(1, l/k). Hence, for any cut
    t >= l, the true share is at most t/l times the share that is reported, plus the sum over k > t of (1 - t/k) times
    the share of sets of k items. The second term is estimated from `sizes`; a constant is taken off its coefficients,
    because the shares of all sizes sum to 1, which makes its error as small as it can be. Rare items have the lowest
    limit at a long cut, frequent ones at a short cut.

    Parameters
    ----------
    shares
        The shares that are reported, of the population.
    sizes
        The share of each size, from 0 on, of the population, from reports of other people.
    length, longest
        The length that sets were padded to, and the size of the largest possible set.
    """
    limits = []
    cuts = [length * 2**doubled for doubled in range(64) if length * 2**doubled < longest]
    for cut in [*cuts, max(length, longest)]:
        lengths = np.arange(1, min(longest + 1, len(sizes)))
        beyond = np.concatenate([[0.0], np.maximum(0.0, 1 - cut / lengths)])
        constant = float(beyond.mean()) if beyond.any() else 0.0
        weights = np.zeros(len(sizes))
        weights[: beyond.size] = beyond - constant
        part = sizes.linear(weights)
        times = cut / length
        value = times * shares.value + float(part.value[0]) + constant
        limits.append(Estimate(value, times**2 * shares.variance + float(part.variance[0]), shares.n))
    return tuple(limits)


def significant_lengths(
    estimate: Estimate, variance: float, longest: int | None = None, *, published: bool = False
) -> LengthShares:
    """The shares of lengths that are significantly above 0, and an extrapolated share of longer sets.

    As published, a share counts as 0 unless it passes T = Phi^-1(1 - 0.05/m) sqrt(variance), with m lengths above 0:
    chance alone passes it once in twenty studies. That has two faults. If chance raises the share of a long length, all
    estimates are multiplied by too large a factor. And long lengths are too rare to pass one by one, so that long sets
    are ignored. Therefore

    - lengths beyond a gap (two consecutive lengths that do not pass) must pass a threshold that chance passes in one
      study in a million;
    - if the shares sum to significantly less than 1, the rest is distributed over the lengths beyond the last that
      passed, each having the same part of what is left: these sets are half as long again on average.

    `variance`: the variance of the estimate of a share that is 0. `longest`: the length of the longest possible set, if
    known. `published`: whether to use the threshold alone, as published.

    References
    ----------
    T. Wang, 2021, section 5.3.1, step 2.
    """
    if len(estimate) < 2:
        raise InvalidValue("estimate", len(estimate), "the shares of at least two lengths")
    most = len(estimate) - 1 if longest is None else min(longest, len(estimate) - 1)
    low, high = (-NormalDist().inv_cdf(chance / most) * math.sqrt(variance) for chance in (ALPHA, RARELY))
    known = (estimate.value > low) & (np.arange(len(estimate)) <= most)
    gap = np.flatnonzero(~known[1:-1] & ~known[2:])
    if gap.size and not published:
        known[gap[0] + 1 :] &= estimate.value[gap[0] + 1 :] > high
    shares = np.where(known, estimate.value, 0.0)
    last, missing = int(np.flatnonzero(known).max(initial=0)), 1 - float(shares.sum())
    if not published and 0 < last < most and missing > _UNSURE * math.sqrt(variance * known.sum()):
        further = np.arange(most - last)
        tail = (1 - 1 / max(1.0, last / 2)) ** further
        shares[last + 1 : most + 1] = missing * tail / tail.sum()
    return LengthShares(shares, known)
