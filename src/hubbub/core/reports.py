"""Reports: a batch of randomised answers, in columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, InvalidValue, SpecMismatch
from hubbub.core.wire import Column, pack_columns, unpack_columns


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

    def __init__(
        self,
        spec_id: str,
        *,
        public: Mapping[str, NDArray[Any]] | None = None,
        private: Mapping[str, NDArray[Any]],
    ) -> None:
        self.spec_id = spec_id
        self.public = MappingProxyType({name: _frozen(name, col) for name, col in (public or {}).items()})
        self.private = MappingProxyType({name: _frozen(name, col) for name, col in private.items()})
        lengths = {len(column) for column in (*self.public.values(), *self.private.values())}
        if not private or len(lengths) != 1:
            raise InvalidValue("columns", sorted(lengths), "at least one private column, all of one length")
        (self._n,) = lengths

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, rows: slice | NDArray[Any]) -> Reports:
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
        """The size of the columns.

        Example:
            >>> import numpy as np
            >>> Reports("0" * 32, private={"value": np.uint16([1, 0, 2])}).nbytes
            6
        """
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

        Example:
            >>> import numpy as np
            >>> batch = Reports("0" * 32, public={"seed": np.uint8([7, 8])}, private={"value": np.uint16([1, 2])})
            >>> batch.to_bare().hex()
            '070801000200'
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


def _frozen(name: str, column: NDArray[Any]) -> NDArray[Any]:
    array = np.asarray(column)
    if array.ndim == 0 or array.dtype.kind not in "iu":
        raise InvalidValue(name, column, "an integer column with one entry a report")
    view = array.view()
    view.flags.writeable = False
    return view
