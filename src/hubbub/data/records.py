"""Data sets that come as records in named columns: the census of 1994, flights, and the census of 1994 and 1995."""

import csv
import io
import math
import os
import zipfile
from collections.abc import Iterator, Sequence

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Ints
from hubbub.data.counts import Counts
from hubbub.data.packages import fetch


class Table(Columns):
    """A read-only dictionary of columns of equal length.

    Columns of words are string arrays, columns of whole numbers int64. A column of numbers with missing values is
    float64, with NaN for a missing value. A missing word is the label `missing_label`.

    Parameters
    ----------
    columns
        The arrays by name.
    missing_label
        The label of a missing word.

    Example:
        >>> people = Table({"town": np.array(["Rye", "?", "Rye"]), "age": np.array([31, 64, 7])})
        >>> people.n, list(people), people["age"].tolist()
        (3, ['town', 'age'], [31, 64, 7])
        >>> people.missing("town")
        1
    """

    def __init__(self, columns: Columns, *, missing_label: str = "?") -> None:
        self._columns: dict[str, Array] = {}
        self._missing = missing_label
        for name, values in columns.items():
            column = np.array(values)
            if column.ndim != 1 or column.dtype.kind not in "UifM":
                raise InvalidValue(name, values, "a list of strings, numbers or times")
            column.flags.writeable = False
            self._columns[name] = column
        if len({column.size for column in self._columns.values()}) != 1:
            raise InvalidValue("columns", list(columns), "at least one column, all of the same length")

    @property
    def n(self) -> int:
        """The number of rows."""
        return next(iter(self._columns.values())).size

    def codes(self, name: str) -> tuple[Array, Ints]:
        """The distinct values of a column in order, and the code of each row among them.

        Example:
            >>> labels, codes = Table({"town": np.array(["Rye", "?", "Rye"])}).codes("town")
            >>> labels.tolist(), codes.tolist()
            (['?', 'Rye'], [1, 0, 1])
        """
        labels, codes = np.unique(self[name], return_inverse=True)
        return labels, codes.astype(np.int64)

    def counts(self, name: str) -> Counts:
        """The number of rows with each value of a column; the codes are those of `codes`.

        Example:
            >>> Table({"town": np.array(["Rye", "?", "Rye"])}).counts("town").frequencies.round(2).tolist()
            [0.33, 0.67]
        """
        labels, codes = self.codes(name)
        return Counts(labels.astype(np.str_), np.bincount(codes, minlength=labels.size))

    def missing(self, name: str) -> int:
        """The number of rows without a value in a column.

        Example:
            >>> Table({"delay": np.array([1.0, np.nan])}).missing("delay")
            1
        """
        column = self[name]
        if column.dtype.kind == "U":
            return int((column == self._missing).sum())
        return int(np.isnan(column).sum()) if column.dtype.kind == "f" else 0

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            raise KeyError(f"{name}: there are the columns {', '.join(self._columns)}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Table(n={self.n}, columns={list(self)})"


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


def _flight_column(column: Array) -> Array:
    if column.dtype == "U19":
        return column.astype("datetime64[s]")
    if column.dtype == "U5":
        return np.array([math.nan if value == "NA" else float(value) for value in column.tolist()])
    return column


CENSUS_COLUMNS = (
    *("age", "class_of_worker", "industry_code", "occupation_code", "education", "wage_per_hour", "enrolled"),
    *("marital_status", "industry", "occupation", "race", "hispanic_origin", "sex", "union_member"),
    *("reason_for_unemployment", "employment", "capital_gains", "capital_losses", "dividends", "tax_filer_status"),
    *("previous_region", "previous_state", "household", "household_summary", "instance_weight", "migration_msa"),
    *("migration_region", "migration_within_region", "same_house_a_year_ago", "migration_sunbelt"),
    *("persons_for_employer", "family_under_18", "father_country", "mother_country", "self_country", "citizenship"),
    *("own_business", "veterans_questionnaire", "veterans_benefits", "weeks_worked", "year", "income"),
)
"""All columns, in the order of the source."""

MAIN_COLUMNS = (
    *("age", "class_of_worker", "industry_code", "occupation_code", "education", "wage_per_hour", "marital_status"),
    *("race", "sex", "capital_gains", "capital_losses", "dividends", "persons_for_employer", "weeks_worked", "income"),
)
"""The columns that are read by default."""

_NUMBERS = {
    *("age", "industry_code", "occupation_code", "wage_per_hour", "capital_gains", "capital_losses", "dividends"),
    *("persons_for_employer", "own_business", "veterans_benefits", "weeks_worked", "year"),
}
_WIDEST = "S48"


def census(*, columns: Sequence[str] = MAIN_COLUMNS, cache: str | os.PathLike[str] | None = None) -> Table:
    """The census income data set: 299,285 people, the 199,523 training rows first, then the 99,762 test rows.

    A missing word is the label "?", as in the source. All 42 columns take a gigabyte of memory.

    Parameters
    ----------
    columns
        The columns to read, of `CENSUS_COLUMNS`.
    cache
        As in `fetch`.

    Example:
        >>> census(columns=["aeg"])
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: columns: got ['aeg']; allowed: some of age, class_of_worker, ...
    """
    names = list(columns)
    if not names or len(set(names)) < len(names) or not set(names) <= set(CENSUS_COLUMNS):
        raise InvalidValue("columns", names, f"some of {', '.join(CENSUS_COLUMNS)}")
    folder = fetch("census", cache=cache)
    files = ("census_income_1994_1995_train.csv", "census_income_1994_1995_test.csv")
    places = [CENSUS_COLUMNS.index(name) for name in names]
    types = [(name, _type(name)) for name in names]
    parts = [
        np.loadtxt(folder / name, delimiter=",", dtype=types, usecols=places, comments=None, encoding="ascii")
        for name in files
    ]
    return Table({name: _column(np.concatenate([part[name] for part in parts])) for name in names})


def _type(name: str) -> str:
    return "i8" if name in _NUMBERS else "f8" if name == "instance_weight" else _WIDEST


def _column(column: Array) -> Array:
    """Words as text, without the blanks before them and the full stops after incomes."""
    if column.dtype.kind != "S":
        return column
    labels, codes = np.unique(column, return_inverse=True)
    return np.array([label.decode("ascii").strip(" .") for label in labels])[codes]
