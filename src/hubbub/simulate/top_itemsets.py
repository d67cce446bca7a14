"""The truth about sets of items: which items, and which itemsets, most people hold."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import check_integer
from hubbub.core.item_sets import ItemSets
from hubbub.protocols.itemsets.guess import Itemset


def top_items(people: ItemSets, k: int) -> dict[int, int]:
    """The k items that most people hold, most frequent first (of equals the lower code), and how many hold each.

    Fewer than k where fewer are held at all.

    Example:
        >>> top_items(ItemSets([0, 2, 3, 5], [4, 0, 4, 4, 0], domain=5), 3)
        {4: 3, 0: 2}
    """
    check_integer("k", k, 1)
    support = people.support()
    order = np.argsort(-support, kind="stable")[:k]
    return {int(item): int(support[item]) for item in order if support[item]}


def top_itemsets(people: ItemSets, k: int) -> dict[Itemset, int]:
    """The k itemsets that most people hold, single items among them, and how many hold each.

    Best first: no itemset is held by more people than the one that it extends, so the itemsets leave the queue in the
    order of their supports. An item outside the top k is in no itemset of the top k, but for ties.

    Parameters
    ----------
    people
        Whose sets.
    k
        How many; of equals those of fewer items, then of more frequent ones. Fewer where fewer are held at all.

    Example:
        >>> top_itemsets(ItemSets([0, 2, 3, 5], [4, 0, 4, 4, 0], domain=5), 9)
        {(4,): 3, (0,): 2, (0, 4): 2}
    """
    items = top_items(people, k)
    holders = _holders(people, list(items))
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


def _holders(people: ItemSets, items: list[int]) -> NDArray[np.uint8]:
    """Who holds each of these items: a row an item, a bit a person."""
    places = np.full(people.domain, -1)
    places[items] = np.arange(len(items))
    row = places[people.items]
    held = np.zeros((len(items), people.n), dtype=bool)
    held[row[row >= 0], people.owners[row >= 0]] = True
    return np.packbits(held, axis=1)
