"""Sweeps of chapter 5: people with sets, protocols that find frequent items or itemsets, and how good each was."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.item_sets import ItemSets
from hubbub.core.random import Random
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Message, Reply
from hubbub.protocols.itemsets.guess import Itemset
from hubbub.reproduce.baselines.mining_ladder import Shares
from hubbub.reproduce.found import hits, ncr, squared_error
from hubbub.reproduce.harness import Context
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.set_stream import SetStream
from hubbub.simulate.top_itemsets import top_items, top_itemsets

Floats = NDArray[np.float64]
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)
KS = (16, 32, 64, 128)
FIXED_EPSILON, FIXED_K = 2.0, 64
SWEEP: list[tuple[float, int]] = [(epsilon, FIXED_K) for epsilon in EPSILONS] + [
    (FIXED_EPSILON, k) for k in KS if k != FIXED_K
]
"""The epsilons and numbers wanted that are tried: each epsilon at k = 64, each k at epsilon 2."""
HITS, NCR, ERROR = range(3)
"""The columns of a run: how many of the true top k were found, their NCR, and the mean squared error of counts."""


class MiningSetting(NamedTuple):
    """Whose sets, by which method, at which epsilon, and how many are wanted."""

    people: str
    method: str
    epsilon: float
    k: int


MiningRuns = Mapping[MiningSetting, Floats]
"""Of each setting a row a run, with the columns HITS, NCR and ERROR."""


@dataclass(frozen=True, eq=False)
class KnownSets:
    """People whose sets are known.

    Parameters
    ----------
    name
        What they are called in the table.
    sets
        What each holds.
    note
        What differs from the paper's data.
    """

    name: str
    sets: ItemSets
    note: str

    @cached_property
    def domain(self) -> Sets:
        """The sets there could be."""
        return Sets(Ordinal(self.sets.domain), self.sets.domain)

    def top(self, k: int, *, itemsets: bool) -> dict[Itemset, int]:
        """The true top, and how many hold each."""
        if itemsets:
            return top_itemsets(self.sets, k)
        return {(item,): support for item, support in top_items(self.sets, k).items()}


Method = Callable[[KnownSets, float, int], Generator[Message, Reply, Shares]]
"""From people, epsilon and k to a protocol that ends with what it found."""


def found_by(protocol: Generator[Message, Reply, Shares], sets: ItemSets, rng: Random) -> Shares:
    """What a protocol finds among these people; they are put on the circle at random."""
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
    """Run every method in every setting of `SWEEP`."""
    steps = [
        (people, MiningSetting(people.name, method, epsilon, k), run)
        for people in everyone
        for epsilon, k in SWEEP
        for method in methods
        for run in range(context.repeats)
    ]
    rows: dict[MiningSetting, list[tuple[float, float, float]]] = {}
    truths = {(people.name, k): people.top(k, itemsets=itemsets) for people in everyone for k in KS}
    for people, setting, run in context.track(steps, lambda step: f"{', '.join(map(str, step[1]))}, run {step[2] + 1}"):
        rng = context.rng.child(name, *map(str, setting), run)
        found = found_by(methods[setting.method](people, setting.epsilon, setting.k), people.sets, rng)
        truth = truths[people.name, setting.k]
        counts = {items: share * len(people.sets) for items, share in found.items()}
        ranked = list(truth)
        scores = float(hits(found, ranked)), ncr(found, ranked), squared_error(counts, truth, ranked)
        rows.setdefault(setting, []).append(scores)
    return {setting: np.array(scores) for setting, scores in rows.items()}
