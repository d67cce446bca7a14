"""The manifest of a backup, and consistent copies of the databases of both stores."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import HubbubError, needs
from hubbub.core.private_file import make_private_file
from hubbub.service.store.joined import JOINT, JOINT_COPIED, leave_to_one, owner_of
from hubbub.service.store.postgres import PostgresStore, connect
from hubbub.service.store.schema import VERSION
from hubbub.service.store.sql import SET_META
from hubbub.service.store.sqlite import SQLITE_ERRORS, SqliteStore

if TYPE_CHECKING:
    import psycopg

MANIFEST = "manifest.json"
DATABASE = "store.db"
REPORTS = "reports"
_FORMAT = 1
_CHUNK = 1 << 20
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NAME = re.compile(rf"{re.escape(DATABASE)}|{REPORTS}/[a-z0-9_-]+\.parquet")


class BackupRefused(HubbubError):
    """A backup cannot be made, is damaged, or cannot be restored to the given place. Nothing was changed."""


@dataclass(frozen=True)
class BackupFile:
    """A file of a backup, with its size and checksum."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """When a backup was made, by which version and from which kind of store, and its files, the database first."""

    made: float
    hubbub: str
    store: str
    files: tuple[BackupFile, ...]

    @property
    def reports(self) -> list[str]:
        """The names of the files of single reports."""
        return [Path(file.name).name for file in self.files if file.name != DATABASE]

    def write(self, folder: Path) -> None:
        """Write the manifest durably. It is written last: a folder without it is no backup."""
        document = {
            "format": _FORMAT,
            "made": self.made,
            "hubbub": self.hubbub,
            "store": self.store,
            "files": [vars(file) for file in self.files],
        }
        descriptor = os.open(folder / MANIFEST, _NEW_FILE, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder; `BackupRefused` if there is none, or it is invalid."""
        try:
            document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if document["format"] != _FORMAT:
                raise BackupRefused(f"{folder}: of format {document['format']}; this version reads {_FORMAT}")
            files = tuple(
                BackupFile(str(entry["name"]), int(entry["bytes"]), entry["sha256"]) for entry in document["files"]
            )
            manifest = cls(float(document["made"]), str(document["hubbub"]), str(document["store"]), files)
        except FileNotFoundError:
            raise BackupRefused(f"{folder}: not a backup, or one that was not finished: no {MANIFEST}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise BackupRefused(f"{folder}: {MANIFEST} cannot be read: {error}") from error
        # The names become paths: none may lead out of the folder.
        names = [file.name for file in files]
        if names[:1] != [DATABASE] or len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
            raise BackupRefused(f"{folder}: {MANIFEST} names files that no backup has")
        return manifest


def copy_file(source: Path, target: Path) -> BackupFile:
    """Copy a file durably to a new file that only its owner can read. Returns the name, size and checksum of the copy.

    Must not be used on a database that this process has open: closing the source would drop SQLite's locks.
    """
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as original, open(os.open(target, _NEW_FILE, 0o600), "wb") as file:
        while chunk := original.read(_CHUNK):
            digest.update(chunk)
            size += file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return BackupFile(target.name, size, digest.hexdigest())


_PATIENCE = 30.0


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a store to a new file, in one snapshot. The collector may go on meanwhile."""
    if not source.is_file():
        raise BackupRefused(f"{source}: there is no such store")
    make_private_file(target)
    try:
        # Nothing is written, but after a crash SQLite must recover the log, which needs write access.
        address = f"{source.absolute().as_uri()}?mode=rw"
        with (
            closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as live,
            closing(sqlite3.connect(target)) as copy,
        ):
            live.backup(copy)  # all pages in one call, and so in one snapshot
            make_single_file(copy)
    except SQLITE_ERRORS as error:
        raise BackupRefused(f"{source}: {error}") from error


def make_single_file(copy: sqlite3.Connection) -> None:
    """Make a database one file, without a log next to it."""
    copy.execute("PRAGMA journal_mode = DELETE")


def sqlite_files(path: Path) -> list[Path]:
    """The files of a SQLite database: the database itself, and those that SQLite puts next to it."""
    return [path.with_name(path.name + ending) for ending in ("", "-wal", "-shm", "-journal")]


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
            _add_processes(source, copy)
        copy.commit()
        make_single_file(copy)


def _add_processes(source: psycopg.Connection[Any], copy: sqlite3.Connection) -> None:
    """Add what each of several processes counted: a restored store belongs to one."""

    def run(sql: str, *values: object) -> list[Any]:
        return copy.execute(sql, values).fetchall()

    if not owner_of(run).startswith(JOINT):
        return
    for table, columns in JOINT_COPIED.items():
        run(f"CREATE TEMP TABLE {table} ({', '.join(columns)})")
        rows = source.execute(f"SELECT {', '.join(columns)} FROM {table}".encode()).fetchall()  # noqa: S608
        copy.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)  # noqa: S608
    leave_to_one(run)
    for table in JOINT_COPIED:
        run(f"DROP TABLE {table}")
    run(SET_META, "owner", "")


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
