"""The schema of a table: its private and public columns, its method, and the interface of every table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json
from hubbub.protocols.ranges.dimension import Dimension
from hubbub.protocols.ranges.grids import HDG
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG, IntervalMechanism, LevelReports
from hubbub.protocols.ranges.split import SC
from hubbub.query.errors import Tree

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


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


TableMechanism = IntervalMechanism | SC | HDG
METHODS: dict[str, type[IntervalMechanism] | type[SC]] = {"HIO": HIO, "HI": HI, "MG": MG, "SC": SC}
ROW = "#row"
"""The column that numbers the people of a table from 0 on; it cannot be asked for."""


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
        names: set[str] = set()
        for name in self.names:
            if name.casefold() in names:
                raise InvalidValue("columns", name, "names that differ in more than upper and lower case")
            names.add(name.casefold())
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
            fields = dict(spec)
            private = tuple(
                PrivateColumn(column["name"], Domain.from_spec(column["domain"]), column["missing"])
                for column in fields.pop("private")
            )
            public = tuple(PublicColumn(**column) for column in fields.pop("public"))
            return TableSchema(private=private, public=public, **fields)
        except (KeyError, TypeError) as error:
            raise InvalidValue("schema", spec, f"the schema of a table: {error}") from None


Level = tuple[int, ...]
"""The subject of a report: a level of each dimension (HIO, HI, MG), a column and its level (SC), or a grid (HDG)."""
BLOCK = 1 << 18
"""The number of people in a block. One block is in memory at a time."""


class PrivateTable(ABC):
    """Public columns, and the reports of people on private ones, in blocks of neighbouring rows.

    People are the rows 0 to n-1. A subclass reads public columns and reports from where they are stored.
    """

    schema: TableSchema

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of people."""

    @abstractmethod
    def connection(self) -> DuckDBPyConnection:
        """A connection that the engine alone uses, locked by `sandbox.lock`.

        In it, the view or table `relation` has the public columns and the number of each row (`ROW`).
        """

    @abstractmethod
    def level_sizes(self) -> Mapping[Level, int]:
        """The number of reports on each level; levels without reports may be left out."""

    @abstractmethod
    def reports(self, level: Level, rows: range) -> LevelReports | None:
        """The reports on a level by people of a block, in rising order of their rows; rows are those of the table."""

    @property
    def relation(self) -> str:
        """The name of the relation with the public columns, as SQL."""
        return "people"

    def blocks(self) -> Sequence[range]:
        """The rows of each block."""
        return [range(start, min(start + BLOCK, self.n)) for start in range(0, self.n, BLOCK)]


def rows_within(group: LevelReports, rows: range) -> LevelReports | None:
    """The reports by people of a block, of reports whose rows rise."""
    first, last = np.searchsorted(group.rows, [rows.start, rows.stop])
    if first == last:
        return None
    return LevelReports(group.rows[first:last], group.reports[slice(first, last)])


def private_names(node: Tree, schema: TableSchema) -> list[str]:
    """The private columns in an expression, in the order of the table."""
    from sqlglot import exp

    present = {column.name for column in node.find_all(exp.Column)}
    return [column.name for column in schema.private if column.name in present]
