"""Binary columns: msgpack around raw little-endian arrays. Decoding trusts nothing that it has not checked."""

from __future__ import annotations

import math
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError

_TYPES = frozenset({"u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"})
_MOST_COLUMNS = 16
_WIDEST = 1 << 32


class Column(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One array: which part it belongs to, its name, type, shape and bytes."""

    part: Literal["public", "private", "counts"]
    name: str
    type: str
    shape: tuple[int, ...]
    data: bytes

    @staticmethod
    def of(part: Literal["public", "private", "counts"], name: str, array: NDArray[Any]) -> Column:
        """Describe an array."""
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        return Column(part, name, little.dtype.str[1:], little.shape, little.tobytes())

    def check(self) -> None:
        """Refuse a type, shape or size that does not fit the bytes."""
        if self.type not in _TYPES:
            raise DecodeError(f"{self.name}.type", self.type, f"one of {', '.join(sorted(_TYPES))}")
        if not 1 <= len(self.shape) <= 4 or self.shape[0] < 0 or any(side < 1 for side in self.shape[1:]):
            raise DecodeError(f"{self.name}.shape", self.shape, "one to four sides, none negative, only the first 0")
        if math.prod(self.shape[1:]) > _WIDEST:  # else no bytes at all could claim any width
            raise DecodeError(f"{self.name}.shape", self.shape, f"at most {_WIDEST} entries a row")
        size = math.prod(self.shape) * int(self.type[1])
        if size != len(self.data):
            raise DecodeError(f"{self.name}.data", f"{len(self.data)} bytes", f"{size} bytes, as its shape says")

    def check_length(self, n: int) -> None:
        """Refuse a column that does not have one entry a report."""
        if self.shape[0] != n:
            raise DecodeError(f"{self.name}.shape", self.shape, f"{n} entries, one a report")

    def array(self) -> NDArray[Any]:
        """The array, in this machine's byte order."""
        stored = np.frombuffer(self.data, dtype=np.dtype(f"<{self.type}")).reshape(self.shape)
        return stored.astype(stored.dtype.newbyteorder("="), copy=False)


class _Frame(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    kind: str
    spec_id: str
    n: int
    columns: list[Column]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Frame)


def pack_columns(kind: str, spec_id: str, n: int, columns: list[Column]) -> bytes:
    """Encode columns."""
    return _encoder.encode(_Frame(kind, spec_id, n, columns))


def unpack_columns(kind: str, data: bytes) -> tuple[str, int, list[Column]]:
    """Decode columns of one kind; every column is checked."""
    try:
        frame = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
        start = data[:40] if isinstance(data, bytes) else data  # not all of it: it may be large
        raise DecodeError(kind, start, f"well-formed binary columns ({error})") from None
    if frame.kind != kind:
        raise DecodeError(kind, frame.kind, "bytes of that kind")
    if len(frame.spec_id) != 32 or not set(frame.spec_id) <= set("0123456789abcdef"):
        raise DecodeError("spec_id", frame.spec_id, "32 hexadecimal digits")
    if frame.n < 0:
        raise DecodeError("n", frame.n, "a count of at least 0")
    names = [column.name for column in frame.columns]
    if not 1 <= len(names) <= _MOST_COLUMNS or len(set(names)) < len(names):
        raise DecodeError("columns", names, f"1 to {_MOST_COLUMNS} columns with different names")
    for column in frame.columns:
        column.check()
    return frame.spec_id, frame.n, frame.columns
