"""The methods of chapter 4 by name, the scores of a search, and a sweep of methods over settings."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.protocols.heavy_hitters.prefixes import prefix_lengths, queries
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.answers import DrawnAnswers
from hubbub_papers.baselines.heavy_hitters.channels import multiple_channels
from hubbub_papers.baselines.heavy_hitters.found_values import FoundValues
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation
from hubbub_papers.baselines.heavy_hitters.prefixes import MakeAnswers, pem1, search_prefixes
from hubbub_papers.baselines.heavy_hitters.priv_trie import priv_trie
from hubbub_papers.baselines.heavy_hitters.spm import segment_pairs
from hubbub_papers.baselines.heavy_hitters.tree_hist import tree_hist
from hubbub_papers.dissertation.heavy_data import DATA
from hubbub_papers.harness import Context
from hubbub_papers.top_k_scores import hits, ncr, squared_error

QUERY_LIMIT = 1 << 20
DRAWN = "support counts drawn from their exact distribution"
Method = Callable[..., FoundValues]


def pem_lengths(bits: int, k: int, query_limit: int = QUERY_LIMIT) -> tuple[int, ...]:
    """The prefix lengths of PEM's groups: as few groups as the limit on queries allows (section 4.3.3)."""
    plans = (prefix_lengths(bits, k, groups) for groups in range(1, bits + 1))
    return next(lengths for lengths in plans if queries(lengths, k) <= query_limit)


def _pem(population: BitPopulation, *, k: int, query_limit: int, **options: object) -> FoundValues:
    return search_prefixes(population, pem_lengths(population.bits, k, query_limit), k=k, **options)  # type: ignore[arg-type]


def _unlimited(method: Method, **fixed: bool) -> Method:
    """A method that takes no limit on queries, because it always tests few candidates."""

    def run(population: BitPopulation, *, query_limit: int, **options: object) -> FoundValues:
        return method(population, **fixed, **options)

    return run


def _sketched(divided: bool) -> Method:
    """TreeHist, which takes neither a limit nor answers: its people report to a count sketch."""

    def run(
        population: BitPopulation, *, query_limit: int, make_answers: MakeAnswers, **options: object
    ) -> FoundValues:
        return tree_hist(population, divided=divided, **options)  # type: ignore[arg-type]

    return run


METHODS: dict[str, Method] = {
    "PEM": _pem,
    "PEM1": _unlimited(pem1),
    "PEM1, split": _unlimited(pem1, divided=False),
    "HASH": multiple_channels,
    "HASH, divided": partial(multiple_channels, divided=True),
    "SPM": segment_pairs,
    "SPM, divided": partial(segment_pairs, divided=True),
    "PrivTrie": _unlimited(priv_trie),
    "PrivTrie, divided": _unlimited(priv_trie, divided=True),
    "PrivTrie, 4 sd": _unlimited(priv_trie, printed=False),
    "PrivTrie, 4 sd, divided": _unlimited(priv_trie, printed=False, divided=True),
    "TreeHist": _sketched(divided=False),
    "TreeHist, divided": _sketched(divided=True),
}
"""Every method by name. PEM and PEM1 divide the people, as chapter 4 has it, and so do names with "divided"; all others
split each person's epsilon."""


HITS, F1, NCR, ERROR = range(4)
"""The columns of a `Score`."""


class Score(NamedTuple):
    """How good a search was: how many of the top k it found, F1, NCR, and the mean squared error of their counts."""

    hits: float
    f1: float
    ncr: float
    error: float


def score(found: FoundValues, population: BitPopulation, k: int, threshold: float | None = None) -> Score:
    """The score of the found values against the true top k, or against all values whose share is at least
    `threshold`.
    """
    ranked = population.ranked(k)
    if threshold is not None:
        ranked = population.ranked(int((population.counts >= threshold * population.n).sum()))
    counts: dict[Hashable, float] = dict(zip(map(int, population.values), population.counts.tolist(), strict=True))
    number = hits(found.values, ranked)
    estimated: dict[Hashable, float] = dict(zip(found.values, (found.shares * population.n).tolist(), strict=True))
    return Score(
        number,
        2 * number / (len(found.values) + len(ranked)),
        ncr(found.values, ranked),
        squared_error(estimated, counts, ranked),
    )


@dataclass(frozen=True)
class SearchSetting:
    """A point of a figure: a population, a method, an epsilon, and the k or the share that is searched for."""

    data: str
    method: str
    epsilon: float
    k: int
    threshold: float | None = None

    def __str__(self) -> str:
        share = "" if self.threshold is None else f", share {self.threshold:g}"
        return f"{self.data}, eps = {self.epsilon:g}, k = {self.k}{share}"


def sweep(
    context: Context,
    settings: Sequence[SearchSetting],
    *,
    methods: Mapping[str, Method] = METHODS,
    make_answers: MakeAnswers = DrawnAnswers,
) -> dict[SearchSetting, NDArray[np.float64]]:
    """The scores of each setting, one row a run. In one run, all settings of a population have the same people."""

    def run_once(data: str, run: int) -> dict[SearchSetting, Score]:
        population = DATA[data](context, context.rng.child("chapter 4", data, run))
        return {
            setting: _score(
                population,
                setting,
                context.rng.child("chapter 4", str(setting), setting.method, run),
                methods,
                make_answers,
            )
            for setting in settings
            if setting.data == data
        }

    measured = context.measure(dict.fromkeys(setting.data for setting in settings), run_once)
    return {setting: measured[setting] for setting in settings}


def _score(
    population: BitPopulation,
    setting: SearchSetting,
    rng: Random,
    methods: Mapping[str, Method],
    make_answers: MakeAnswers,
) -> Score:
    found = methods[setting.method](
        population,
        k=setting.k,
        epsilon=setting.epsilon,
        query_limit=QUERY_LIMIT,
        rng=rng,
        make_answers=make_answers,
        threshold=setting.threshold,
    )
    return score(found, population, setting.k, setting.threshold)
