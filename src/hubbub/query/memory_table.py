"""A table whose reports and public columns are in memory: for simulations, tests, and reports read elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.domain import Categorical, Ordinal, Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Ints
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.query.sandbox import lock, open_database, quote_name
from hubbub.query.schema import (
    ROW,
    Level,
    PrivateColumn,
    PrivateTable,
    PublicColumn,
    TableReports,
    TableSchema,
    rows_within,
)
from hubbub.random.source import Random

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class MemoryTable(PrivateTable):
    """Reports and public columns in memory.

    `reports`: the reports, as `schema.randomize` returns them. `public`: the values of each public column, one for each
    person; None is NULL.
    """

    def __init__(self, schema: TableSchema, reports: TableReports, public: Mapping[str, Values]) -> None:
        self.schema = schema
        self._n = reports.n
        self._groups = {level: _in_order(group, reports.n) for level, group in reports.levels.items()}
        if set(public) != {column.name for column in schema.public}:
            raise InvalidValue("public", sorted(public), f"the columns {[column.name for column in schema.public]}")
        for name, values in public.items():
            if len(values) != reports.n:
                raise InvalidValue(name, len(values), f"{reports.n} values, one per person")
        self._connection = _filled(schema, public, reports.n)

    def with_reports(self, reports: TableReports) -> MemoryTable:
        """A table of the same people and public columns with other reports, for simulations of many runs."""
        if reports.n != self._n:
            raise InvalidValue("reports", reports.n, f"reports of the {self._n} people")
        other = copy(self)
        other._groups = {level: _in_order(group, reports.n) for level, group in reports.levels.items()}
        return other

    @property
    def n(self) -> int:
        return self._n

    def connection(self) -> DuckDBPyConnection:
        return self._connection

    def level_sizes(self) -> Mapping[Level, int]:
        return {level: group.rows.size for level, group in self._groups.items()}

    def reports(self, level: Level, rows: range) -> LevelReports | None:
        group = self._groups.get(level)
        return None if group is None else rows_within(group, rows)


def _in_order(group: LevelReports, n: int) -> LevelReports:
    rows: Ints = np.asarray(group.rows)
    if rows.size and (rows.min() < 0 or rows.max() >= n):
        raise InvalidValue("rows", int(rows.max()), f"rows from 0 to {n - 1}")
    if (np.diff(rows) > 0).all():
        return group
    order = np.argsort(rows, kind="stable")
    return LevelReports(rows[order], group.reports[order])


def _filled(schema: TableSchema, public: Mapping[str, Values], n: int) -> DuckDBPyConnection:
    """A locked database that holds the public columns."""
    connection = open_database()
    import pyarrow as pa

    declared = ", ".join(f"{quote_name(column.name)} {column.type}" for column in schema.public)
    connection.execute(f"CREATE TABLE people ({quote_name(ROW)} BIGINT{', ' if declared else ''}{declared})")
    arrays = {ROW: pa.array(np.arange(n))}
    arrays |= {column.name: _arrow(public[column.name]) for column in schema.public}
    rows = pa.table(arrays)
    connection.register("given", rows)
    connection.execute("INSERT INTO people SELECT * FROM given")  # no name of a query is in it
    connection.unregister("given")
    return lock(connection, table_bytes=rows.nbytes)


def _arrow(values: Any) -> Any:
    import pyarrow as pa

    return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)


def example_table(
    n: int = 2000, *, methods: tuple[str, ...] = ("HIO",), epsilon: float = 4.0, seed: int = 1
) -> MemoryTable:
    """People of ages 0 to 19 and three towns, whose system and price are public.

    Person k is k mod 20 years old, lives in town k mod 3, and has the system k mod 2 and the price k mod 7.
    """
    schema = TableSchema(
        "people",
        (PrivateColumn("age", Ordinal(20)), PrivateColumn("town", Categorical(["Bath", "Ely", "Rye"]))),
        (PublicColumn("os", "VARCHAR"), PublicColumn("price", "DOUBLE")),
        methods=methods,
        epsilon=epsilon,
        expected=n if "HDG" in methods else None,
    )
    people = np.arange(n)
    reports = schema.randomize(np.stack([people % 20, people % 3], axis=1), Random(seed=seed))
    public = {"os": np.array(["ios", "web"])[people % 2].tolist(), "price": (people % 7).astype(float)}
    return MemoryTable(schema, reports, public)
