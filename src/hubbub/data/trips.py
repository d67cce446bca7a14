"""Journeys without an id (taxi trips, flights), and daily prices of stocks."""

import csv
import gzip
import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue, check_integer, needs
from hubbub.data.packages import fetch
from hubbub.data.records import Table
from hubbub.mechanisms.ternary.vectors import Ternary
from hubbub.random.source import Random

_TAXI_TYPES = {
    **dict.fromkeys(("row", "VendorID", "passenger_count", "RateCodeID", "payment_type"), "i8"),
    **dict.fromkeys(("tpep_pickup_datetime", "tpep_dropoff_datetime"), "datetime64[s]"),
    "store_and_fwd_flag": "U1",
}


def taxi(*, cache: str | os.PathLike[str] | None = None) -> Table:
    """Trips of New York City's yellow taxis in January 2015: 50,000 rows in 20 columns, in the order of the source.

    A sample of that month's trips in and around Manhattan, without an id of the taxi or the passenger. Places are in
    Web-Mercator metres, amounts in dollars (16 fares are below 0), times are local. The first column, which has no name
    in the source, is `row`.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    path = fetch("taxi", cache=cache) / "nyc_taxi.csv"
    with path.open(encoding="ascii", newline="") as file:
        rows = csv.reader(file)
        header = ["row", *next(rows)[1:]]
        columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    return Table({name: np.array(column, dtype=_TAXI_TYPES.get(name, "f8")) for name, column in columns.items()})


def flights3m(*, cache: str | os.PathLike[str] | None = None) -> Table:
    """Flights in the United States from January to June 2001: 3,000,000 rows in 5 columns, by time.

    `date` is local, to the minute; `delay` is in minutes, below 0 if early; `distance` in miles; `origin` and
    `destination` are airport codes. There is no id of the aircraft.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    with needs("analytics"):
        import pyarrow.parquet as pq
    columns = pq.read_table(fetch("flights3m", cache=cache) / "flights-3m.parquet")
    words = {}
    for name in ("origin", "destination"):
        coded = columns[name].combine_chunks().dictionary_encode()
        words[name] = np.array(coded.dictionary.to_pylist())[coded.indices.to_numpy()]
    return Table(
        {
            "date": columns["date"].to_numpy().astype("datetime64[m]"),
            "delay": columns["delay"].to_numpy(),
            "distance": columns["distance"].to_numpy(),
            **words,
        }
    )


NOT_STOCK = "resampled, not the paper's STOCK"
"""The label of results on `stock_moves`."""
DAYS, LEAST = 32, 0.02


def stocks(*, cache: str | os.PathLike[str] | None = None) -> Table:
    """Daily prices of AAPL, FB, GOOG, IBM and MSFT from March 2000 to March 2013: 12,154 rows in 8 columns.

    Rows are ordered by ticker, then by date. `adj_close` is the closing price, adjusted for splits and dividends.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    path = fetch("stocks", cache=cache) / "stocks.csv.gz"
    with gzip.open(path, "rt", encoding="ascii", newline="") as file:
        rows = csv.reader(file)
        header = [name.lower().replace(" ", "_") for name in next(rows)]
        columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    types = {"ticker": "U4", "date": "datetime64[D]", "volume": "i8"}
    return Table({name: np.array(column, dtype=types.get(name, "f8")) for name, column in columns.items()})


def price_moves(prices: ArrayLike, *, least: float = LEAST) -> NDArray[np.int8]:
    """The moves of each row of prices: 1 or -1 where it rose or fell by more than a share since its last move, else 0.

    The first move is measured from the first price.

    Parameters
    ----------
    prices
        Rows of prices, above 0.
    least
        The share that makes a move.

    Example:
        >>> price_moves([[100, 101, 103, 102, 100, 99, 110]]).tolist()
        [[0, 0, 1, 0, -1, 0, 1]]

    References:
        S. Wang, Li, Xin et al., 2023, section 7.1.
    """
    rows = np.atleast_2d(np.asarray(prices, dtype=np.float64))
    if rows.ndim != 2 or not np.isfinite(rows).all() or not (rows > 0).all():
        raise InvalidValue("prices", prices, "rows of finite numbers above 0")
    moves = np.zeros(rows.shape, dtype=np.int8)
    last = rows[:, 0].copy() if rows.shape[1] else np.empty(len(rows))
    for day in range(1, rows.shape[1]):
        today = rows[:, day]
        moves[:, day] = (today > last * (1 + least)).astype(np.int8) - (today < last * (1 - least))
        last = np.where(moves[:, day] != 0, today, last)
    return moves


def stock_moves(
    n: int | None = None,
    rng: Random | None = None,
    *,
    days: int = DAYS,
    least: float = LEAST,
    cache: str | os.PathLike[str] | None = None,
) -> Ternary:
    """The moves in consecutive windows of trading days, as ternary vectors: 379 windows of 32 days.

    The paper's STOCK has 7,136 tickers. These data are others, and fewer: results on them are labelled `NOT_STOCK`.

    Parameters
    ----------
    n, rng
        Draw n windows with replacement, by `rng`; by default all windows as they are.
    days, least
        The length of a window, and the share that makes a move (`price_moves`).
    cache
        As in `fetch`.
    """
    table = stocks(cache=cache)
    check_integer("days", days, 1, table.n)
    windows = []
    for ticker in np.unique(table["ticker"]):
        prices = table["adj_close"][table["ticker"] == ticker]
        windows.append(prices[: prices.size // days * days].reshape(-1, days))
    moves = Ternary.dense(price_moves(np.concatenate(windows), least=least))
    if n is None:
        return moves
    if rng is None:
        raise InvalidValue("rng", rng, "a Random to draw windows with")
    return moves[rng.below(len(moves), n)]
