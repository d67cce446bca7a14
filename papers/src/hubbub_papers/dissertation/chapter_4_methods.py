"""The populations of chapter 4, and the methods that find heavy hitters in them."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.data.counts import Counts, domains, names, words
from hubbub.data.synthetic import geometric
from hubbub.protocols.heavy_hitters.prefixes import prefix_lengths, queries
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.answers import DrawnAnswers
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation, FoundValues
from hubbub_papers.baselines.heavy_hitters.prefixes import MakeAnswers, pem1, priv_trie, search_prefixes
from hubbub_papers.baselines.heavy_hitters.segments import multiple_channels, segment_pairs
from hubbub_papers.baselines.heavy_hitters.tree_hist import tree_hist
from hubbub_papers.harness import Context
from hubbub_papers.top_scores import hits, ncr, squared_error

NEEDS = ("domains", "words", "names")
OTHER_DATA = {
    "Exponential": "",
    "URL": "other data: 16,616 domain names of 20 bytes with synthetic Zipf visits, for Quantcast's",
    "Query": "other data: 500,000 draws of English words cut to 6 bytes, for AOL's queries",
    "Names": "data of our own choice: 1,000,000 draws of US births of 2016, names of up to 8 bytes",
    "Short names": "data of our own choice: all 3,637,321 US births of 2016, names cut to 6 bytes",
}
"""How each population differs from the paper's."""
_DISTINCT = 400  # values of the exponential population: the rarest has a share of 1e-10


def exponential(context: Context, rng: Random) -> BitPopulation:
    """1,000,000 people whose values have shares in proportion to e^(-0.05 rank), at random among 2^64."""
    ranks = geometric(context.size(1_000_000), _DISTINCT, math.exp(-0.05), rng)
    return BitPopulation.of(rng.uint64(_DISTINCT)[ranks], 64)


def coded(context: Context, name: str, rng: Random) -> BitPopulation:
    """The population of that name with a random code of 32 bits for each value, as Tables 4.2 and 4.3 need it."""
    whole = DATA[name](context, rng)
    codes = rng.child("codes of 32 bits").uint32(2 * whole.values.size)
    unique = np.unique(codes)[: whole.values.size].astype(np.uint64)
    order = rng.permutation(unique.size)
    return BitPopulation.of(unique[order][whole.people], 32)


def _written(labels: NDArray[np.str_], counts: NDArray[np.int64], longest: int) -> BitPopulation:
    """Texts as bits, cut to `longest` bytes or filled up with zero bytes; equal strings are counted together."""
    total: dict[int, int] = {}
    for label, count in zip(labels.tolist(), counts.tolist(), strict=True):
        if count:
            string = int.from_bytes(label.encode()[:longest].ljust(longest, b"\0"), "big")
            total[string] = total.get(string, 0) + count
    return BitPopulation.counted(list(total), np.array(list(total.values())), 8 * longest)


@cache
def _words() -> Counts:
    return words()


@cache
def _births() -> Counts:
    return names(2016).by_label()


@cache
def _visits(n: int) -> Counts:
    return domains(n)


def _url(context: Context, rng: Random) -> BitPopulation:
    visits = _visits(context.size(1_200_000))
    return _written(visits.labels, visits.counts, 20)


def _query(context: Context, rng: Random) -> BitPopulation:
    all_words = _words()
    drawn = np.bincount(all_words.population(rng, context.size(500_000)), minlength=len(all_words))
    return _written(all_words.labels, drawn, 6)


def _names(context: Context, rng: Random) -> BitPopulation:
    births = _births()
    drawn = np.bincount(births.population(rng, context.size(1_000_000)), minlength=len(births))
    return _written(births.labels, drawn, 8)


def _short_names(context: Context, rng: Random) -> BitPopulation:
    births = _births()
    if context.scale == 1.0:
        return _written(births.labels, births.counts, 6)
    drawn = np.bincount(births.population(rng, context.size(births.n)), minlength=len(births))
    return _written(births.labels, drawn, 6)


DATA: dict[str, Callable[[Context, Random], BitPopulation]] = {
    "Exponential": exponential,
    "URL": _url,
    "Query": _query,
    "Names": _names,
    "Short names": _short_names,
}
"""The populations by name."""


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
    """The scores of each setting, one row per run. In one run, all settings of a population have the same people."""

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
    top = methods[setting.method](
        population,
        k=setting.k,
        epsilon=setting.epsilon,
        query_limit=QUERY_LIMIT,
        rng=rng,
        make_answers=make_answers,
        threshold=setting.threshold,
    )
    return score(top, population, setting.k, setting.threshold)
