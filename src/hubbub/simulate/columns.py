"""One column of a file, as labels and codes or as numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.simulate.column_batches import column_batches, row_name

MISSING = "(missing)"
MOST_LABELS = 1_000_000


class CodedColumn(NamedTuple):
    """The distinct values of a column in order, and the code of each row's value."""

    labels: tuple[str, ...]
    codes: NDArray[np.int64]
    missing: int


def read_column(path: Path, column: str, *, any_bytes: bool = False) -> CodedColumn:
    """Read a column as text. Numbers stay as they are written; a row without a value gets the label "(missing)".

    Bytes of a Parquet file that are not UTF-8 are refused; with `any_bytes` they become lone surrogates, which no text
    has.
    """
    code_of: dict[str, int] = {}
    parts: list[NDArray[np.int64]] = []
    missing = 0
    for batch in column_batches(path, column, any_bytes=any_bytes):
        codes = [code_of.setdefault(MISSING if value is None else value, len(code_of)) for value in batch]
        if len(code_of) > MOST_LABELS:
            allowed = f"a column of at most {MOST_LABELS:,} different values: group or round them first"
            raise InvalidValue("column", column, allowed)
        missing += batch.count(None)
        parts.append(np.array(codes, dtype=np.int64))
    if not code_of:
        raise InvalidValue("path", str(path), "a file with at least one row")
    return _ordered(list(code_of), np.concatenate(parts), missing)


def read_numbers(path: Path, column: str) -> NDArray[np.float64]:
    """Read a column of numbers in the order of its rows. A row without a number is refused: a stream has no gaps.

    A blank line between the values of a file with a single column is refused too.
    """
    parts: list[NDArray[np.float64]] = []
    rows = 0
    for batch in column_batches(path, column, gaps=True):
        numbers = np.array([math.nan if value is None else number_of(value) for value in batch])
        if np.isnan(numbers).any():
            place = int(np.flatnonzero(np.isnan(numbers))[0])
            raise InvalidValue(f"{column}, {row_name(path, rows + place)}", batch[place], "a number in every row")
        parts.append(numbers)
        rows += len(batch)
    if not rows:
        raise InvalidValue("path", str(path), "a file with at least one row")
    return np.concatenate(parts)


def number_of(label: str) -> float:
    """The number that a label is; NaN if it is no number."""
    try:
        return float(label)
    except ValueError:
        return math.nan


def _ordered(labels: list[str], codes: NDArray[np.int64], missing: int) -> CodedColumn:
    """The column with its labels sorted: numbers by size, then words alphabetically, then "(missing)"."""
    order = sorted(range(len(labels)), key=lambda code: (labels[code] == MISSING, *by_size(labels[code])))
    place = np.empty(len(labels), dtype=np.int64)
    place[order] = np.arange(len(labels))
    return CodedColumn(tuple(labels[code] for code in order), place[codes], missing)


def by_size(label: str) -> tuple[bool, float, str]:
    """The sort key of labels: numbers by size, then words alphabetically."""
    number = number_of(label)
    return (True, 0.0, label) if math.isnan(number) else (False, number, label)
