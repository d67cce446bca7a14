"""Searches by segments of values: HASH, the multiple channel method, and SPM, the segment pairs method."""

import math
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.hashing import bucket, hash32
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.answers import DrawnAnswers
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation, Extensions, FoundValues, best_values
from hubbub_papers.baselines.heavy_hitters.prefixes import MakeAnswers

_PRIME = (1 << 61) - 1


def cuts_of(bits: int, segments: int) -> list[tuple[int, int]]:
    """The start and the end of each of `segments` segments of nearly equal length."""
    ends = [-(-bits * segment // segments) for segment in range(segments + 1)]
    return list(pairwise(ends))


def short_codes(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Values of any length as codes of 61 bits for a hash function: their remainders modulo a prime."""
    return np.asarray(values % (_PRIME if values.dtype == object else np.uint64(_PRIME)), dtype=np.uint64)


FINAL_SHARE = 0.1
"""The part of divided people that tests the found values (section 4.4.2)."""


def channel_blocks(bits: int, k: int, query_limit: int) -> int:
    """The smallest number of blocks of a value for which k^1.5 channels keep the limit on queries."""
    channels = math.ceil(k**1.5)
    for blocks in range(1, bits + 1):
        if sum(channels << (stop - start) for start, stop in cuts_of(bits, blocks)) <= query_limit:
            return blocks
    return bits


def multiple_channels(
    population: BitPopulation,
    *,
    k: int,
    epsilon: float,
    query_limit: int,
    rng: Random,
    make_answers: MakeAnswers = DrawnAnswers,
    divided: bool = False,
    threshold: float | None = None,
) -> FoundValues:
    """The k most common values by HASH: k^1.5 channels, OLH, blocks as long as the queries allow (section 4.4.1).

    A person reports their channel and one block of their value. In each channel the server takes the likeliest value of
    every block, and assembles a string from these; the strings are then tested.

    If `divided`, a tenth of the people tests the strings with the whole epsilon, and the others spend it on their block
    (section 4.4.2); else everyone spends half on each. `query_limit` is the largest number of frequencies that the
    server estimates. With a `threshold`, only values with an estimated share of at least this are returned.

    References
    ----------
    T. Wang, 2021, section 4.1.2; Bassily and Smith, 2015.
    """
    channels = math.ceil(k**1.5)
    seed = rng.uint64(1)
    own = bucket(hash32(seed, short_codes(population.values)), channels).astype(np.uint64)
    spent = epsilon if divided else epsilon / 2
    final, reporting = population.split([FINAL_SHARE, 1 - FINAL_SHARE], rng) if divided else (population, population)
    cuts = cuts_of(population.bits, channel_blocks(population.bits, k, query_limit))
    strings = np.zeros(channels, dtype=population.values.dtype)
    for group, (start, stop) in zip(reporting.split([1.0] * len(cuts), rng), cuts, strict=True):
        width = np.uint64(stop - start)
        codes = (own << width) | population.segment(start, stop)
        answers = make_answers(codes, group.people, spent, rng)
        best = answers.best_of_each(Extensions(np.arange(channels), stop - start))
        block = best & np.uint64((1 << (stop - start)) - 1)
        if strings.dtype == object:
            strings = (strings << (stop - start)) | block.astype(object)
        else:
            strings = (strings << width) | block
    values = np.unique(strings)
    tested = make_answers(final.values, final.people, spent, rng)
    return best_values(values, tested.shares(tested.support(values)), k).above(threshold)


SHARES = (0.45, 0.45, 0.1)
"""The parts of divided people that report a segment, a pair of segments, and the whole value."""
Pairs = dict[tuple[int, int], NDArray[np.float64]]
"""For two segments, the estimated share of each pair of their candidates."""
Segments = list[NDArray[Any]]
"""The candidates of each segment."""


def pair_segments(bits: int, k: int, query_limit: int) -> int:
    """The fewest segments for which their values, and the pairs of k candidates of each, keep the limit on queries."""
    for segments in range(2, bits + 1):
        values = sum(1 << (stop - start) for start, stop in cuts_of(bits, segments))
        if values + segments * (segments - 1) // 2 * k * k <= query_limit:
            return segments
    return bits


def segment_pairs(
    population: BitPopulation,
    *,
    k: int,
    epsilon: float,
    query_limit: int,
    rng: Random,
    make_answers: MakeAnswers = DrawnAnswers,
    divided: bool = False,
    threshold: float | None = None,
) -> FoundValues:
    """The k most common values by SPM, with OLH, k candidates a segment, and segments as long as the queries allow.

    Segment pairs are taken in the order of their estimated shares, as many for each two segments, until more than k
    values can be put together whose pairs are all among them (section 4.4.1). These are then tested.

    If `divided`, 45% of the people report one segment, 45% two as one string, and 10% the whole value, each with the
    whole epsilon (section 4.4.2). Otherwise everyone reports two segments and the whole value, with a third of epsilon
    each.

    References
    ----------
    T. Wang, 2021, section 4.1.1; Fanti, Pihur and Erlingsson, 2016.
    """
    cuts = cuts_of(population.bits, pair_segments(population.bits, k, query_limit))
    if divided:
        segment_people, pair_people, final = population.split(SHARES, rng)
        candidates = _segments_alone(segment_people, cuts, k, epsilon, rng, make_answers)
        pairs = _pairs_alone(pair_people, cuts, candidates, epsilon, rng, make_answers)
    else:
        final, epsilon = population, epsilon / 3
        candidates, pairs = _both(population, cuts, k, epsilon, rng, make_answers)
    lengths = [stop - start for start, stop in cuts]
    values = _put_together(candidates, pairs, lengths, k, population.values.dtype, query_limit)
    tested = make_answers(final.values, final.people, epsilon, rng)
    return best_values(values, tested.shares(tested.support(values)), k).above(threshold)


def _segments_alone(
    people: BitPopulation, cuts: list[tuple[int, int]], k: int, epsilon: float, rng: Random, make_answers: MakeAnswers
) -> Segments:
    groups = people.split([1.0] * len(cuts), rng)
    return [
        make_answers(people.segment(*cut), group.people, epsilon, rng).best(Extensions.everything(cut[1] - cut[0]), k)[
            0
        ]
        for group, cut in zip(groups, cuts, strict=True)
    ]


def _pairs_alone(
    people: BitPopulation,
    cuts: list[tuple[int, int]],
    candidates: Segments,
    epsilon: float,
    rng: Random,
    make_answers: MakeAnswers,
) -> Pairs:
    couples = list(combinations(range(len(cuts)), 2))
    shares = {}
    for group, (i, j) in zip(people.split([1.0] * len(couples), rng), couples, strict=True):
        width = np.uint64(cuts[j][1] - cuts[j][0])
        codes = (people.segment(*cuts[i]) << width) | people.segment(*cuts[j])
        answers = make_answers(codes, group.people, epsilon, rng)
        every = ((candidates[i][:, None] << width) | candidates[j][None, :]).ravel()
        shares[i, j] = answers.shares(answers.support(every)).reshape(len(candidates[i]), -1)
    return shares


def _both(
    people: BitPopulation, cuts: list[tuple[int, int]], k: int, epsilon: float, rng: Random, make_answers: MakeAnswers
) -> tuple[Segments, Pairs]:
    """Candidates and pairs if everyone reports two segments in turn.

    The share of a pair is the mean, over people, of the product of the estimates from the two reports.
    """
    couples = list(combinations(range(len(cuts)), 2))
    groups = dict(zip(couples, people.split([1.0] * len(couples), rng), strict=True))
    candidates, supporters = [], {}
    for segment, cut in enumerate(cuts):
        own_couples = [couple for couple in couples if segment in couple]
        reporting = np.concatenate([groups[couple].people for couple in own_couples])
        answers = make_answers(people.segment(*cut), reporting, epsilon, rng)
        codes, _ = answers.best(Extensions.everything(cut[1] - cut[0]), k)
        candidates.append(codes)
        ends = np.cumsum([groups[couple].n for couple in own_couples])[:-1]
        for couple, part in zip(own_couples, np.split(answers.supporters(codes), ends, axis=1), strict=True):
            supporters[couple, segment] = np.packbits(part, axis=1)
    p, q = answers.p, answers.q
    shares = {}
    for i, j in couples:
        left, right = supporters[(i, j), i], supporters[(i, j), j]
        both = np.array([np.bitwise_count(row & right).sum(axis=1, dtype=np.int64) for row in left])
        alone = (np.bitwise_count(half).sum(axis=1, dtype=np.int64) for half in (left, right))
        n = max(1, groups[i, j].n)
        first, second = (np.asarray(counts / n) for counts in alone)
        shares[i, j] = (both / n - q * (first[:, None] + second[None, :]) + q * q) / (p - q) ** 2
    return candidates, shares


def _put_together(
    candidates: Segments, pairs: Pairs, lengths: list[int], k: int, kind: Any, query_limit: int
) -> NDArray[Any]:
    """The values all of whose pairs are among the best t of their two segments, for the smallest t with more than k."""
    most = max(shares.size for shares in pairs.values())
    few, enough = k - 1, k
    while len(_linked(candidates, pairs, enough, k + 1)) <= k and enough < most:
        few, enough = enough, min(2 * enough, most)
    while enough - few > 1:
        middle = (few + enough) // 2
        if len(_linked(candidates, pairs, middle, k + 1)) > k:
            enough = middle
        else:
            few = middle
    rows = _linked(candidates, pairs, enough, query_limit)
    values = np.zeros(len(rows), dtype=kind)
    wide = values.dtype == object
    for segment, length in enumerate(lengths):
        part = candidates[segment][rows[:, segment]]
        values = (values << length) | part.astype(object) if wide else (values << np.uint64(length)) | part
    return values


_BLOCK = 4096
"""So many beginnings of values are continued at once."""


def _linked(candidates: Segments, pairs: Pairs, t: int, most: int) -> NDArray[np.int64]:
    """A row for each value whose pairs are all among the best t: the index of its candidate in each segment.

    The search goes depth first, a block of beginnings at a time, and ends when there are `most` values.
    """
    linked = {couple: shares >= np.sort(shares, axis=None)[-min(t, shares.size)] for couple, shares in pairs.items()}
    waiting = [np.arange(len(candidates[0]))[:, None]]
    found, count = [np.zeros((0, len(candidates)), dtype=np.int64)], 0
    while waiting and count < most:
        rows = waiting.pop()
        segment = rows.shape[1]
        if segment == len(candidates):
            found.append(rows)
            count += len(rows)
            continue
        fits = linked[0, segment][rows[:, 0]]
        for before in range(1, segment):
            fits &= linked[before, segment][rows[:, before]]
        stems, more = np.nonzero(fits)
        longer = np.column_stack([rows[stems], more])
        waiting += [longer[start : start + _BLOCK] for start in range(0, len(longer), _BLOCK)][::-1]
    return np.concatenate(found)[:most]
