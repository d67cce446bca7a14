"""Mining a batch of sets, one of each person, by the protocol of a study."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.core.item_sets import ItemSets, as_item_sets
from hubbub.core.random import Random
from hubbub.protocols.driver import Protocol, converse
from hubbub.protocols.itemsets.findings import Findings
from hubbub.protocols.itemsets.study import mine
from hubbub.protocols.subsets import Subsets
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.set_stream import SetStream


def find_itemsets(
    sets: Any, *, k: int, epsilon: float, rng: Random, itemsets: bool = True, domain: Sets | None = None
) -> Findings:
    """Find the k most frequent itemsets, or items, of a batch of sets, one of each person.

    Each person answers once, with a report that spends epsilon, as in a study of the same people.

    Parameters
    ----------
    sets
        `ItemSets`, or a list of sets, in any order: people are put on the circle at random.
    k
        How many itemsets or items to find.
    epsilon
        What each person spends.
    rng
        The randomness of all reports.
    itemsets
        Whether to search for sets of several items (SVSM), or for single items only (SVIM).
    domain
        The domain of the sets; needed unless `ItemSets` are given.
    """
    if domain is None:
        if not isinstance(sets, ItemSets):
            raise InvalidValue("domain", None, "given, if the sets are a list")
        domain = Sets(Ordinal(sets.domain), sets.domain)
    people = as_item_sets(sets, domain)
    if not len(people):
        raise InvalidValue("sets", [], "at least one")
    fleet = Fleet(SetStream(people[rng.permutation(len(people))]), rng)
    results: list[Findings] = []

    def study() -> Protocol:
        findings = yield from mine(domain, epsilon=epsilon, k=k, itemsets=itemsets)
        results.append(findings)
        yield findings.release()

    for _release in converse(study(), fleet.answer):
        pass
    return results[0]


def true_shares(people: ItemSets, sets: tuple[tuple[int, ...], ...]) -> NDArray[np.float64]:
    """The true share of the people who have each of some itemsets."""
    order = sorted(set(sets))
    if not order:
        return np.zeros(0)
    counts = np.zeros(len(order), dtype=np.int64)
    for start in range(0, len(people), _CHUNK):
        counts += Subsets(tuple(order)).contained(people[slice(start, start + _CHUNK)]).sum(axis=1)
    places = {items: place for place, items in enumerate(order)}
    return np.asarray(counts[[places[items] for items in sets]] / len(people))


_CHUNK = 1 << 17
