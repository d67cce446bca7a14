"""The populations of chapter 4: each person holds one string of bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hubbub.data.counts import Counts, domains, names, words
from hubbub.data.synthetic import geometric
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.population import BitPopulation
from hubbub_papers.harness import Context

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
