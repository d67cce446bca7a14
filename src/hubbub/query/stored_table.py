"""A table in a DuckDB file or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.errors import InvalidValue, needs
from hubbub.core.reports import Reports
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.query.private_table import BLOCK, Level, PrivateTable
from hubbub.query.sandbox import lock, open_database
from hubbub.query.store_format import DESCRIPTION, PEOPLE, read_description, read_level, reports_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class StoredTable(PrivateTable):
    """A table that `build_table` has made. It is opened for reading alone, and nothing else can be read through it.

    Parameters
    ----------
    path
        A DuckDB file, or a folder of Parquet files.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection, description = _folder(self.path) if self.path.is_dir() else _file(self.path)
        self.schema, self._sizes, self._n = read_description(description)
        self._read: tuple[int, dict[Level, LevelReports]] = (-1, {})

    @property
    def n(self) -> int:
        return self._n

    def connection(self) -> DuckDBPyConnection:
        return self._connection

    def level_sizes(self) -> Mapping[Level, int]:
        return self._sizes

    def reports(self, level: Level, rows: range) -> LevelReports | None:
        block = rows.start // BLOCK
        if self._read[0] != block:
            self._read = block, self._groups(block, rows.start)
        return self._read[1].get(level)

    def _groups(self, block: int, start: int) -> dict[Level, LevelReports]:
        """All reports of a block."""
        name = reports_name(block)
        if self.path.is_dir():
            where = str((self.path / f"{name}.parquet").absolute()).replace("'", "''")
            name = f"read_parquet('{where}')"
        rows = self._connection.execute(f"SELECT level, places, reports FROM {name}").fetchall()  # noqa: S608 # our name
        return {
            read_level(level): LevelReports(
                np.frombuffer(places, dtype="<u4").astype(np.int64) + start, Reports.from_bytes(reports)
            )
            for level, places, reports in rows
        }


def _file(path: Path) -> tuple[DuckDBPyConnection, str]:
    with needs("sql"):
        import duckdb

    if not path.is_file():
        raise InvalidValue("store", str(path), "a DuckDB file, or a folder of Parquet files, that hubbub has made")
    try:
        connection = open_database(str(path), read_only=True)
        rows = connection.execute("SELECT description FROM hubbub").fetchall()
    except duckdb.Error as error:
        raise InvalidValue("store", str(path), f"a table that hubbub has made: {str(error).splitlines()[0]}") from None
    if not rows:
        raise InvalidValue("store", str(path), "a table that was made to its end")
    return lock(connection), str(rows[0][0])


def _folder(path: Path) -> tuple[DuckDBPyConnection, str]:
    try:
        description = (path / DESCRIPTION).read_text(encoding="utf-8")
    except OSError:
        raise InvalidValue("store", str(path), f"a folder with {DESCRIPTION} in it") from None
    connection = open_database()
    where = str((path / PEOPLE).absolute()).replace("'", "''")
    connection.execute(f"CREATE VIEW people AS SELECT * FROM read_parquet('{where}')")  # noqa: S608 # the operator's path
    return lock(connection, [str(path.absolute())]), description
