"""The true most frequent items and itemsets of some people's sets."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import check_integer
from hubbub.protocols.itemsets.lengths import Itemset


def top_items(people: ItemSets, k: int) -> dict[int, int]:
    """The k items that most people have, most frequent first (of equals the lower code), and how many people have each.

    There may be fewer than k: items that nobody has are left out.
    """
    check_integer("k", k, 1)
    support = people.support()
    order = np.argsort(-support, kind="stable")[:k]
    return {int(item): int(support[item]) for item in order if support[item]}


def top_itemsets(people: ItemSets, k: int) -> dict[Itemset, int]:
    """The k itemsets that most people have, including single items, and how many people have each.

    A best-first search: an itemset has no more support than the itemset that it extends, so that itemsets leave the
    queue in the order of their supports. An item outside the top k is in no itemset of the top k, except for ties.

    Parameters
    ----------
    people
        The sets of the people.
    k
        How many itemsets; of equals, those with fewer items, then with more frequent items. Itemsets that nobody has
        are left out.
    """
    items = top_items(people, k)
    codes = list(items)
    owners = _owners(people, codes)
    # (-support, size, places of the items in the ranking): the smallest is the next of the answer.
    queue: list[tuple[int, int, Itemset]] = [(-n, 1, (place,)) for place, n in enumerate(items.values())]
    heapq.heapify(queue)
    top: dict[Itemset, int] = {}
    while queue and len(top) < k:
        negative_support, size, places = heapq.heappop(queue)
        top[tuple(sorted(codes[place] for place in places))] = -negative_support
        owners_of_set = np.bitwise_and.reduce(owners[list(places)], axis=0)
        owners_of_extensions = owners[places[-1] + 1 :] & owners_of_set
        for step, support in enumerate(np.bitwise_count(owners_of_extensions).sum(axis=1, dtype=np.int64)):
            if support:
                heapq.heappush(queue, (-int(support), size + 1, (*places, places[-1] + 1 + step)))
    return top


def _owners(people: ItemSets, items: list[int]) -> NDArray[np.uint8]:
    """Which people have each of these items: a row for each item, a bit for each person."""
    places = np.full(people.domain, -1)
    places[items] = np.arange(len(items))
    row = places[people.items]
    has_item = np.zeros((len(items), people.n), dtype=bool)
    has_item[row[row >= 0], people.owners[row >= 0]] = True
    return np.packbits(has_item, axis=1)
