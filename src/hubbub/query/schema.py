"""The schema of a table: its private and public columns, its methods, and the interface of every table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isclose
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.domain import Categorical, Domain, Numeric, Ordinal, Values
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Ints
from hubbub.core.spec import Json
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ask import CIRCLE
from hubbub.protocols.ranges.dimension import Dimension
from hubbub.protocols.ranges.grids import HDG, GridReports
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG, IntervalMechanism, LevelReports, RangeReports, check_records
from hubbub.protocols.ranges.split import SC, SplitReports
from hubbub.random.source import Random

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


TYPES = ("BOOLEAN", "BIGINT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP")
"""What a public column may hold, by the names that DuckDB gives them."""


@dataclass(frozen=True)
class PrivateColumn:
    """A column that people report on: known of nobody, estimated of all.

    `domain`: its values: names (`Categorical`), the integers from 0 on (`Ordinal`), or numbers seen as cells
    (`Numeric`). `missing`: whether it may be missing; `IS NULL` asks for that.
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

    def encode(self, values: Values) -> Ints:
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
_OTHERS: dict[str, type[IntervalMechanism] | type[SC]] = {"HIO": HIO, "HI": HI, "MG": MG, "SC": SC}
METHODS = (*_OTHERS, "HDG")
ROW = "#row"
"""The column that numbers the people of a table from 0 on; it cannot be asked for."""
Level = tuple[int, ...]
"""The subject of a report: the place of its method, and a level of each dimension (HIO, HI, MG), a column and its level
(SC), or a grid (HDG)."""


def check_methods(methods: tuple[str, ...], shares: tuple[float, ...]) -> tuple[float, ...]:
    """The part of the people of each method: equal parts, if none are given."""
    if not methods or len(set(methods)) < len(methods) or not set(methods) <= set(METHODS):
        raise InvalidValue("method", methods, f"one or several of {', '.join(METHODS)}, each once")
    parts = shares or (1 / len(methods),) * len(methods)
    if len(parts) != len(methods):
        raise InvalidValue("shares", shares, f"{len(methods)} numbers, one for each method")
    if not all(part > 0 for part in parts) or not isclose(sum(parts), 1.0, abs_tol=1e-6):
        raise InvalidValue("shares", shares, "numbers above 0 that add up to 1")
    return parts


def mechanism_of(method: str, epsilon: float, dimensions: Sequence[Dimension], people: int) -> TableMechanism:
    """The mechanism of a method; only HDG looks at how many people are expected."""
    if method == "HDG":
        return HDG(epsilon, tuple(dimensions), max(people, 1))
    return _OTHERS[method](epsilon, tuple(dimensions))


@dataclass(frozen=True, eq=False)
class TableReports:
    """The reports of n people by level, whichever methods they are of."""

    n: int
    levels: Mapping[Level, LevelReports]


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, and how people reported on the private ones.

    Parameters
    ----------
    private, public
        The columns; names differ in more than upper and lower case.
    methods
        How people report: one or several of HIO, HI, MG, SC and HDG. Each person reports by one of them.
    shares
        The part of the people that reports by each method; empty for equal parts.
    epsilon
        What all reports of a person spend together.
    fanout
        How many intervals of an ordered column make one of the next level.
    expected
        For HDG alone: how many people the table is expected to have, by which its grids are made.
    """

    name: str
    private: tuple[PrivateColumn, ...]
    public: tuple[PublicColumn, ...] = ()
    methods: tuple[str, ...] = ("HIO",)
    shares: tuple[float, ...] = ()
    epsilon: float = 1.0
    fanout: int = 5
    expected: int | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        for field in ("private", "public", "methods", "shares"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        names: set[str] = set()
        for name in self.names:
            if name.casefold() in names:
                raise InvalidValue("columns", name, "names that differ in more than upper and lower case")
            names.add(name.casefold())
        object.__setattr__(self, "shares", check_methods(self.methods, self.shares))
        check_integer("fanout", self.fanout, 2)
        if (self.expected is None) != ("HDG" not in self.methods):
            raise InvalidValue("expected", self.expected, "a number of people for HDG, None for all others")
        self.mechanisms  # noqa: B018 # refuses what no mechanism can be made of

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [*(column.name for column in self.private), *(column.name for column in self.public)]

    @cached_property
    def mechanisms(self) -> tuple[TableMechanism, ...]:
        """How people reported, for each method."""
        dimensions = tuple(column.dimension(self.fanout) for column in self.private)
        return tuple(
            mechanism_of(method, self.epsilon, dimensions, round((self.expected or 0) * share))
            for method, share in zip(self.methods, self.shares, strict=True)
        )

    @property
    def parts(self) -> tuple[tuple[Level, ...], ...]:
        """What each part of the people reports on: with HI and SC several levels at once, with all others one."""
        parts: list[tuple[Level, ...]] = []
        for place, mechanism in enumerate(self.mechanisms):
            subjects = mechanism.grids if isinstance(mechanism, HDG) else mechanism.levels
            levels = [(place, *subject) for subject in subjects]
            parts += [tuple(levels)] if isinstance(mechanism, HI | SC) else [(level,) for level in levels]
        return tuple(parts)

    def oracle(self, level: Level) -> FrequencyOracle:
        """How the cells of a level are reported."""
        mechanism = self.mechanisms[level[0]]
        if isinstance(mechanism, SC):
            return mechanism.oracle((level[1], level[2]))
        return mechanism.oracle(level[1:])

    def randomize(self, records: ArrayLike, rng: Random) -> TableReports:
        """The reports of people whose records (rows) hold a code for each private column, each by a random method."""
        codes = check_records(self.mechanisms[0].dimensions, records)
        groups = [np.arange(len(codes))]
        if len(self.methods) > 1:
            borders = np.rint(np.cumsum(self.shares[:-1]) * CIRCLE).astype(np.int64)
            chosen = np.searchsorted(borders, rng.uint32(len(codes)), side="right")
            groups = [np.flatnonzero(chosen == place) for place in range(len(self.methods))]
        levels: dict[Level, LevelReports] = {}
        for place, (mechanism, rows) in enumerate(zip(self.mechanisms, groups, strict=True)):
            for level, group in _levels_of(mechanism.randomize(codes[rows], rng)).items():
                levels[place, *level] = LevelReports(rows[group.rows], group.reports)
        return TableReports(len(codes), levels)

    def spec(self) -> dict[str, Json]:
        private: list[Json] = [
            {"name": column.name, "domain": column.domain.spec(), "missing": column.missing} for column in self.private
        ]
        public: list[Json] = [{"name": column.name, "type": column.type} for column in self.public]
        return {
            "name": self.name,
            "private": private,
            "public": public,
            "methods": [*self.methods],
            "shares": [*self.shares],
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


def _levels_of(reports: RangeReports | SplitReports | GridReports) -> Mapping[Level, LevelReports]:
    """Reports by level, whichever mechanism they are of."""
    if isinstance(reports, GridReports):
        return reports.grids
    if isinstance(reports, SplitReports):
        everyone = np.arange(reports.n)
        return {level: LevelReports(everyone, group) for level, group in reports.levels.items()}
    return reports.levels


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


class MethodPart(PrivateTable):
    """A table as one of its methods sees it: the public columns of everybody, the reports of those who report by it.

    `table`: the whole table.
    """

    def __init__(self, table: PrivateTable, place: int) -> None:
        self._table, self._place = table, place
        self.schema = table.schema

    @property
    def n(self) -> int:
        return self._table.n

    def connection(self) -> DuckDBPyConnection:
        return self._table.connection()

    @property
    def relation(self) -> str:
        return self._table.relation

    def level_sizes(self) -> Mapping[Level, int]:
        return {level[1:]: n for level, n in self._table.level_sizes().items() if level[0] == self._place}

    def reports(self, level: Level, rows: range) -> LevelReports | None:
        return self._table.reports((self._place, *level), rows)
