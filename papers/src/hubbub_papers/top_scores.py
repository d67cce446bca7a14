"""The true top items and itemsets of people, and how well others match them."""

import heapq
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.sets import ItemSets
from hubbub.core.errors import InvalidValue, check_integer
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

    Of equals, those with fewer items come first, then those with more frequent items. Itemsets that nobody has are left
    out.
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


Value = TypeVar("Value", bound=Hashable)


def hits(found: Collection[Hashable], ranked: Sequence[Hashable]) -> int:
    """The number of true top values among the found ones.

    `found` is in any order, `ranked` has the most frequent first.
    """
    _check(found, ranked)
    return len(set(found) & set(ranked))


def ncr(found: Collection[Hashable], ranked: Sequence[Hashable]) -> float:
    """The normalised cumulative rank: the most frequent of k values counts k, the next k - 1, ..., the last 1.

    It is 1 if all of the top k were found, and 0 if none was.
    """
    _check(found, ranked)
    values, k = set(found), len(ranked)
    return sum(k - rank for rank, value in enumerate(ranked) if value in values) / (k * (k + 1) / 2)


def squared_error(estimated: Mapping[Value, float], true: Mapping[Value, float], ranked: Sequence[Value]) -> float:
    """The mean squared error of the estimates over the top values that were found; NaN if none was."""
    _check(estimated, ranked)
    errors = [estimated[value] - true[value] for value in ranked if value in estimated]
    return float(np.mean(np.square(errors))) if errors else float("nan")


def _check(found: Collection[Hashable], ranked: Sequence[Hashable]) -> None:
    for field, values in (("found", found), ("ranked", ranked)):
        if len(set(values)) < len(values):
            raise InvalidValue(field, values, "values that differ from each other")
    if not ranked:
        raise InvalidValue("ranked", ranked, "at least one value")
