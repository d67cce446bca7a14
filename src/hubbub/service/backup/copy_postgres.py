"""Copies the tables of a PostgreSQL store to a SQLite file in one snapshot, and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import needs
from hubbub.service.backup.copy_sqlite import make_single_file
from hubbub.service.backup.manifest import BackupRefused
from hubbub.service.store.migrations import VERSION
from hubbub.service.store.postgres import PostgresStore, connect
from hubbub.service.store.sqlite import SqliteStore

if TYPE_CHECKING:
    import psycopg

_ROWS = 500
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"


def copy_postgres(url: str, target: Path) -> None:
    """Copy the tables into a new SQLite file, in one snapshot. The collector may go on meanwhile."""
    SqliteStore(target).close()  # the same tables, empty
    with _connected(url) as source, closing(sqlite3.connect(target)) as copy:
        from psycopg import IsolationLevel

        source.isolation_level, source.read_only = IsolationLevel.REPEATABLE_READ, True
        with source.transaction():
            _check_version(source)
            for table, columns in _tables(copy).items():
                copy.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own tables
                marks = ", ".join("?" * len(columns))
                with source.cursor(name=table) as rows:
                    rows.execute(f"SELECT {', '.join(columns)} FROM {table}".encode())  # noqa: S608
                    while chunk := rows.fetchmany(_ROWS):
                        copy.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", chunk)  # noqa: S608
        copy.commit()
        make_single_file(copy)


def postgres_in_use(url: str) -> bool:
    """Whether a database holds a store that is not empty."""
    with _connected(url) as target:
        existing = {table for (table,) in target.execute(_TABLES).fetchall()}
        return "meta" in existing and any(
            target.execute(f"SELECT 1 FROM {table} LIMIT 1".encode()).fetchall()  # noqa: S608
            for table in ("collections", "counts", "asks", "releases")
            if table in existing
        )


def fill_postgres(source: Path, url: str) -> None:
    """Fill an empty database with the tables of a backup, in one transaction."""
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as backup:
        _check_version(backup)
        PostgresStore(url).close()  # the same tables, empty
        with _connected(url) as target, target.transaction():
            _fill(backup, target)


def _fill(backup: sqlite3.Connection, target: psycopg.Connection[Any]) -> None:
    for table, columns in _tables(backup).items():
        target.execute(f"DELETE FROM {table}".encode())  # noqa: S608
        rows = backup.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608
        with target.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as into:
            for row in rows:
                into.write_row(row)
        if "number" in columns:
            target.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'number'), MAX(number)) FROM {table}".encode()  # noqa: S608
            )


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    with needs("server"):
        import psycopg
    try:
        with connect(url) as connection:
            connection.execute("SET statement_timeout = 0")  # copying a whole table may take long
            yield connection
    except psycopg.Error as error:
        raise BackupRefused(f"PostgreSQL: {error}") from error


def _check_version(database: Any) -> None:
    ((version,),) = database.execute("SELECT value FROM meta WHERE key = 'version'").fetchall()
    if version != str(VERSION):
        raise BackupRefused(f"tables of version {version}; PostgreSQL is copied in version {VERSION}: start it once")


def _tables(database: sqlite3.Connection) -> dict[str, list[str]]:
    """The names of the tables and of their columns."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return {
        name: [column for (column,) in database.execute("SELECT name FROM pragma_table_info(?)", (name,))]
        for (name,) in names.fetchall()
    }
