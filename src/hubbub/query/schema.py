"""The schema of a table: its columns, and the method by which people reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hubbub.core.domain import Domain
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.spec import Json
from hubbub.protocols.ranges.grids import HDG
from hubbub.protocols.ranges.hierarchy import HI, HIO, MG, IntervalMechanism
from hubbub.protocols.ranges.split import SC
from hubbub.query.table_columns import PrivateColumn, PublicColumn, check_name

__all__ = ["METHODS", "ROW", "PrivateColumn", "PublicColumn", "TableMechanism", "TableSchema"]

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
