"""Searches by growing prefixes: PEM (for the sweeps of chapter 4), PEM1, which adds one bit at a time, and PrivTrie."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.answers import DrawnAnswers, GroupAnswers
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation, Extensions, FoundValues, best_values

MakeAnswers = Callable[..., GroupAnswers]
"""Makes the answers of people: `DrawnAnswers` or `ReportedAnswers`."""


def search_prefixes(
    population: BitPopulation,
    lengths: Sequence[int],
    *,
    k: int,
    epsilon: float,
    rng: Random,
    make_answers: MakeAnswers = DrawnAnswers,
    threshold: float | None = None,
    known: bool = False,
) -> FoundValues:
    """The k most common values by Algorithm 1: a group of people for each length of prefix.

    Each group reports prefixes of one of the `lengths`; the last is that of the whole values. With a `threshold`, only
    prefixes with an estimated share of at least this are extended. If `known`, the last group extends the true
    prefixes, as in Table 4.3.
    """
    prefixes, length = Extensions.everything(0).prefixes, 0
    shares = np.ones(1)
    for group, longer in zip(population.split([1.0] * len(lengths), rng), lengths, strict=True):
        if known and longer == population.bits and length:
            truth = [value >> (population.bits - length) for value in population.ranked(k)]
            prefixes = np.unique(np.array(truth, dtype=prefixes.dtype))
        answers = make_answers(group.segment(0, longer), group.people, epsilon, rng)
        wide = longer > 64 and prefixes.dtype != object
        candidates = Extensions(prefixes.astype(object) if wide else prefixes, longer - length)
        prefixes, supports = answers.best(candidates, k)
        shares, length = answers.shares(supports), longer
        if threshold is not None:
            prefixes, shares = prefixes[shares >= threshold], shares[shares >= threshold]
            if not len(prefixes):
                return FoundValues([], shares)
    return best_values(prefixes, shares, k)


def pem1(
    population: BitPopulation,
    *,
    k: int,
    epsilon: float,
    rng: Random,
    make_answers: MakeAnswers = DrawnAnswers,
    divided: bool = True,
    threshold: float | None = None,
) -> FoundValues:
    """The k most common values, found one bit at a time: as many groups as there are bits after the first log2(k).

    If `divided`, every report spends the whole epsilon, and the last group estimates, as chapter 4 runs it. Otherwise
    everyone spends half on a prefix and half on the whole value, from which shares are estimated, as published.

    References
    ----------
    T. Wang, 2021, section 4.2.3; Bassily, Nissim, Stemmer and Thakurta, 2017.
    """
    lengths = range(min(math.ceil(math.log2(k)) + 1, population.bits), population.bits + 1)
    spent = epsilon if divided else epsilon / 2
    candidates = search_prefixes(
        population, lengths, k=k, epsilon=spent, rng=rng, make_answers=make_answers, threshold=threshold
    )
    if divided or not candidates.values:
        return candidates
    values = np.array(candidates.values, dtype=population.values.dtype)
    final = make_answers(population.values, population.people, epsilon / 2, rng)
    return best_values(values, final.shares(final.support(values)), k)


CHARACTER = 8
"""The bits of a character: an alphabet of 2^8 (section 4.4.2)."""


def batch_size(n: int, epsilon: float) -> int:
    """The number of people in a batch: max(n/1000, 800/eps^2), at most n."""
    return min(n, math.ceil(max(n / 1000, 800 / epsilon**2)))


def priv_trie(
    population: BitPopulation,
    *,
    k: int,
    epsilon: float,
    rng: Random,
    make_answers: MakeAnswers = DrawnAnswers,
    divided: bool = False,
    printed: bool = True,
    threshold: float | None = None,
) -> FoundValues:
    """Up to k common values by PrivTrie, those with the largest estimates.

    A prefix counts as common when its estimated count is above 4 n / (eps sqrt(N)), where N people have reported on it
    so far, and is then extended by a character. At each length only the k prefixes with the largest estimates are
    extended, so that the search ends even if many prefixes pass the threshold by chance. The final step that makes
    estimates consistent is left out, as in chapter 4.

    If `divided`, everyone reports once, by OLH, the prefix of one length, with the whole epsilon; a length takes
    batches until k of its prefixes are above the threshold, or its part of the people is used up. Otherwise, as
    published, a person answers yes or no for many prefixes, none of which begins with another, by randomised response
    with half of epsilon each: a person's value begins with at most one of them.

    If `printed`, the eps of the threshold is all that a person spends. As a person spends half of it on one of many
    prefixes, this is two standard deviations, which is often passed by chance. Otherwise the threshold is four standard
    deviations.

    References
    ----------
    N. Wang et al., 2018; T. Wang, 2021, sections 4.2.4 and 4.4.2.
    """
    if not divided:
        rate = math.exp(epsilon / 2) / (math.exp(epsilon / 2) + 1)  # of a true answer
        bar = 4 / epsilon if printed else 4 * math.sqrt(rate * (1 - rate)) / (2 * rate - 1)
        return _published(population, k, batch_size(population.n, epsilon), rate, bar, rng).above(threshold)
    bar = 4 / epsilon if printed else 4 * math.sqrt(OLH(epsilon=epsilon, domain=2).variance(1))
    return _divided(population, k, epsilon, bar, rng, make_answers).above(threshold)


def _published(population: BitPopulation, k: int, batch: int, rate: float, bar: float, rng: Random) -> FoundValues:
    """The undivided search. `bar` is the threshold of a share, times the square root of the number of reports."""
    draw = generator(rng)
    people = draw.permutation(population.people)
    prefixes, people_used = np.zeros(1, dtype=population.values.dtype), np.zeros(1, dtype=np.int64)
    for length in range(CHARACTER, population.bits + CHARACTER, CHARACTER):
        stop = min(length, population.bits)
        bits = stop - (length - CHARACTER)
        passed: list[tuple[float, int, int]] = []  # estimated share, prefix, people used
        codes = population.segment(0, stop)
        for prefix, offset in zip(prefixes.tolist(), people_used.tolist(), strict=True):
            batches = (population.n - offset) // batch
            if batches < 1:
                continue
            # The number of people of each batch who hold each child, and the number who answer yes.
            children = (codes >> bits) == prefix if codes.dtype == object else codes >> np.uint64(bits) == prefix
            child = np.full(len(codes), -1)
            child[children] = (codes[children] & ((1 << bits) - 1)).astype(np.int64)
            held = child[people[offset : offset + batches * batch]]
            cells = np.repeat(np.arange(batches), batch)[held >= 0] * (1 << bits) + held[held >= 0]
            holders = np.bincount(cells, minlength=batches << bits).reshape(batches, 1 << bits)
            yes = draw.binomial(batch, 1 - rate, size=holders.shape)
            held_cells = holders > 0
            held_by = holders[held_cells]
            yes[held_cells] = draw.binomial(held_by, rate) + draw.binomial(batch - held_by, 1 - rate)
            reports = batch * np.arange(1, batches + 1)[:, None]
            shares = (np.cumsum(yes, axis=0) / reports - (1 - rate)) / (2 * rate - 1)
            above = shares > bar / np.sqrt(reports)
            for more in np.flatnonzero(above.any(axis=0)):
                first = int(above[:, more].argmax())
                share = shares[-1 if stop == population.bits else first, more]  # the last length uses all people left
                passed.append((float(share), (prefix << bits) | int(more), offset + (first + 1) * batch))
        passed.sort(reverse=True)
        if not passed:
            return FoundValues([], np.zeros(0))
        prefixes = np.array([code for _, code, _ in passed[:k]], dtype=population.values.dtype)
        people_used = np.array([used for _, _, used in passed[:k]])
    return best_values(prefixes, np.array([share for share, _, _ in passed[:k]]), k)


def _divided(
    population: BitPopulation, k: int, epsilon: float, bar: float, rng: Random, make_answers: MakeAnswers
) -> FoundValues:
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
            answers = make_answers(codes, people[n : n + size], epsilon, rng)
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
