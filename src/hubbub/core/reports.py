"""Reports, a batch of randomised answers in columns; sketches, their linear integer summary; both as bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch

Array: TypeAlias = NDArray[Any]
"""An array whose type of numbers is known when the program runs: a column of reports or of a table, codes, rows."""
Columns: TypeAlias = Mapping[str, Array]
"""Arrays by name, all of one length."""
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Words: TypeAlias = NDArray[np.uint64]
"""64 bits each: seeds, hashes, ciphers, the first bytes of texts."""
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
    def of(part: Literal["public", "private", "counts"], name: str, array: Array) -> Column:
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
        """Refuse a column that does not have one entry per report."""
        if self.shape[0] != n:
            raise DecodeError(f"{self.name}.shape", self.shape, f"{n} entries, one per report")

    def array(self) -> Array:
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


class Reports:
    """A batch of reports of one mechanism: what leaves the devices.

    The first axis of every column is the report. *Public* columns (a hash seed, a cohort) were drawn without
    looking at the value; *private* ones depend on it. A single report is a batch of one.

    Parameters
    ----------
    spec_id
        The id of the mechanism's spec.
    public, private
        Columns by name: integer arrays of one length.

    Example:
        >>> import numpy as np
        >>> batch = Reports("0" * 32, private={"value": np.uint8([1, 0, 2])})
        >>> len(batch), batch[1:].private["value"].tolist()
        (3, [0, 2])
        >>> Reports.from_bytes(batch.to_bytes()) == batch
        True
    """

    __slots__ = ("_n", "private", "public", "spec_id")

    def __init__(self, spec_id: str, *, public: Columns | None = None, private: Columns) -> None:
        self.spec_id = spec_id
        self.public = MappingProxyType({name: _frozen(name, col) for name, col in (public or {}).items()})
        self.private = MappingProxyType({name: _frozen(name, col) for name, col in private.items()})
        lengths = {len(column) for column in (*self.public.values(), *self.private.values())}
        if not private or len(lengths) != 1:
            raise InvalidValue("columns", sorted(lengths), "at least one private column, all of one length")
        (self._n,) = lengths

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, rows: slice | Array) -> Reports:
        return Reports(
            self.spec_id,
            public={name: column[rows] for name, column in self.public.items()},
            private={name: column[rows] for name, column in self.private.items()},
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reports):
            return NotImplemented
        return self.spec_id == other.spec_id and all(
            columns.keys() == others.keys()
            and all(
                column.dtype == others[name].dtype and np.array_equal(column, others[name])
                for name, column in columns.items()
            )
            for columns, others in ((self.public, other.public), (self.private, other.private))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        columns = ", ".join((*self.public, *self.private))
        return f"Reports(n={self._n}, columns=[{columns}], spec_id={self.spec_id[:8]}...)"

    @property
    def nbytes(self) -> int:
        """The size of the columns."""
        return sum(column.nbytes for column in (*self.public.values(), *self.private.values()))

    @staticmethod
    def concat(batches: Iterable[Reports]) -> Reports:
        """Join batches of one spec.

        Example:
            >>> import numpy as np
            >>> batch = Reports("0" * 32, private={"value": np.uint8([1])})
            >>> len(Reports.concat([batch, batch]))
            2
        """
        parts = list(batches)
        if not parts:
            raise InvalidValue("batches", parts, "at least one batch")
        first = parts[0]
        for part in parts:
            if part.spec_id != first.spec_id:
                raise SpecMismatch("spec_id", part.spec_id, f"reports of {first.spec_id}")
            if (part.public.keys(), part.private.keys()) != (first.public.keys(), first.private.keys()):
                raise InvalidValue("columns", [*part.public, *part.private], f"{[*first.public, *first.private]}")
        return Reports(
            first.spec_id,
            public={name: np.concatenate([part.public[name] for part in parts]) for name in first.public},
            private={name: np.concatenate([part.private[name] for part in parts]) for name in first.private},
        )

    def to_bytes(self) -> bytes:
        """Binary columns (msgpack with raw little-endian arrays)."""
        columns = [Column.of("public", name, col) for name, col in self.public.items()]
        columns += [Column.of("private", name, col) for name, col in self.private.items()]
        return pack_columns("reports", self.spec_id, self._n, columns)

    def to_bare(self) -> bytes:
        """The values alone, column after column, little-endian, for a reader who knows the columns.

        The bytes do not name the spec. `Mechanism.read_bare` reads it back.
        """
        columns = (*self.public.values(), *self.private.values())
        return b"".join(np.ascontiguousarray(col, dtype=col.dtype.newbyteorder("<")).tobytes() for col in columns)

    @staticmethod
    def from_bytes(data: bytes) -> Reports:
        """Read reports back; anything that is not well formed is refused.

        Example:
            >>> Reports.from_bytes(b"hostile")
            Traceback (most recent call last):
                ...
            hubbub.core.errors.DecodeError: reports: got b'hostile'; allowed: ...
        """
        spec_id, n, columns = unpack_columns("reports", data)
        for column in columns:
            column.check_length(n)
            if column.part == "counts":
                raise DecodeError(f"{column.name}.part", column.part, "public or private columns")
        return Reports(
            spec_id,
            public={column.name: column.array() for column in columns if column.part == "public"},
            private={column.name: column.array() for column in columns if column.part == "private"},
        )


def _frozen(name: str, column: Array) -> Array:
    array = np.asarray(column)
    if array.ndim == 0 or array.dtype.kind not in "iu":
        raise InvalidValue(name, column, "an integer column with one entry per report")
    view = array.view()
    view.flags.writeable = False
    return view


LARGEST = (1 << 63) - 1


class Sketch:
    """The number of reports, int64 counts over them, and how many of the reports are fakes of shufflers.

    `a + b` merges two sketches of one spec: in any order, on any machine, the bytes are the same. A sketch may also
    have the `screen` of its reports (`hubbub.mechanisms.frequency.screen`); a sum has one if all of its parts do.

    Example:
        >>> import numpy as np
        >>> a = Sketch("0" * 32, 2, np.int64([1, 1]))
        >>> (a + a).counts.tolist(), (a + a).n
        ([2, 2], 4)
        >>> Sketch.from_bytes(a.to_bytes()) == a
        True
    """

    __slots__ = ("counts", "fakes", "n", "screen", "spec_id")

    def __init__(self, spec_id: str, n: int, counts: Array, fakes: int = 0, screen: Ints | None = None) -> None:
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
        self.counts: Ints = counts.view()
        self.counts.flags.writeable = False
        self.screen: Ints | None = None
        if screen is not None and n:
            self.screen = np.asarray(screen, dtype=np.int64).view()
            self.screen.flags.writeable = False

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
        return Sketch(self.spec_id, self.n + other.n, total, self.fakes + other.fakes, self._joint_screen(other))

    def _joint_screen(self, other: Sketch) -> Ints | None:
        if not self.n or not other.n:
            return self.screen if self.n else other.screen
        if self.screen is None or other.screen is None or self.screen.shape != other.screen.shape:
            return None
        return np.asarray(self.screen + other.screen)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        same = (self.spec_id, self.n, self.fakes) == (other.spec_id, other.n, other.fakes)
        return same and np.array_equal(self.counts, other.counts) and _same_screens(self.screen, other.screen)

    __hash__ = None  # type: ignore[assignment]

    @property
    def people(self) -> int:
        """How many reports are not fakes."""
        return self.n - self.fakes

    @property
    def digest(self) -> str:
        """A hash of all of it: estimates of equal sketches rest on the same reports."""
        return blake2b(self.to_bytes(), digest_size=16).hexdigest()

    def with_fakes(self, fakes: int) -> Sketch:
        """The same sketch, with a number of its reports known to be fakes."""
        return Sketch(self.spec_id, self.n, self.counts, fakes, self.screen)

    def __repr__(self) -> str:
        return f"Sketch(n={self.n}, counts{list(self.counts.shape)}, spec_id={self.spec_id[:8]}...)"

    def to_bytes(self) -> bytes:
        """Binary columns; equal sketches give equal bytes."""
        columns = [Column.of("counts", "counts", self.counts)]
        if self.fakes:
            columns.append(Column.of("counts", "fakes", np.array([self.fakes], dtype=np.int64)))
        if self.screen is not None:
            columns.append(Column.of("counts", "screen", self.screen))
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
        names = [column.name for column in columns]
        expected = ["counts", *(name for name in ("fakes", "screen") if name in names[1:])]
        if layout != [("counts", name, "i8") for name in expected]:
            raise DecodeError("columns", names, "one int64 column of counts")
        given = {column.name: column.array() for column in columns}
        fakes = given.get("fakes", np.zeros(1, dtype=np.int64))
        if fakes.shape != (1,) or not bool(fakes[0]) == ("fakes" in given) or not 0 <= int(fakes[0]) <= n:
            raise DecodeError("fakes", fakes.tolist()[:4], "one count from 1 to n, or no column")
        if n > LARGEST:
            raise DecodeError("n", n, "a count from 0 to 2^63-1")
        screen = given.get("screen")
        if screen is not None and (screen.ndim != 1 or not n or screen.min(initial=0) < 0 or screen.max(initial=0) > n):
            raise DecodeError("screen", screen.shape, "a row of counts from 0 to n")
        return Sketch(spec_id, n, given["counts"], int(fakes[0]), screen)


def _same_screens(first: Ints | None, second: Ints | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)
