"""What is known of a table before anything is read of it: its columns, and how people reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json
from hubbub.protocols.ranges.dimension import Dimension
from hubbub.protocols.ranges.grids import HDG
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG, IntervalMechanism
from hubbub.protocols.ranges.split import SC

TableMechanism = IntervalMechanism | SC | HDG
METHODS: dict[str, type[IntervalMechanism] | type[SC]] = {"HIO": HIO, "HI": HI, "MG": MG, "SC": SC}
ROW = "#row"
"""The column that numbers the people of a table from 0 on; it cannot be asked for."""
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

    Example:
        >>> age = PrivateColumn("age", Ordinal(100), missing=True)
        >>> age.size, age.encode([31, None]).tolist(), age.label(31), age.label(100)
        (101, [31, 100], 31, None)
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
            raise InvalidValue(self.name, None, "no missing values, or a column that is declared with missing=True")
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
    """A column that the server knows.

    Example:
        >>> PublicColumn("price", "DOUBLE").type
        'DOUBLE'
    """

    name: str
    type: str

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.type not in TYPES:
            raise InvalidValue(self.name, self.type, f"one of {', '.join(TYPES)}")


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, and how people reported on the private ones.

    Parameters
    ----------
    name
        What stands behind FROM.
    private, public
        The columns; names differ in more than upper and lower case.
    method
        HIO, HI, MG, SC or HDG.
    epsilon
        What all reports of a person spend together.
    fanout
        How many intervals of an ordered column make one of the next level.
    expected
        For HDG alone: how many people its grids were made for.

    Example:
        >>> schema = TableSchema("people", (PrivateColumn("age", Ordinal(100)),), (PublicColumn("price", "DOUBLE"),))
        >>> schema.mechanism.dimensions[0].widths, TableSchema.from_spec(schema.spec()) == schema
        ((100, 25, 5, 1), True)
    """

    name: str
    private: tuple[PrivateColumn, ...]
    public: tuple[PublicColumn, ...] = ()
    method: str = "HIO"
    epsilon: float = 1.0
    fanout: int = 5
    expected: int | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "private", tuple(self.private))
        object.__setattr__(self, "public", tuple(self.public))
        seen: set[str] = set()
        for name in self.names:
            if name.casefold() in seen:
                raise InvalidValue("columns", name, "names that differ in more than upper and lower case")
            seen.add(name.casefold())
        if self.method not in (*METHODS, "HDG"):
            raise InvalidValue("method", self.method, f"one of {', '.join((*METHODS, 'HDG'))}")
        check_integer("fanout", self.fanout, 2)
        if (self.expected is None) != (self.method != "HDG"):
            raise InvalidValue("expected", self.expected, "a number of people for HDG, None for all others")
        self.mechanism  # noqa: B018 # refuses what no mechanism can be made of

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [*(column.name for column in self.private), *(column.name for column in self.public)]

    @cached_property
    def mechanism(self) -> TableMechanism:
        """How people reported."""
        dimensions = tuple(column.dimension(self.fanout) for column in self.private)
        if self.method == "HDG":
            assert self.expected is not None
            return HDG(self.epsilon, dimensions, self.expected)
        return METHODS[self.method](self.epsilon, dimensions)

    def spec(self) -> dict[str, Json]:
        """The schema as JSON."""
        private: list[Json] = [
            {"name": column.name, "domain": column.domain.spec(), "missing": column.missing} for column in self.private
        ]
        public: list[Json] = [{"name": column.name, "type": column.type} for column in self.public]
        return {
            "name": self.name,
            "private": private,
            "public": public,
            "method": self.method,
            "epsilon": self.epsilon,
            "fanout": self.fanout,
            "expected": self.expected,
        }

    @staticmethod
    def from_spec(spec: object) -> TableSchema:
        """Read a schema back; anything else is refused."""
        try:
            if not isinstance(spec, Mapping):
                raise TypeError("no object")
            given = dict(spec)
            private = tuple(
                PrivateColumn(column["name"], Domain.from_spec(column["domain"]), column["missing"])
                for column in given.pop("private")
            )
            public = tuple(PublicColumn(**column) for column in given.pop("public"))
            return TableSchema(private=private, public=public, **given)
        except (KeyError, TypeError) as error:
            raise InvalidValue("schema", spec, f"the schema of a table: {error}") from None


def check_name(name: object) -> None:
    """Refuse a name that no query could spell.

    Example:
        >>> check_name("#row")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: name: got '#row'; allowed: 1 to 128 printable characters, the first no #
    """
    if not isinstance(name, str) or not 0 < len(name) <= 128 or not name.isprintable() or name.startswith("#"):
        raise InvalidValue("name", name, "1 to 128 printable characters, the first no #")
