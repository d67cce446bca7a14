"""Data sets that come as records, one row a person or an event: the census of 1994, and flights."""

from __future__ import annotations

import csv
import io
import math
import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.data.fetch import fetch
from hubbub.data.table import Table

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
_ADULT_NUMBERS = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
_FLIGHT_TYPES = {
    **dict.fromkeys(("carrier", "tailnum", "origin", "dest"), "U6"),
    **dict.fromkeys(("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"), "U5"),
    "time_hour": "U19",  # 2013-01-01T10:00:00, the Z cut
}


def adult(*, cache: str | os.PathLike[str] | None = None) -> Table:
    """The Adult data set: 48,842 people in 15 columns, the 32,561 training rows first, then the 16,281 test rows.

    A missing word is the label "?", as in the source. `adult().codes("education")` gives the column as codes.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    folder = fetch("adult", cache=cache)
    rows: list[list[str]] = []
    for name in ("adult.data", "adult.test"):
        with (folder / name).open(encoding="ascii", newline="") as file:
            # The test file begins with a line of remarks, and both files end with an empty line.
            rows += [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(ADULT_COLUMNS)]
    columns = dict(zip(ADULT_COLUMNS, zip(*rows, strict=True), strict=True))
    # The test file ends every line with a full stop, which would make the two incomes four.
    columns["income"] = tuple(value.rstrip(".") for value in columns["income"])
    return Table(
        {
            name: np.array(values, dtype=np.int64 if name in _ADULT_NUMBERS else np.str_)
            for name, values in columns.items()
        }
    )


def flights(*, cache: str | os.PathLike[str] | None = None) -> Table:
    """Flights that left New York City in 2013: 336,776 rows in 19 columns, in the order of the source.

    A missing tail number is the label "NA"; `flights().missing("tailnum")` is 2,512. Times and delays of flights that
    did not leave or arrive are NaN. `time_hour` is the planned departure in UTC, to the hour.

    Parameters
    ----------
    cache
        As in `fetch`.
    """
    path = fetch("flights", cache=cache) / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as raw:
        text = io.TextIOWrapper(raw, encoding="ascii")
        header = next(text).rstrip().split(",")
        # numpy's reader takes a tenth of the time of csv's. It cuts strings at the width of the type; none is wider.
        rows = np.loadtxt(text, delimiter=",", dtype=[(name, _FLIGHT_TYPES.get(name, "i8")) for name in header])
    return Table({name: _flight_column(rows[name]) for name in header}, missing_label="NA")


def _flight_column(column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype == "U19":
        return column.astype("datetime64[s]")
    if column.dtype == "U5":
        return np.array([math.nan if value == "NA" else float(value) for value in column.tolist()])
    return column
