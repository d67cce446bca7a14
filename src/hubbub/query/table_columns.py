"""The columns of a table: private ones, which people report on, and public ones, which the server knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ranges.dimension import Dimension

TYPES = ("BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP")
"""What a public column may hold, by the names that DuckDB gives them."""


@dataclass(frozen=True)
class PrivateColumn:
    """A column that people report on: known of nobody, estimated of all.

    Parameters
    ----------
    name
        What queries call it.
    domain
        Its values: names (`Categorical`), the integers from 0 on (`Ordinal`), or numbers seen as cells (`Numeric`).
    missing
        Whether it may be missing; `IS NULL` asks for that.
    """

    name: str
    domain: Domain
    missing: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.domain, Categorical | Ordinal | Numeric):
            raise InvalidValue(self.name, self.domain, "a Categorical, an Ordinal or a Numeric domain")
        if not isinstance(self.missing, bool):
            raise InvalidValue("missing", self.missing, "True or False")

    @property
    def values(self) -> int:
        """How many values it has, without "missing"."""
        size = self.domain.size
        assert size is not None
        return size

    @property
    def size(self) -> int:
        """How many codes it has."""
        return self.values + self.missing

    def dimension(self, fanout: int) -> Dimension:
        """Its hierarchy of intervals."""
        if self.domain.in_order and self.size > 2:
            return Dimension.ordinal(self.size, fanout=fanout)
        return Dimension.categorical(self.size)

    def encode(self, values: Any) -> NDArray[np.int64]:
        """The codes of some values, None and NaN being missing."""
        batch = np.asarray(values, dtype=object)
        absent = np.array([value is None or value != value for value in batch], dtype=bool)
        if absent.any() and not self.missing:
            declared = f"a column declared with missing=True, {self.name}? on the command line"
            raise InvalidValue(self.name, None, f"no missing values, or {declared}")
        codes = np.full(len(batch), self.values, dtype=np.int64)
        present = batch[~absent].tolist()
        try:
            codes[~absent] = self.domain.encode(present)
        except InvalidValue as error:
            raise InvalidValue(self.name, error.value, error.allowed) from None
        return codes

    def label(self, code: int) -> str | int | None:
        """What a code is called in answers: a name, a number, the cell of a number, or None for missing."""
        if code >= self.values:
            return None
        return int(code) if isinstance(self.domain, Ordinal) else (self.domain.labels or ())[code]


@dataclass(frozen=True)
class PublicColumn:
    """A column that the server knows."""

    name: str
    type: str

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.type not in TYPES:
            raise InvalidValue(self.name, self.type, f"one of {', '.join(TYPES)}")


def check_name(name: object) -> None:
    """Refuse a name that no query could spell."""
    if not isinstance(name, str) or not 0 < len(name) <= 128 or not name.isprintable() or name.startswith("#"):
        raise InvalidValue("name", name, "1 to 128 printable characters, the first no #")
