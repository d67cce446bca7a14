"""The census of 1994 and 1995 (KDD): many people, many columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.data.fetch import fetch
from hubbub.data.table import Table

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


def _column(column: NDArray[Any]) -> NDArray[Any]:
    """Words as text, without the blanks before them and the full stops after incomes."""
    if column.dtype.kind != "S":
        return column
    labels, codes = np.unique(column, return_inverse=True)
    return np.array([label.decode("ascii").strip(" .") for label in labels])[codes]
