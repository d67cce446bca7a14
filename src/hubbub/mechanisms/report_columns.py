"""The columns of a report: their types and bounds, and how reports are built, checked and read back by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Array, Bools, Columns, Reports


class ColumnSpec(NamedTuple):
    """The type, shape and bound of one column of a mechanism's reports.

    Parameters
    ----------
    part, name
        The part of the report that holds the column, and the column's name.
    dtype, shape
        The type and the shape of one report's entry.
    below
        A bound: every value is smaller. None where the type is the only bound.
    bits
        For packed bits, the number of bits in a report; the last byte is filled up with zeros.
    """

    part: Literal["public", "private"]
    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    below: int | None = None
    bits: int | None = None

    @staticmethod
    def packed(name: str, bits: int) -> ColumnSpec:
        """A private column of packed bits."""
        return ColumnSpec("private", name, "u1", (-(-bits // 8),), bits=bits)

    @property
    def entry_bytes(self) -> int:
        """The size of one report's entry."""
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)

    @property
    def entry_bits(self) -> int:
        """The bits that one report's entry can use: those of its bytes, less what the bound leaves unused."""
        if self.bits:
            return self.bits
        return math.prod(self.shape) * (self.below - 1).bit_length() if self.below else 8 * self.entry_bytes

    def check(self, array: Array) -> None:
        """Refuse an array that is no such column."""
        if array.dtype != np.dtype(self.dtype) or array.shape[1:] != self.shape:
            allowed = f"{self.dtype}{list(self.shape)} a report"
            raise InvalidValue(self.name, f"{array.dtype}{list(array.shape[1:])}", allowed)
        if self.below is not None and array.size and int(array.max()) >= self.below:
            raise InvalidValue(self.name, int(array.max()), f"values below {self.below}")
        if self.bits is not None and array.size and int(array[:, -1].max()) >> (self.bits - 1) % 8 + 1:
            raise InvalidValue(self.name, "a bit past the last", f"{self.bits} bits per report, then zeros")

    def beyond(self, array: Array) -> Bools:
        """Which reports have an entry that the bound, or the number of bits, rules out."""
        rows = array.reshape(len(array), math.prod(self.shape))
        if self.below is not None:
            return np.asarray((rows >= self.below).any(axis=1))
        if self.bits is not None:
            return np.asarray(rows[:, -1] >> (self.bits - 1) % 8 + 1 != 0)
        return np.zeros(len(array), dtype=np.bool_)


def reports_of(spec_id: str, columns: Sequence[ColumnSpec], arrays: Columns) -> Reports:
    """Reports with these arrays as columns, each converted to its column's type."""
    parts: dict[str, dict[str, Array]] = {"public": {}, "private": {}}
    for column in columns:
        parts[column.part][column.name] = arrays[column.name].astype(column.dtype, copy=False)
    return Reports(spec_id, public=parts["public"], private=parts["private"])


def check_columns(reports: Reports, columns: Sequence[ColumnSpec]) -> None:
    """Refuse reports whose columns are not exactly these, or hold values that these cannot hold."""
    present = {("public", name) for name in reports.public} | {("private", name) for name in reports.private}
    expected = {(column.part, column.name) for column in columns}
    if present != expected:
        raise InvalidValue("columns", sorted(present), f"exactly {sorted(expected)}")
    for column in columns:
        column.check((reports.public if column.part == "public" else reports.private)[column.name])


def read_bare(spec_id: str, columns: Sequence[ColumnSpec], data: bytes) -> Reports:
    """Read what `Reports.to_bare` wrote: as many reports as the bytes hold, with no byte left over."""
    report_bytes = sum(column.entry_bytes for column in columns)
    n, surplus = divmod(len(data), report_bytes)
    if surplus:
        raise DecodeError("report", f"{len(data)} bytes", f"{report_bytes} bytes per report")
    arrays, start = {}, 0
    for column in columns:
        little = np.dtype(column.dtype).newbyteorder("<")
        entries = np.frombuffer(data, little, n * math.prod(column.shape), start)
        arrays[column.name] = entries.reshape(n, *column.shape)
        start += entries.nbytes
    return reports_of(spec_id, columns, arrays)
