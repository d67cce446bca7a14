"""PrivTrie: a trie of characters, whose nodes are asked about by batches of people until they pass a threshold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.reproduce.baselines.heavy_hitters.answers import DrawnAnswers
from hubbub.reproduce.baselines.heavy_hitters.candidates import Extensions
from hubbub.reproduce.baselines.heavy_hitters.drawing import generator
from hubbub.reproduce.baselines.heavy_hitters.found_values import FoundValues, best_values
from hubbub.reproduce.baselines.heavy_hitters.population import BitPopulation
from hubbub.reproduce.baselines.heavy_hitters.prefixes import Asked

CHARACTER = 8
"""The bits of a character: an alphabet of 2^8 (section 4.4.2)."""


def batch_size(n: int, epsilon: float) -> int:
    """How many people a batch has: max(n/1000, 800/eps^2), and no more than there are.

    Example:
        >>> batch_size(1_000_000, 2.0), batch_size(100_000, 0.5)
        (1000, 3200)
    """
    return min(n, math.ceil(max(n / 1000, 800 / epsilon**2)))


def priv_trie(
    population: BitPopulation,
    *,
    k: int,
    epsilon: float,
    rng: Random,
    asked: Asked = DrawnAnswers,
    divided: bool = False,
    printed: bool = True,
    threshold: float | None = None,
) -> FoundValues:
    """Common values by PrivTrie; the k largest of those that it finds, which may be fewer.

    A prefix is taken for common when its estimated count is above 4 n / (eps sqrt(N)), N the people asked about it so
    far, and is then extended by a character. At each length the k prefixes of the largest estimates are extended, so
    that it ends where chance passes the threshold too often. The final step that makes estimates consistent is left
    out, as in chapter 4.

    Parameters
    ----------
    population, k, epsilon, rng
        As of `search_prefixes`.
    asked
        How the answers of divided people are made; what the others answer takes no hash.
    divided
        Whether everyone is asked once, by OLH, for the prefix of one length, with the whole epsilon: then a length
        takes batches until k of its prefixes are above the threshold, or its part of the people is used up. Else, as
        published, a person answers yes or no for many prefixes, none of which begins with another, by randomised
        response with half of epsilon each: the value that a person holds begins with at most one of them.
    printed
        Whether the eps of that threshold is all that a person spends, as printed. What a person spends on one of many
        prefixes is half of it, so that this is two standard deviations, which chance passes all the time. Else the
        threshold is four standard deviations.
    threshold
        Where it is given, only values whose share is estimated above it are told.

    Example:
        >>> crowd = BitPopulation.counted([77, 50000], np.array([300_000, 200_000]), 16)
        >>> priv_trie(crowd, k=2, epsilon=4.0, rng=Random(seed=1)).values
        [77, 50000]

    References
    ----------
    Dissertation, sections 4.2.4 and 4.4.2; Wang et al., 2018.
    """
    if not divided:
        rate = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)  # of a true answer
        bar = 4 / epsilon if printed else 4 * math.sqrt(rate * (1 - rate)) / (2 * rate - 1)
        return _published(population, k, batch_size(population.n, epsilon), rate, bar, rng).above(threshold)
    bar = 4 / epsilon if printed else 4 * math.sqrt(OLH(epsilon=epsilon, domain=2).variance(1))
    return _divided(population, k, epsilon, bar, rng, asked).above(threshold)


def _published(population: BitPopulation, k: int, batch: int, rate: float, bar: float, rng: Random) -> FoundValues:
    """`bar` is the threshold of a share, times the root of how many reports there are."""
    draw = generator(rng)
    people = draw.permutation(population.people)
    prefixes, asked_before = np.zeros(1, dtype=population.values.dtype), np.zeros(1, dtype=np.int64)
    for length in range(CHARACTER, population.bits + CHARACTER, CHARACTER):
        stop = min(length, population.bits)
        bits = stop - (length - CHARACTER)
        found: list[tuple[float, int, int]] = []
        codes = population.segment(0, stop)
        for prefix, offset in zip(prefixes.tolist(), asked_before.tolist(), strict=True):
            batches = (population.n - offset) // batch
            if batches < 1:
                continue
            # How many of each batch hold each child, and how many of it say yes.
            children = (codes >> bits) == prefix if codes.dtype == object else codes >> np.uint64(bits) == prefix
            child = np.full(len(codes), -1)
            child[children] = (codes[children] & ((1 << bits) - 1)).astype(np.int64)
            held = child[people[offset : offset + batches * batch]]
            cells = np.repeat(np.arange(batches), batch)[held >= 0] * (1 << bits) + held[held >= 0]
            holders = np.bincount(cells, minlength=batches << bits).reshape(batches, 1 << bits)
            yes = draw.binomial(batch, 1 - rate, size=holders.shape)
            some = holders > 0
            yes[some] = draw.binomial(holders[some], rate) + draw.binomial(batch - holders[some], 1 - rate)
            reports = batch * np.arange(1, batches + 1)[:, None]
            shares = (np.cumsum(yes, axis=0) / reports - (1 - rate)) / (2 * rate - 1)
            above = shares > bar / np.sqrt(reports)
            for more in np.flatnonzero(above.any(axis=0)):
                first = int(above[:, more].argmax())
                told = shares[-1 if stop == population.bits else first, more]  # in the end, by everyone who is left
                found.append((float(told), (prefix << bits) | int(more), offset + (first + 1) * batch))
        found.sort(reverse=True)
        if not found:
            return FoundValues([], np.zeros(0))
        prefixes = np.array([code for _, code, _ in found[:k]], dtype=population.values.dtype)
        asked_before = np.array([used for _, _, used in found[:k]])
    return best_values(prefixes, np.array([share for share, _, _ in found[:k]]), k)


def _divided(population: BitPopulation, k: int, epsilon: float, bar: float, rng: Random, asked: Asked) -> FoundValues:
    levels = -(-population.bits // CHARACTER)
    batch = batch_size(population.n, epsilon)
    people = generator(rng).permutation(population.people)
    prefixes: NDArray[Any] = np.zeros(1, dtype=population.values.dtype)
    shares = np.ones(1)
    for level in range(levels):
        stop = min((level + 1) * CHARACTER, population.bits)
        candidates = Extensions(prefixes, stop - level * CHARACTER).listed()
        codes = population.segment(0, stop)
        most = len(people) // (levels - level)
        supports, n = np.zeros(len(candidates), dtype=np.int64), 0
        while n < most:
            size = min(batch, most - n)
            answers = asked(codes, people[n : n + size], epsilon, rng)
            supports += answers.support(candidates.astype(codes.dtype))
            n += size
            shares = (supports / n - answers.q) / (answers.p - answers.q)
            if (shares > bar / math.sqrt(n)).sum() >= k and level + 1 < levels:
                break
        above = np.flatnonzero(shares > bar / math.sqrt(max(1, n)))
        chosen = above[np.argsort(-shares[above])][:k]
        prefixes, shares, people = candidates[chosen], shares[chosen], people[n:]
        if not len(prefixes):
            break
    return best_values(prefixes, shares, k)
