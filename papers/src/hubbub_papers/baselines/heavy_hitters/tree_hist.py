"""TreeHist: a binary tree of prefixes, pruned by a threshold; of one-bit reports, and over shuffled reports."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import bucket, hash32
from hubbub.kernels.estimators import walsh_hadamard
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation, Extensions, FoundValues, best_values
from hubbub_papers.baselines.heavy_hitters.segments import FINAL_SHARE, short_codes
from hubbub_papers.baselines.shuffled import ByOracle, HistogramMethod, HistogramSetting

ROWS = 8


class CountSketchAnswers:
    """One bit per person: an entry of the Hadamard transform of a row of a count sketch, true with probability p.

    A person is assigned to one of the rows, whose hash maps their code to a cell and a sign. The server inverts the
    transform of each row. The estimated share of a code is the median of its cell over the rows. The variance of one
    row of n reports is 1/(n (2p - 1)^2).

    References
    ----------
    Bassily, Nissim, Stemmer and Thakurta, 2017.
    """

    def __init__(self, codes: NDArray[np.uint64], epsilon: float, rng: Random) -> None:
        self.n = codes.size
        self.width = 1 << max(4, math.ceil(math.log2(math.sqrt(max(1, self.n))) + 1))
        rate = math.exp(epsilon) / (math.exp(epsilon) + 1)
        self.sigma = 1 / (2 * rate - 1)
        self._seeds = rng.uint64(2, ROWS)
        self._sums = np.zeros((ROWS, self.width))
        for row, people in enumerate(np.array_split(generator(rng).permutation(self.n), ROWS)):
            cells, signs = self._place(row, codes[people])
            entries = rng.below(self.width, people.size)
            parity = np.bitwise_count(cells & entries) & 1
            bits = signs * np.where(parity, -1, 1) * np.where(rng.uint64(people.size) < rate * 2.0**64, 1, -1)
            sums = np.bincount(entries, weights=bits, minlength=self.width)
            self._sums[row] = walsh_hadamard(sums) * self.sigma / max(1, people.size)

    @property
    def deviation(self) -> float:
        """The standard deviation of an estimated share near 0: that of the median of the rows."""
        return self.sigma * math.sqrt(math.pi / 2 / max(1, self.n))

    def shares(self, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The estimated share of each code."""
        rows = []
        for row in range(ROWS):
            cells, signs = self._place(row, codes)
            rows.append(signs * self._sums[row, cells])
        return np.asarray(np.median(rows, axis=0))

    def _place(self, row: int, codes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        cells, signs = (hash32(seed, codes) for seed in self._seeds[:, row])
        return bucket(cells, self.width), 2 * bucket(signs, 2) - 1


def tree_hist(
    population: BitPopulation,
    *,
    k: int,
    epsilon: float,
    rng: Random,
    divided: bool = False,
    threshold: float | None = None,
) -> FoundValues:
    """Up to k common values by TreeHist, those with the largest estimates.

    There is a group of people for each length of prefix, which grows by one bit. A prefix is kept if its estimated
    share is above the sensitivity threshold of section 4.3.2, which one of the tested prefixes is expected to pass by
    chance (the text does not give the constants of the published threshold); at most sqrt(n) are kept. The values that
    are left at full length are then tested.

    If `divided`, a tenth of the people tests with the whole epsilon, and the others spend it on their prefix. Otherwise
    everyone spends half on each, as published.

    References
    ----------
    Bassily et al., 2017.
    """
    from statistics import NormalDist

    spent = epsilon if divided else epsilon / 2
    final, others = population.split([FINAL_SHARE, 1 - FINAL_SHARE], rng) if divided else (population, population)
    prefixes: NDArray[Any] = np.zeros(1, dtype=population.values.dtype)
    last_bit = 1 if prefixes.dtype == object else np.uint64(1)
    for length, group in enumerate(others.split([1.0] * population.bits, rng), start=1):
        sketch = CountSketchAnswers(short_codes(population.segment(0, length))[group.people], spent, rng)
        children = np.concatenate([prefixes << last_bit, (prefixes << last_bit) | last_bit])
        shares = sketch.shares(short_codes(children))
        passed = sketch.deviation * -NormalDist().inv_cdf(min(0.5, 1 / len(children)))
        kept = np.flatnonzero(shares >= passed)
        prefixes = children[kept[np.argsort(-shares[kept])][: math.isqrt(population.n)]]
        if not len(prefixes):
            return FoundValues([], np.zeros(0))
    tested = CountSketchAnswers(short_codes(final.values)[final.people], spent, rng)
    return best_values(prefixes, tested.shares(short_codes(prefixes)), k).above(threshold)


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

    Round by round the k best prefixes are extended by eight bits. A person reports which extension their string
    begins with, or that it begins with no extension.

    `epsilon` and `delta` are the central guarantee of all rounds together; `make` gives the method for one round's
    setting (`COMPARATORS`). If `divided`, every round asks other people, with the whole epsilon: for methods that are
    private without a shuffle. `shares` makes shares of reports: `drawn_shares` or `reported_shares`.

    References
    ----------
    T. Wang, 2021, section 9.6.3.
    """
    if population.bits % BITS:
        raise InvalidValue("population", f"{population.bits} bits", f"a multiple of {BITS}")
    rounds = population.bits // BITS
    groups = _groups(population, rounds, rng) if divided else [population.counts] * rounds
    parts = 1 if divided else rounds
    prefixes: NDArray[Any] = np.zeros(1, dtype=np.uint64)
    for number, counts_of_group in enumerate(groups):
        candidates = Extensions(prefixes, BITS).listed()
        counts = _counted(population, counts_of_group, candidates, (number + 1) * BITS)
        setting = HistogramSetting(epsilon / parts, delta / parts, int(counts_of_group.sum()), len(counts))
        method = make(setting)
        if method is None:
            return None
        estimated = shares(method, counts, rng)[:-1]
        prefixes = candidates[np.argsort(-estimated, kind="stable")[:k]]
    return [int(prefix) for prefix in prefixes]


def _counted(
    population: BitPopulation, people: NDArray[np.int64], candidates: NDArray[Any], length: int
) -> NDArray[np.int64]:
    """The number of people whose string begins with each candidate, and, last, with no candidate."""
    stems = population.segment(0, length)
    order = np.argsort(candidates, kind="stable")
    places = np.minimum(np.searchsorted(candidates[order], stems), len(order) - 1)
    nearest = order[places]
    at = np.where(candidates[nearest] == stems, nearest, len(candidates))
    return np.bincount(at, weights=people, minlength=len(candidates) + 1).astype(np.int64)


def _groups(population: BitPopulation, rounds: int, rng: Random) -> list[NDArray[np.int64]]:
    order = rng.permutation(population.n)
    return [
        np.bincount(population.people[group], minlength=population.values.size)
        for group in np.array_split(order, rounds)
    ]
