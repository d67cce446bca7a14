"""Sketches: the linear integer summary of reports, which is all a server keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.wire import Column, pack_columns, unpack_columns

LARGEST = (1 << 63) - 1


class Sketch:
    """The number of reports, int64 counts over them, and how many of the reports are fakes of shufflers.

    `a + b` merges two sketches of one spec: in any order, on any machine, the bytes are the same.

    Example:
        >>> import numpy as np
        >>> a = Sketch("0" * 32, 2, np.int64([1, 1]))
        >>> (a + a).counts.tolist(), (a + a).n
        ([2, 2], 4)
        >>> Sketch.from_bytes(a.to_bytes()) == a
        True
    """

    __slots__ = ("counts", "fakes", "n", "spec_id")

    def __init__(self, spec_id: str, n: int, counts: NDArray[Any], fakes: int = 0) -> None:
        counts = np.asarray(counts)
        if not 0 <= n <= LARGEST:
            raise InvalidValue("n", n, "a count from 0 to 2^63-1")
        if not 0 <= fakes <= n:
            raise InvalidValue("fakes", fakes, f"a count from 0 to {n}, which is how many reports there are")
        if counts.dtype != np.int64 or counts.ndim == 0:
            raise InvalidValue("counts", counts.dtype.name, "an int64 array")
        self.spec_id = spec_id
        self.n = int(n)
        self.fakes = int(fakes)
        self.counts: NDArray[np.int64] = counts.view()
        self.counts.flags.writeable = False

    def __add__(self, other: Sketch) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented
        if self.spec_id != other.spec_id:
            raise SpecMismatch("spec_id", other.spec_id, f"a sketch of {self.spec_id}")
        if self.counts.shape != other.counts.shape:
            raise SpecMismatch("counts", other.counts.shape, f"counts of shape {self.counts.shape}")
        total = self.counts + other.counts
        # Two's complement: a sum overflowed where both terms have one sign and the total the other.
        if np.any(((self.counts ^ total) & (other.counts ^ total)) < 0):
            raise InvalidValue("counts", "a sum past 2^63", "totals that fit 64 bits; nothing was merged")
        return Sketch(self.spec_id, self.n + other.n, total, self.fakes + other.fakes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        same = (self.spec_id, self.n, self.fakes) == (other.spec_id, other.n, other.fakes)
        return same and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]

    @property
    def people(self) -> int:
        """How many reports are not fakes.

        Example:
            >>> import numpy as np
            >>> Sketch("0" * 32, 5, np.int64([1, 4]), fakes=2).people
            3
        """
        return self.n - self.fakes

    def with_fakes(self, fakes: int) -> Sketch:
        """The same sketch, with so many of its reports known to be fakes.

        Example:
            >>> import numpy as np
            >>> Sketch("0" * 32, 5, np.int64([1, 4])).with_fakes(2).fakes
            2
        """
        return Sketch(self.spec_id, self.n, self.counts, fakes)

    def __repr__(self) -> str:
        return f"Sketch(n={self.n}, counts{list(self.counts.shape)}, spec_id={self.spec_id[:8]}...)"

    def to_bytes(self) -> bytes:
        """Binary columns; equal sketches give equal bytes."""
        columns = [Column.of("counts", "counts", self.counts)]
        if self.fakes:
            columns.append(Column.of("counts", "fakes", np.array([self.fakes], dtype=np.int64)))
        return pack_columns("sketch", self.spec_id, self.n, columns)

    @staticmethod
    def from_bytes(data: bytes) -> Sketch:
        """Read a sketch back; anything that is not well formed is refused.

        Example:
            >>> Sketch.from_bytes(b"")
            Traceback (most recent call last):
                ...
            hubbub.core.errors.DecodeError: sketch: got b''; allowed: ...
        """
        spec_id, n, columns = unpack_columns("sketch", data)
        layout = [(column.part, column.name, column.type) for column in columns]
        if layout != [("counts", name, "i8") for name in ("counts", "fakes")[: len(columns)]]:
            raise DecodeError("columns", [column.name for column in columns], "one int64 column of counts")
        fakes = columns[1].array() if columns[1:] else np.zeros(1, dtype=np.int64)
        if fakes.shape != (1,) or not bool(fakes[0]) == bool(columns[1:]) or not 0 <= int(fakes[0]) <= n:
            raise DecodeError("fakes", fakes.tolist()[:4], "one count from 1 to n, or no column")
        if n > LARGEST:
            raise DecodeError("n", n, "a count from 0 to 2^63-1")
        return Sketch(spec_id, n, columns[0].array(), int(fakes[0]))
