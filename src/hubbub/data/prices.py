"""Daily prices of five stocks, and their moves (up, down or neither) in windows of equally many days."""

from __future__ import annotations

import csv
import gzip
import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.random import Random
from hubbub.core.ternary import Ternary
from hubbub.data.fetch import fetch
from hubbub.data.table import Table

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
        sao2-exsub, section 7.1.
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
