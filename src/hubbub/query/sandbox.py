"""DuckDB connections that no query can make read a file or reach a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hubbub.core.errors import needs

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


MEMORY = 512
"""The megabytes that DuckDB may take besides tables in memory, however large a store or an intermediate result is."""


def open_database(path: str = ":memory:", *, read_only: bool = False) -> DuckDBPyConnection:
    """Open a connection. It must be locked (`lock`) before text of a query reaches it."""
    with needs("sql"):
        import duckdb
        import pyarrow  # noqa: F401  # whoever opens a database hands Arrow tables to it
    return duckdb.connect(path, read_only=read_only)


def lock(connection: DuckDBPyConnection, folders: Sequence[str] = (), *, table_bytes: int = 0) -> DuckDBPyConnection:
    """Limit a connection, for good, to its own database and an amount of memory.

    Parameters
    ----------
    connection
        What is limited.
    folders
        Whose files may still be read.
    table_bytes
        The size of the tables that the database holds in memory.
    """
    if folders:
        listed = ", ".join("'" + folder.replace("'", "''") + "'" for folder in folders)
        connection.execute(f"SET allowed_directories=[{listed}]")
    for setting in (
        f"memory_limit='{MEMORY + 2 * table_bytes // 1_000_000}MB'",
        "temp_directory=''",  # a result that does not fit into memory is refused, and not written to a disk
        "python_enable_replacements=false",  # no query can name a variable of this program
        "autoinstall_known_extensions=false",
        "autoload_known_extensions=false",
        "enable_external_access=false",
        "lock_configuration=true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def quote_name(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'
