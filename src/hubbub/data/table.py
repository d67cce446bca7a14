"""Records in named columns, one row a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.data.counts import Counts


class Table(Mapping[str, NDArray[Any]]):
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

    def __init__(self, columns: Mapping[str, NDArray[Any]], *, missing_label: str = "?") -> None:
        self._columns: dict[str, NDArray[Any]] = {}
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

    def codes(self, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
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

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._columns:
            raise KeyError(f"{name}: there are the columns {', '.join(self._columns)}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Table(n={self.n}, columns={list(self)})"
