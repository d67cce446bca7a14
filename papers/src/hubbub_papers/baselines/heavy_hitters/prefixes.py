"""Searches by growing prefixes: PEM (for the sweeps of chapter 4), and PEM1, which adds one bit at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.answers import DrawnAnswers, GroupAnswers
from hubbub_papers.baselines.heavy_hitters.candidates import Extensions
from hubbub_papers.baselines.heavy_hitters.found_values import FoundValues, best_values
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation

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

    Parameters
    ----------
    population
        The people.
    lengths
        The length of the prefixes that each group reports; the last is that of the whole values.
    k, epsilon, rng
        As in `hubbub.simulate.find_top`.
    make_answers
        The class that simulates the answers of a group.
    threshold
        If given, only prefixes with an estimated share of at least this are extended.
    known
        Whether the last group extends the true prefixes, as in Table 4.3.
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

    Parameters
    ----------
    population, k, epsilon, rng, make_answers, threshold
        As in `search_prefixes`.
    divided
        If true, every report spends the whole epsilon, and the last group estimates, as chapter 4 runs it. If false,
        everyone spends half on a prefix and half on the whole value, from which shares are estimated, as published.

    References
    ----------
    Dissertation, section 4.2.3; Bassily, Nissim, Stemmer and Thakurta, 2017.
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
