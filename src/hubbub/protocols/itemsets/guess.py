"""Candidate itemsets: those that would be most frequent if people had their items independently."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping

Itemset = tuple[int, ...]
"""The codes of its items, in ascending order."""

LOWERED = 0.9
"""The normalised share of the most frequent item: if it were 1, adding this item to a set would not lower the guess."""


def largest_guess(k: int) -> int:
    """The most items that a candidate may have: fewer than log2 k, but at least two.

    The subsets of a frequent itemset are as frequent, and a set of s items has 2^s subsets.
    """
    return max(2, math.ceil(math.log2(k)) - 1)


def guess_itemsets(shares: Mapping[int, float], *, most: int, largest: int) -> list[Itemset]:
    """The itemsets of two items or more with the largest guessed shares, the largest first.

    The guess is the product of the items' normalised shares, 0.9 f(x) / max f, as if items were independent. Items
    without a positive share are in no candidate.

    Parameters
    ----------
    shares
        The estimated share of each item, by its code.
    most
        How many itemsets to return, if there are so many.
    largest
        The most items that an itemset may have.

    References
    ----------
    Dissertation, section 5.3.2.
    """
    positive = {code: share for code, share in shares.items() if share > 0}
    if not positive:
        return []
    highest = max(positive.values())
    ranked = sorted(((LOWERED * share / highest, code) for code, share in positive.items()), key=_by_share)
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
