"""How a table is stored: public columns, the reports of each block, and the schema; in DuckDB or in Parquet."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from hubbub.core.errors import InvalidValue, needs
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.query.sandbox import MEMORY, open_database, quote_name
from hubbub.query.schema import BLOCK, ROW, Level, TableSchema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter as ParquetFile

FORMAT = 1
DESCRIPTION = "hubbub.json"
PEOPLE = "people.parquet"


def reports_name(block: int) -> str:
    """What the reports of a block stand in: a table, or a file with .parquet behind it."""
    return f"reports_{block}"


def level_name(level: Level) -> str:
    """A level as a word."""
    return ".".join(map(str, level))


def read_level(name: str) -> Level:
    """The level that a word names."""
    return tuple(int(part) for part in name.split("."))


class StoredLevel(TypedDict):
    """The reports of a block on one level: how many, where they stand in the block, and the reports as bytes."""

    level: str
    n: int
    places: bytes
    reports: bytes


def pack_reports(start: int, groups: Mapping[Level, LevelReports]) -> list[StoredLevel]:
    """The reports of a block as rows, one per level."""
    return [
        {
            "level": level_name(level),
            "n": int(group.rows.size),
            "places": np.asarray(group.rows - start, dtype="<u4").tobytes(),
            "reports": group.reports.to_bytes(),
        }
        for level, group in groups.items()
        if group.rows.size
    ]


class StoreWriter(ABC):
    """Takes the blocks of a table one after the other, and its description at the end."""

    @abstractmethod
    def people(self, rows: pa.Table) -> None:
        """Add the public columns of a block."""

    @abstractmethod
    def reports(self, block: int, rows: list[StoredLevel]) -> None:
        """Add the reports of a block."""

    @abstractmethod
    def describe(self, description: str) -> None:
        """Write the description of the table; a store without a description is refused."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""


class DuckWriter(StoreWriter):
    """Writes a DuckDB file."""

    def __init__(self, path: Path, schema: TableSchema) -> None:
        self._connection = open_database(str(path))
        self._connection.execute(f"SET memory_limit='{MEMORY}MB'")
        declared = "".join(f", {quote_name(column.name)} {column.type}" for column in schema.public)
        self._connection.execute(f"CREATE TABLE people ({quote_name(ROW)} BIGINT{declared})")

    def people(self, rows: pa.Table) -> None:
        self._insert("people", rows)

    def reports(self, block: int, rows: list[StoredLevel]) -> None:
        import pyarrow as pa

        name = reports_name(block)
        self._connection.execute(f"CREATE TABLE {name} (level VARCHAR, n INTEGER, places BLOB, reports BLOB)")
        self._insert(name, pa.Table.from_pylist(rows, schema=reports_schema()))

    def _insert(self, name: str, rows: pa.Table) -> None:
        self._connection.register("given", rows)
        self._connection.execute(f"INSERT INTO {name} SELECT * FROM given")  # noqa: S608 # one of our own names
        self._connection.unregister("given")

    def describe(self, description: str) -> None:
        self._connection.execute("CREATE TABLE hubbub (description VARCHAR)")
        self._connection.execute("INSERT INTO hubbub VALUES (?)", [description])

    def close(self) -> None:
        self._connection.close()


class ParquetWriter(StoreWriter):
    """Writes a folder of Parquet files."""

    def __init__(self, path: Path, schema: TableSchema) -> None:
        path.mkdir()
        self._folder = path
        self._people: ParquetFile | None = None

    def people(self, rows: pa.Table) -> None:
        import pyarrow.parquet as pq

        if self._people is None:
            self._people = pq.ParquetWriter(self._folder / PEOPLE, rows.schema)
        self._people.write_table(rows)

    def reports(self, block: int, rows: list[StoredLevel]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(rows, schema=reports_schema())
        pq.write_table(table, self._folder / f"{reports_name(block)}.parquet")

    def describe(self, description: str) -> None:
        (self._folder / DESCRIPTION).write_text(description, encoding="utf-8")

    def close(self) -> None:
        if self._people is not None:
            self._people.close()


def reports_schema() -> pa.Schema:
    """The columns of stored reports, as Arrow has them."""
    with needs("sql"):
        import pyarrow as pa

    kinds = {"level": pa.string(), "n": pa.int32(), "places": pa.binary(), "reports": pa.binary()}
    return pa.schema(list(map(pa.field, kinds, kinds.values())))


def description_of(schema: TableSchema, sizes: Mapping[Level, int], n: int) -> str:
    """What a store holds, as JSON."""
    levels = {level_name(level): int(size) for level, size in sizes.items()}
    return json.dumps({"format": FORMAT, "block": BLOCK, "n": n, "levels": levels, "schema": schema.spec()})


def read_description(text: str) -> tuple[TableSchema, dict[Level, int], int]:
    """The schema, the reports on each level, and the people of a store; one of another format is refused.

    Example:
        >>> read_description('{"format": 9, "block": 262144}')
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: format: got 9; allowed: 1: the store is of another version of hubbub
    """
    try:
        description = json.loads(text)
        if description["format"] != FORMAT or description["block"] != BLOCK:
            raise InvalidValue("format", description["format"], f"{FORMAT}: the store is of another version of hubbub")
        levels = {read_level(name): int(size) for name, size in description["levels"].items()}
        return TableSchema.from_spec(description["schema"]), levels, int(description["n"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue("store", text[:60], f"a table that hubbub has made: {error}") from None
