"""TreeHist over shuffled reports: everyone reports in every round, and the central epsilon is divided by the rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.candidates import Extensions
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation
from hubbub_papers.baselines.shuffled.comparators import ByOracle, HistogramMethod, HistogramSetting

BITS = 8
"""The bits that a round adds: a character."""
Shares = Callable[[HistogramMethod, NDArray[np.int64], Random], NDArray[np.float64]]


def drawn_shares(method: HistogramMethod, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
    """The estimated shares; the sums of reports are drawn from their distribution."""
    return method.shares(counts, rng)


def reported_shares(method: HistogramMethod, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
    """The estimated shares, with every report made and counted."""
    if not isinstance(method, ByOracle):
        raise InvalidValue("method", type(method).__name__, "a mechanism, which makes reports")
    reports = method.oracle.randomize(np.repeat(np.arange(len(counts)), counts), rng)
    return method.oracle.estimate(method.oracle.accumulate(reports)).value


def shuffled_tree_hist(
    population: BitPopulation,
    *,
    k: int,
    epsilon: float,
    delta: float,
    make: Callable[[HistogramSetting], HistogramMethod | None],
    rng: Random,
    divided: bool = False,
    shares: Shares = drawn_shares,
) -> list[int] | None:
    """The k most common strings, the most common first; None where the method does not apply.

    Round by round the k best prefixes are extended by eight bits. A person reports which of the extensions theirs is,
    or that it is none of them.

    Parameters
    ----------
    population, k, rng
        Who holds what, how many are looked for, and everyone's randomness.
    epsilon, delta
        The central guarantee of all rounds together.
    make
        The method for one round's setting, from `COMPARATORS`.
    divided
        Whether every round asks other people, with the whole epsilon: for methods that are private without a shuffle.
    shares
        How reports become shares: `drawn_shares` or `reported_shares`.

    References
    ----------
    Dissertation, section 9.6.3.
    """
    if population.bits % BITS:
        raise InvalidValue("population", f"{population.bits} bits", f"a multiple of {BITS}")
    rounds = population.bits // BITS
    groups = _groups(population, rounds, rng) if divided else [population.counts] * rounds
    parts = 1 if divided else rounds
    prefixes: NDArray[Any] = np.zeros(1, dtype=np.uint64)
    for number, held in enumerate(groups):
        candidates = Extensions(prefixes, BITS).listed()
        counts = _counted(population, held, candidates, (number + 1) * BITS)
        setting = HistogramSetting(epsilon / parts, delta / parts, int(held.sum()), len(counts))
        method = make(setting)
        if method is None:
            return None
        estimated = shares(method, counts, rng)[:-1]
        prefixes = candidates[np.argsort(-estimated, kind="stable")[:k]]
    return [int(prefix) for prefix in prefixes]


def _counted(
    population: BitPopulation, held: NDArray[np.int64], candidates: NDArray[Any], length: int
) -> NDArray[np.int64]:
    """How many hold each candidate, and, last, none of them."""
    stems = population.segment(0, length)
    order = np.argsort(candidates, kind="stable")
    places = np.minimum(np.searchsorted(candidates[order], stems), len(order) - 1)
    found = order[places]
    at = np.where(candidates[found] == stems, found, len(candidates))
    return np.bincount(at, weights=held, minlength=len(candidates) + 1).astype(np.int64)


def _groups(population: BitPopulation, rounds: int, rng: Random) -> list[NDArray[np.int64]]:
    order = rng.permutation(population.n)
    return [
        np.bincount(population.people[group], minlength=population.values.size)
        for group in np.array_split(order, rounds)
    ]
