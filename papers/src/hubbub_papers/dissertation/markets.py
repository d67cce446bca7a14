"""The people of chapter 5's figures: Belgian baskets instead of POS, British customers instead of Online."""

from __future__ import annotations

from functools import cache

import numpy as np

from hubbub.data.baskets import Baskets, independent_baskets, online_retail, retail
from hubbub_papers.dissertation.mining import KnownSets
from hubbub_papers.harness import Context

MANY = 529_000
"""The number of people after resampling the baskets: the paper's POS has half a million."""


@cache
def _baskets() -> Baskets:
    return retail()


@cache
def _histories() -> Baskets:
    return online_retail()


def belgian(context: Context) -> list[KnownSets]:
    """The baskets as they are, and resampled to the size of the paper's data; scaled down, a part of them."""
    baskets = _baskets()
    other = "other data: Belgian retail baskets over 16,470 items, for POS's 1,657 categories"
    n, many = context.size(baskets.n, least=500), context.size(MANY, least=1000)
    some = baskets if n == baskets.n else baskets[context.rng.child("part of the baskets").permutation(baskets.n)[:n]]
    more = baskets[context.rng.child("baskets resampled").below(baskets.n, many)]
    return [
        KnownSets(f"{n:,} baskets", some, other),
        KnownSets(f"{many:,} baskets", more, f"{other}; drawn with replacement from 88,162 baskets"),
    ]


def british(context: Context) -> KnownSets:
    """Customers' purchases of a year, resampled."""
    histories = _histories()
    n = context.size(500_000, least=1000)
    people = histories[context.rng.child("customers resampled").below(histories.n, n)]
    note = (
        "other data: 3,885 articles, for the paper's 2,603 categories"
        "; drawn with replacement from the purchases of 4,372 customers in a year"
    )
    return KnownSets(f"{n:,} customers", people, note)


def synthesized(context: Context) -> KnownSets:
    """Baskets of 1,000 items with exponential weights, drawn independently, five draws a basket."""
    n, items = context.size(1_800_000, least=1000), 1000
    weights = -np.log((np.arange(items) + 0.5) / items)
    baskets = independent_baskets(n, weights, 5.0, context.rng.child("synthesized baskets"))
    return KnownSets(f"{n:,} synthesized", baskets, "independent items of exponential weights, for IBM's generator")
