"""What the figures of chapter 5 share: people who hold sets, sweeps over methods that find frequent items, panels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal, Sets
from hubbub.core.domain.sets import ItemSets
from hubbub.data.baskets import Baskets, independent_baskets, online_retail, retail
from hubbub.data.synthetic import zipf
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Message, Reply
from hubbub.protocols.itemsets.lengths import Itemset
from hubbub.random.source import Random
from hubbub.simulate.devices import SetStream
from hubbub.simulate.fleet import Fleet
from hubbub_papers.baselines.mining_ladder import Shares
from hubbub_papers.harness import Cell, Context, RunScores
from hubbub_papers.plots import canvas, draw_methods, finish, legend_below, mark_values
from hubbub_papers.top_scores import hits, ncr, squared_error, top_items, top_itemsets
from hubbub_papers.tops_topl.streams import made

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
"""By setting, one row per run with the columns HITS, NCR and ERROR."""


@dataclass(frozen=True, eq=False)
class KnownSets:
    """People whose sets are known.

    The note says what differs from the paper's data.
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
        shares: Shares = end.value
        return shares


def measure(
    context: Context, name: str, everyone: Sequence[KnownSets], methods: Mapping[str, Method], *, itemsets: bool
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


KOSARAK_PAGES = 41_270
MANY = 529_000
"""The number of people after resampling the baskets: the paper's POS has half a million."""


@cache
def _baskets() -> Baskets:
    return retail()


@cache
def _histories() -> Baskets:
    return online_retail()


def belgian(context: Context) -> list[KnownSets]:
    """The baskets as they are, and resampled to the size of the paper's data; scaled down, a part of them."""
    baskets = _baskets()
    other = "other data: Belgian retail baskets over 16,470 items, for POS's 1,657 categories"
    n, many = context.size(baskets.n, least=500), context.size(MANY, least=1000)
    some = baskets if n == baskets.n else baskets[context.rng.child("part of the baskets").permutation(baskets.n)[:n]]
    more = baskets[context.rng.child("baskets resampled").below(baskets.n, many)]
    return [
        KnownSets(f"{n:,} baskets", some, other),
        KnownSets(f"{many:,} baskets", more, f"{other}; drawn with replacement from 88,162 baskets"),
    ]


def british(context: Context) -> KnownSets:
    """Customers' purchases of a year, resampled."""
    histories = _histories()
    n = context.size(500_000, least=1000)
    people = histories[context.rng.child("customers resampled").below(histories.n, n)]
    note = (
        "other data: 3,885 articles, for the paper's 2,603 categories"
        "; drawn with replacement from the purchases of 4,372 customers in a year"
    )
    return KnownSets(f"{n:,} customers", people, note)


def synthesized(context: Context) -> KnownSets:
    """Baskets of 1,000 items with exponential weights, drawn independently, five draws a basket."""
    n, items = context.size(1_800_000, least=1000), 1000
    weights = -np.log((np.arange(items) + 0.5) / items)
    baskets = independent_baskets(n, weights, 5.0, context.rng.child("synthesized baskets"))
    return KnownSets(f"{n:,} synthesized", baskets, "independent items of exponential weights, for IBM's generator")


def kosarak(context: Context) -> KnownSets:
    """As many items a person as in the clicks of Kosarak, drawn by Zipf's law from as many pages."""
    sizes = made("Kosarak", context.size(990_002, least=1000)).values.astype(np.int64)
    drawn = zipf(int(sizes.sum()), KOSARAK_PAGES, 1.0, context.rng.child("pages of Kosarak"))
    pairs = np.unique(np.repeat(np.arange(sizes.size), sizes) * KOSARAK_PAGES + drawn)
    offsets = np.searchsorted(pairs, np.arange(sizes.size + 1) * KOSARAK_PAGES)
    note = "a stand-in for Kosarak: its numbers of people, of pages and of items a person, pages by Zipf's law"
    name = f"{sizes.size:,} made as Kosarak"
    return KnownSets(name, ItemSets(offsets, pairs % KOSARAK_PAGES, domain=KOSARAK_PAGES), note)


WORDS = {HITS: "found", NCR: "NCR", ERROR: "Var"}


def known(scores: Floats) -> Floats:
    """The scores that are numbers."""
    return np.asarray(scores[~np.isnan(scores)])


def mean_score(runs: MiningRuns, people: str, method: str, epsilon: float, k: int, column: int) -> float:
    """The mean over the runs whose score is a number; NaN if no score is."""
    scores = known(runs[MiningSetting(people, method, epsilon, k)][:, column])
    return float(scores.mean()) if scores.size else float("nan")


def cells(context: Context, everyone: Sequence[KnownSets], runs: MiningRuns, columns: Sequence[int]) -> list[Cell]:
    """The mean and deviation of each setting. A setting in which no run found a top value has no error."""
    notes = {people.name: people.note for people in everyone}
    mean_cells = []
    for setting, rows in runs.items():
        for column in columns:
            scores = known(rows[:, column])
            if scores.size:
                note = f"{context.repeats} runs (the paper: 10), deviation {scores.std():.3g}"
                if column == ERROR:  # a length that is significant by chance multiplies all errors of its run
                    note += f", median {np.median(scores):.3g}"
                if scores.size < len(rows):
                    note += f"; {len(rows) - scores.size} of them found none"
                row = f"{setting.people}, k = {setting.k}, eps = {setting.epsilon:g}"
                heading = f"{setting.method}: {WORDS[column]}"
                mean_cells.append(Cell(row, heading, None, float(scores.mean()), f"{note}; {notes[setting.people]}"))
    return mean_cells


def draw(everyone: Sequence[KnownSets], runs: MiningRuns, columns: Sequence[int]) -> Figure:
    """A row of two panels for each people and score: over epsilon, and over k."""
    figure, panels = canvas(len(everyone) * len(columns), 2)
    methods = list(dict.fromkeys(setting.method for setting in runs))
    for row, (people, column) in enumerate(product(everyone, columns)):
        by_epsilon, by_k = (
            {
                method: [known(runs[MiningSetting(people.name, method, *pair)][:, column]) for pair in pairs]
                for method in methods
            }
            for pairs in ([(epsilon, FIXED_K) for epsilon in EPSILONS], [(FIXED_EPSILON, k) for k in KS])
        )
        left, right = panels[2 * row : 2 * row + 2]
        draw_methods(left, EPSILONS, by_epsilon)
        draw_methods(right, KS, by_k)
        for panel, axis, fixed, log in (
            (left, "$\\epsilon$", f"k = {FIXED_K}", ""),
            (right, "k", f"eps = {FIXED_EPSILON:g}", "x"),
        ):
            some_error = column == ERROR and bool(panel.get_lines())
            finish(panel, axis, WORDS[column], f"{people.name}, {fixed}", log=log + ("y" if some_error else ""))
        mark_values(right, KS)
    legend_below(figure, panels, columns=3)
    return figure
