"""A table in a DuckDB file or a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.query.private_table import BLOCK, Level, PrivateTable
from hubbub.query.sandbox import lock, open_database
from hubbub.query.store_format import DESCRIPTION, PEOPLE, REPORTS, level_name, read_description, read_level

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class StoredTable(PrivateTable):
    """A table that `build_table` has made. It is opened for reading alone, and nothing else can be read through it.

    Parameters
    ----------
    path
        A DuckDB file, or a folder of Parquet files.

    Example:
        >>> import tempfile, hubbub as hb
        >>> from hubbub.query.build import build_table
        >>> from hubbub.query.schema import PrivateColumn, PublicColumn, TableSchema
        >>> schema = TableSchema("people", (PrivateColumn("age", hb.Ordinal(9)),), (PublicColumn("price", "DOUBLE"),))
        >>> path = Path(tempfile.mkdtemp()) / "store.duckdb"
        >>> build_table(path, schema, [{"age": [3, 8], "price": [2.5, 4.0]}], rng=hb.Random(seed=1))
        2
        >>> StoredTable(path).schema == schema
        True
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection, description = _folder(self.path) if self.path.is_dir() else _file(self.path)
        self.schema, self._n = read_description(description)
        rows = self._connection.execute("SELECT level, SUM(n) FROM reports GROUP BY level").fetchall()
        self._sizes = {read_level(name): int(size) for name, size in rows}

    @property
    def n(self) -> int:
        return self._n

    def connection(self) -> DuckDBPyConnection:
        return self._connection

    def level_sizes(self) -> Mapping[Level, int]:
        return self._sizes

    def reports(self, level: Level, rows: range) -> LevelReports | None:
        text = "SELECT places, reports FROM reports WHERE block = ? AND level = ?"
        found = self._connection.execute(text, [rows.start // BLOCK, level_name(level)]).fetchall()
        if not found:
            return None
        places = np.frombuffer(found[0][0], dtype="<u4").astype(np.int64) + rows.start
        return LevelReports(places, Reports.from_bytes(found[0][1]))


def _file(path: Path) -> tuple[DuckDBPyConnection, str]:
    import duckdb

    if not path.is_file():
        raise InvalidValue("store", str(path), "a DuckDB file, or a folder of Parquet files, that hubbub has made")
    try:
        connection = open_database(str(path), read_only=True)
        found = connection.execute("SELECT description FROM hubbub").fetchall()
    except duckdb.Error as error:
        raise InvalidValue("store", str(path), f"a table that hubbub has made: {str(error).splitlines()[0]}") from None
    if not found:
        raise InvalidValue("store", str(path), "a table that was made to its end")
    return lock(connection), str(found[0][0])


def _folder(path: Path) -> tuple[DuckDBPyConnection, str]:
    try:
        description = (path / DESCRIPTION).read_text(encoding="utf-8")
    except OSError:
        raise InvalidValue("store", str(path), f"a folder with {DESCRIPTION} in it") from None
    connection = open_database()
    for view, name in (("people", PEOPLE), ("reports", REPORTS)):
        where = str((path / name).absolute()).replace("'", "''")
        connection.execute(f"CREATE VIEW {view} AS SELECT * FROM read_parquet('{where}')")  # noqa: S608 # the operator's path
    return lock(connection, [str(path.absolute())]), description
