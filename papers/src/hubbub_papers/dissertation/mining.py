"""Sweeps of chapter 5: people who hold sets, protocols that find frequent items or itemsets, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.domain.sets import ItemSets
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Message, Reply
from hubbub.protocols.itemsets.lengths import Itemset
from hubbub.random.source import Random
from hubbub.simulate.devices import SetStream
from hubbub.simulate.fleet import Fleet
from hubbub_papers.baselines.mining_ladder import Shares
from hubbub_papers.harness import Context, RunScores
from hubbub_papers.top_itemsets import top_items, top_itemsets
from hubbub_papers.top_k_scores import hits, ncr, squared_error

Floats = NDArray[np.float64]
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)
KS = (16, 32, 64, 128)
FIXED_EPSILON, FIXED_K = 2.0, 64
SWEEP: list[tuple[float, int]] = [(epsilon, FIXED_K) for epsilon in EPSILONS] + [
    (FIXED_EPSILON, k) for k in KS if k != FIXED_K
]
"""The pairs of epsilon and k that are tried: each epsilon at k = 64, each k at epsilon 2."""
HITS, NCR, ERROR = range(3)
"""The columns of a run: how many of the true top k were found, their NCR, and the mean squared error of counts."""


class MiningSetting(NamedTuple):
    """The people, the method, epsilon, and k: how many items or itemsets are searched for."""

    people: str
    method: str
    epsilon: float
    k: int


MiningRuns = RunScores[MiningSetting]
"""By setting, one row a run with the columns HITS, NCR and ERROR."""


@dataclass(frozen=True, eq=False)
class KnownSets:
    """People whose sets are known.

    Parameters
    ----------
    name
        Their name in the table.
    sets
        The set of each person.
    note
        What differs from the paper's data.
    """

    name: str
    sets: ItemSets
    note: str

    @cached_property
    def domain(self) -> Sets:
        """The domain of the sets."""
        return Sets(Ordinal(self.sets.domain), self.sets.domain)

    def top(self, k: int, *, itemsets: bool) -> dict[Itemset, int]:
        """The true top k items or itemsets, and how many people hold each."""
        if itemsets:
            return top_itemsets(self.sets, k)
        return {(item,): support for item, support in top_items(self.sets, k).items()}


Method = Callable[[KnownSets, float, int], Generator[Message, Reply, Shares]]
"""From people, epsilon and k to a protocol that returns what it found."""


def found_by(protocol: Generator[Message, Reply, Shares], sets: ItemSets, rng: Random) -> Shares:
    """Run a protocol over these people, in a random order, and return what it found."""
    fleet = Fleet(SetStream(sets[rng.permutation(len(sets))]), rng)
    try:
        ask = next(protocol)
        while True:
            assert isinstance(ask, Ask)
            ask = protocol.send(fleet.answer(ask))
    except StopIteration as end:
        found: Shares = end.value
        return found


def measure(
    context: Context,
    name: str,
    everyone: Sequence[KnownSets],
    methods: Mapping[str, Method],
    *,
    itemsets: bool,
) -> dict[MiningSetting, Floats]:
    """Run every method on all people in every setting of `SWEEP`."""
    truths = {(people.name, k): people.top(k, itemsets=itemsets) for people in everyone for k in KS}

    def run_once(setting: MiningSetting, run: int) -> dict[MiningSetting, tuple[float, float, float]]:
        people, rng = by_name[setting.people], context.rng.child(name, *map(str, setting), run)
        found = found_by(methods[setting.method](people, setting.epsilon, setting.k), people.sets, rng)
        truth = truths[people.name, setting.k]
        counts = {items: share * len(people.sets) for items, share in found.items()}
        ranked = list(truth)
        return {setting: (float(hits(found, ranked)), ncr(found, ranked), squared_error(counts, truth, ranked))}

    by_name = {people.name: people for people in everyone}
    settings = [MiningSetting(who, method, *pair) for who in by_name for pair in SWEEP for method in methods]
    return context.measure(settings, run_once, lambda setting: ", ".join(map(str, setting)))
