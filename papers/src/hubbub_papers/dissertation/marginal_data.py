"""The people of chapter 6: baskets as binary records of the most bought items, and census records with few values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import comb

import numpy as np

from hubbub.consistency.marginals import Attributes, Codes
from hubbub.data.baskets import Baskets, retail
from hubbub.data.records import ADULT_COLUMNS, MAIN_COLUMNS, Table, adult
from hubbub.data.records import census as census_records
from hubbub.random.source import Random

US_COLUMNS = (*MAIN_COLUMNS, "enrolled")
"""As many columns as the paper has of the US data: 16."""


@dataclass(frozen=True, eq=False)
class KnownRecords:
    """People whose records are known.

    Parameters
    ----------
    name
        Their name in a table.
    records, sizes
        A row of codes for each person, a code for each attribute, and the number of values of each attribute.
    note
        What differs from the paper's data.
    """

    name: str
    records: Codes
    sizes: tuple[int, ...]
    note: str

    def resampled(self, n: int, rng: Random) -> KnownRecords:
        """Draw n of these people: without replacement if there are enough of them."""
        everyone = len(self.records)
        rows = rng.permutation(everyone)[:n] if n <= everyone else rng.below(everyone, n)
        drawn = "" if n <= everyone else f"; drawn with replacement from {everyone:,}"
        return replace(self, records=self.records[rows], note=self.note + drawn)


@cache
def _baskets() -> Baskets:
    return retail()


def top_items(m: int) -> KnownRecords:
    """A binary record for each Belgian basket: which of the m most bought items it holds."""
    baskets = _baskets()
    top = np.argsort(-baskets.support(), kind="stable")[:m]
    place = np.full(baskets.domain, -1)
    place[top] = np.arange(m)
    person, column = np.repeat(np.arange(baskets.n), baskets.sizes), place[baskets.items]
    records = np.zeros((baskets.n, m), dtype=np.int64)
    records[person[column >= 0], column[column >= 0]] = 1
    return KnownRecords(f"baskets, m = {m}", records, (2,) * m, "other data: Belgian baskets, for POS and Kosarak")


@cache
def _adult() -> Table:
    return adult()


@cache
def _census(columns: tuple[str, ...]) -> Table:
    return census_records(columns=columns)


@cache
def census(values: int = 3, columns: tuple[str, ...] = ADULT_COLUMNS) -> KnownRecords:
    """Adult, each column cut to `values` values: numbers at quantiles, words to the most common ones and the rest."""
    note = f"Adult, numbers cut at quantiles and words to the most common, {values} values at most"
    return _cut(_adult(), values, columns, "Adult", note)


@cache
def kdd_census(values: int = 3, columns: tuple[str, ...] = US_COLUMNS) -> KnownRecords:
    """The census of 1994 and 1995, cut in the same way, instead of the US data."""
    note = f"other data: the KDD census for US, cut at quantiles and to the most common, {values} values at most"
    return _cut(_census(columns), values, columns, "census", note)


def _cut(table: Table, values: int, columns: tuple[str, ...], name: str, note: str) -> KnownRecords:
    codes, sizes = [], []
    for column in (table[name] for name in columns):
        if column.dtype.kind in "if":
            borders = np.unique(np.quantile(column, np.arange(1, values) / values, method="inverted_cdf"))
            cut = np.searchsorted(borders, column, side="left")
        else:
            _, cut = np.unique(column, return_inverse=True)
            rank = np.argsort(np.argsort(-np.bincount(cut), kind="stable"))
            cut = np.minimum(rank, values - 1)[cut]
        _, cut = np.unique(cut, return_inverse=True)
        codes.append(cut)
        sizes.append(int(cut.max()) + 1)
    return KnownRecords(f"{name}, m = {len(columns)}", np.stack(codes, axis=1), tuple(sizes), note)


def some_queries(m: int, k: int, number: int, rng: Random) -> list[Attributes]:
    """`number` different random sets of k of m attributes, or all sets if there are no more."""
    if comb(m, k) <= number:
        return list(combinations(range(m), k))
    queries: set[Attributes] = set()
    while len(queries) < number:
        queries.add(tuple(sorted(rng.permutation(m)[:k].tolist())))
    return sorted(queries)
