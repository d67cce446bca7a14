"""How a set of signed positions is encoded: as a list of symbols, or as one or two bits for every position."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Ints
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.random.integers import pack, unpack

Signs = NDArray[np.int8]


@dataclass(frozen=True)
class SetForm(ABC):
    """The columns of reports that are sets of `size` of `positions` positions, with a sign each."""

    positions: int
    size: int

    @property
    @abstractmethod
    def columns(self) -> tuple[ColumnSpec, ...]:
        """The columns."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """How many bits a report holds."""

    @abstractmethod
    def pack(self, signs: Signs) -> dict[str, Array]:
        """The columns of rows of signs, which are 0 at the positions that a report does not have."""

    @abstractmethod
    def check(self, columns: Columns) -> None:
        """Refuse columns that do not encode such sets."""

    @abstractmethod
    def counts(self, columns: Columns) -> Ints:
        """How many reports have +1 (first row) and -1 (second row) at every position."""

    @abstractmethod
    def meeting(self, columns: Columns, vectors: Signs) -> tuple[Ints, Ints]:
        """How many signs of each report (row) are true for each vector (column), and how many are reversed."""


class AsList(SetForm):
    """The symbols in order: 2 p for +1 at position p, 2 p + 1 for -1."""

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        symbols = 2 * self.positions
        return (ColumnSpec("private", "symbol", unsigned(symbols), (self.size,), below=symbols),)

    @property
    def bits(self) -> int:
        return self.size * (2 * self.positions - 1).bit_length()

    def pack(self, signs: Signs) -> dict[str, Array]:
        row, position = np.nonzero(signs)  # in order of rows, then of positions
        return {"symbol": (2 * position + (signs[row, position] < 0)).reshape(len(signs), self.size)}

    def check(self, columns: Columns) -> None:
        if (np.diff(columns["symbol"].astype(np.int64) >> 1, axis=1) <= 0).any():
            raise InvalidValue("symbol", "positions out of order or twice", f"{self.size} positions in order")

    def counts(self, columns: Columns) -> Ints:
        counts = np.bincount(columns["symbol"].ravel(), minlength=2 * self.positions)
        return np.ascontiguousarray(counts.reshape(-1, 2).T)

    def meeting(self, columns: Columns, vectors: Signs) -> tuple[Ints, Ints]:
        both = np.stack([vectors, -vectors], axis=2).reshape(len(vectors), -1)  # what each symbol is to each vector
        symbols = [row[columns["symbol"]] for row in both]
        trues, reverses = ([(row == sign).sum(axis=1) for row in symbols] for sign in (1, -1))
        return np.stack(trues, axis=1), np.stack(reverses, axis=1)


class AsBits(SetForm):
    """For every position a bit for +1 and a bit for -1; only the first, where a report has every position."""

    @property
    def _every(self) -> bool:
        return self.size == self.positions

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return tuple(ColumnSpec.packed(name, self.positions) for name in ("plus", "minus")[: 2 - self._every])

    @property
    def bits(self) -> int:
        return self.positions if self._every else math.ceil(self.positions * math.log2(3))

    def pack(self, signs: Signs) -> dict[str, Array]:
        return {"plus": pack(signs > 0)} | ({} if self._every else {"minus": pack(signs < 0)})

    def check(self, columns: Columns) -> None:
        if self._every:
            return
        if (columns["plus"] & columns["minus"]).any():
            raise InvalidValue("minus", "both signs at one position", "one sign at a position, or none")
        if (np.bitwise_count(columns["plus"] | columns["minus"]).sum(axis=1, dtype=np.int64) != self.size).any():
            raise InvalidValue("plus", "too few or too many positions", f"{self.size} positions with a sign")

    def counts(self, columns: Columns) -> Ints:
        from hubbub.kernels.estimators import column_sums

        plus = column_sums(columns["plus"])[: self.positions]
        minus = len(columns["plus"]) - plus if self._every else column_sums(columns["minus"])[: self.positions]
        return np.stack([plus, minus])

    def meeting(self, columns: Columns, vectors: Signs) -> tuple[Ints, Ints]:
        plus = unpack(columns["plus"], self.positions)
        minus = 1 - plus if self._every else unpack(columns["minus"], self.positions)
        plus, minus = plus.astype(np.float32), minus.astype(np.float32)  # sums of at most a few thousand: exact
        holds, turned = (vectors > 0).T.astype(np.float32), (vectors < 0).T.astype(np.float32)
        trues, reverses = plus @ holds + minus @ turned, plus @ turned + minus @ holds
        return trues.astype(np.int64), reverses.astype(np.int64)


def shortest_form(positions: int, size: int) -> SetForm:
    """The form with fewer bytes per report."""
    forms = AsList(positions, size), AsBits(positions, size)
    return min(forms, key=_bytes)


def _bytes(form: SetForm) -> int:
    return sum(np.dtype(column.dtype).itemsize * math.prod(column.shape) for column in form.columns)
