"""Journeys without an id: taxi trips, and flights without a tail number."""

from __future__ import annotations

import csv
import os

import numpy as np

from hubbub.core.errors import needs
from hubbub.data.fetch import fetch
from hubbub.data.table import Table

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
