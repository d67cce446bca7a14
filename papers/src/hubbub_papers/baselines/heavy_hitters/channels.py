"""HASH, the multiple channel method: the value of each channel is assembled from blocks."""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.hashing import bucket, hash32
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.answers import DrawnAnswers
from hubbub_papers.baselines.heavy_hitters.candidates import Extensions
from hubbub_papers.baselines.heavy_hitters.found_values import FoundValues, best_values
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation
from hubbub_papers.baselines.heavy_hitters.prefixes import MakeAnswers
from hubbub_papers.baselines.heavy_hitters.segments import cuts_of, short_codes

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

    Parameters
    ----------
    population, k, epsilon, rng, make_answers
        As of `search_prefixes`.
    query_limit
        The largest number of frequencies that the server estimates.
    divided
        Whether a tenth of the people tests the strings with the whole epsilon, and the others spend it on their block
        (section 4.4.2); else everyone spends half on each.
    threshold
        If given, only values with an estimated share of at least this are returned.

    References
    ----------
    Dissertation, section 4.1.2; Bassily and Smith, 2015.
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
    found = best_values(values, tested.shares(tested.support(values)), k)
    return found.above(threshold)
