"""The truth about baskets: which itemsets most of them hold."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import check_integer
from hubbub.data.baskets import Baskets

__all__ = ["Itemset", "top_items", "top_itemsets"]

Itemset = tuple[int, ...]
"""The codes of its items, rising."""


def top_items(baskets: Baskets, k: int) -> dict[int, int]:
    """The k items that most baskets hold, most frequent first (of equals the lower code), and how many hold each.

    Fewer than k where fewer are held at all.

    Example:
        >>> top_items(Baskets([0, 2, 3, 5], [4, 0, 4, 4, 0], domain=5), 3)
        {4: 3, 0: 2}
    """
    check_integer("k", k, 1)
    support = baskets.support()
    order = np.argsort(-support, kind="stable")[:k]
    return {int(item): int(support[item]) for item in order if support[item]}


def top_itemsets(baskets: Baskets, k: int) -> dict[Itemset, int]:
    """The k itemsets that most baskets contain, single items among them, and how many contain each.

    Best first: no itemset is in more baskets than the one that it extends, so the itemsets leave the queue in the order
    of their supports. An item outside the top k is in no itemset of the top k, but for ties.

    Parameters
    ----------
    baskets
        Whose.
    k
        How many; of equals those of fewer items, then of more frequent ones. Fewer where fewer are held at all.

    Example:
        >>> top_itemsets(Baskets([0, 2, 3, 5], [4, 0, 4, 4, 0], domain=5), 9)
        {(4,): 3, (0,): 2, (0, 4): 2}
    """
    items = top_items(baskets, k)
    holders = _holders(baskets, list(items))
    codes = list(items)
    # (-support, size, places of the items in the ranking): the smallest is the next of the answer.
    queue: list[tuple[int, int, Itemset]] = [(-n, 1, (place,)) for place, n in enumerate(items.values())]
    heapq.heapify(queue)
    found: dict[Itemset, int] = {}
    while queue and len(found) < k:
        missing, size, places = heapq.heappop(queue)
        found[tuple(sorted(codes[place] for place in places))] = -missing
        together = np.bitwise_and.reduce(holders[list(places)], axis=0)
        more = holders[places[-1] + 1 :] & together
        for step, support in enumerate(np.bitwise_count(more).sum(axis=1, dtype=np.int64)):
            if support:
                heapq.heappush(queue, (-int(support), size + 1, (*places, places[-1] + 1 + step)))
    return found


def _holders(baskets: Baskets, items: list[int]) -> NDArray[np.uint8]:
    """Who holds each of these items: a row an item, a bit a person."""
    places = np.full(baskets.domain, -1)
    places[items] = np.arange(len(items))
    row = places[baskets.items]
    held = np.zeros((len(items), baskets.n), dtype=bool)
    held[row[row >= 0], baskets.owners[row >= 0]] = True
    return np.packbits(held, axis=1)
