"""Tables of shares over some attributes of a record, and sums of their cells."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue, check_integer

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Attributes = tuple[int, ...]
"""Columns of a record, in ascending order."""
MOST_CELLS = 1 << 24


def check_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """How many values each attribute has, refused where it is fewer than two."""
    if not isinstance(sizes, Sequence) or not sizes:
        raise InvalidValue("sizes", sizes, "the number of values of each attribute, at least one")
    for column, size in enumerate(sizes):
        check_integer(f"sizes[{column}]", size, 2, MOST_CELLS)
    return tuple(int(size) for size in sizes)


def check_attributes(attributes: Sequence[int], sizes: Sequence[int]) -> Attributes:
    """The attributes of a table in ascending order; refused where one is unknown or repeated."""
    named = [int(column) for column in np.asarray(attributes).tolist() if type(column) is int]
    fits = len(named) == len(attributes) and all(0 <= column < len(sizes) for column in named)
    if not named or not fits or len(set(named)) < len(named):
        raise InvalidValue("attributes", attributes, f"different columns from 0 to {len(sizes) - 1}, at least one")
    if prod(sizes[column] for column in named) > MOST_CELLS:
        raise InvalidValue("attributes", attributes, f"attributes with at most {MOST_CELLS:,} cells together")
    return tuple(sorted(named))


def check_rows(records: ArrayLike, sizes: Sequence[int]) -> Codes:
    """The records as an array, refused where a code is no value of its attribute."""
    codes = np.asarray(records)
    if codes.ndim != 2 or codes.shape[1] != len(sizes) or codes.dtype.kind not in "iu":
        raise InvalidValue("records", codes.shape, f"rows of {len(sizes)} integers")
    outside = (codes < 0) | (codes >= np.asarray(sizes))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        allowed = f"integers from 0 to {sizes[column] - 1}"
        raise InvalidValue(f"records[:, {column}]", codes[row, column].item(), allowed)
    return codes.astype(np.int64)


def cell_of(records: Codes, attributes: Attributes, sizes: Sequence[int]) -> Codes:
    """The cell of each record in the table of some attributes; the last attribute runs fastest."""
    shape = tuple(sizes[column] for column in attributes)
    return np.ravel_multi_index(tuple(records[:, column] for column in attributes), shape).astype(np.int64)


def project(table: Floats, attributes: Attributes, onto: Attributes) -> Floats:
    """The table of fewer attributes, from a table with one axis an attribute."""
    summed = tuple(axis for axis, column in enumerate(attributes) if column not in onto)
    return np.asarray(table.sum(axis=summed))


def true_table(records: ArrayLike, attributes: Sequence[int], sizes: Sequence[int]) -> Floats:
    """The shares of records in each cell."""
    codes = check_rows(records, sizes)
    columns = check_attributes(attributes, sizes)
    shape = tuple(sizes[column] for column in columns)
    counts = np.bincount(cell_of(codes, columns, sizes), minlength=prod(shape))
    return (counts / max(len(codes), 1)).reshape(shape)
