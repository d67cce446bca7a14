"""A store in one SQLite file: the default, with no other program to install or run."""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import make_private_file
from hubbub.random.source import Random
from hubbub.service.store.base import StoreChanges, StoreDamaged, StoreFailed
from hubbub.service.store.checksums import GROWING, check_structure, compared, damaged, query_of
from hubbub.service.store.sql import OWNER, Inspection, Store

PATIENCE = 10.0  # seconds that one process waits for another's transaction
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",  # a commit is on the disk before it is acknowledged
    "fullfsync = ON",  # macOS: through the disk's own cache
    "secure_delete = ON",  # what is deleted is overwritten
)

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file makes SQLite raise: its message may contain bytes of the file."""

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_NEWEST = 256
"""Of each table that grows, at least this many of the newest rows are looked for in its indexes at the start."""

_Identity: TypeAlias = tuple[int, int] | None


class SqliteStore(Store):
    """A file in write-ahead mode, or ":memory:" for tests."""

    types = {"real": "REAL", "bytes": "BLOB", "serial": "INTEGER PRIMARY KEY"}  # noqa: RUF012 - as the base declares it

    def __init__(self, path: str | os.PathLike[str], rng: Random | None = None) -> None:
        self._path = os.fspath(path)
        if not self._path:
            raise InvalidValue("store", path, "a file, or ':memory:'")
        self._opened: list[_Identity] | None = None
        self._leftovers = False
        self._writer = _connect(self._path)
        for pragma in _PRAGMAS:
            self._write(f"PRAGMA {pragma}")
        # A database in memory belongs to its connection.
        self._reader = self._writer if self._path == ":memory:" else _connect(self._path)
        super().__init__(rng)
        self._opened = self._files()

    def commit(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        """Store all of the changes, or none. What is deleted does not stay in any file."""
        with self._writing:
            deleted = super().commit(changes)
            self._leftovers |= bool(deleted)
            if self._leftovers and self._path != ":memory:":
                self._leftovers = not self._empty_log()
        return deleted

    def _empty_log(self) -> bool:
        """Write the log into the database and truncate it: otherwise it keeps pages from before a deletion.

        Returns whether it was done. While someone else reads, such as a backup, it fails; the next commit tries again.
        """
        with self._reading:
            self._write("PRAGMA busy_timeout = 0")
            ((busy, _, _),) = self._write("PRAGMA wal_checkpoint(TRUNCATE)")
            self._write(f"PRAGMA busy_timeout = {round(1000 * PATIENCE)}")
        return not busy

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._write("BEGIN IMMEDIATE")
        try:
            yield
            self._write("COMMIT")
            self._check_place()
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _files(self) -> list[_Identity]:
        """The identities of the files that now have the names of the database and its log."""
        real = os.path.realpath(self._path)
        return [] if self._path == ":memory:" else [_identity(real), _identity(f"{real}-wal")]

    def _check_place(self) -> None:
        """Refuse to acknowledge a commit to a file that was deleted, moved or replaced meanwhile."""
        if self._opened is not None and self._files() != self._opened:
            raise StoreFailed(f"{self._path}: the file, or its -wal, was deleted, moved or replaced while it was open")

    def _write(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._writer.execute(sql, values).fetchall()
        except SQLITE_ERRORS as error:
            raise self._failure(error) from error

    def _write_all(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        try:
            self._writer.executemany(sql, rows)
        except SQLITE_ERRORS as error:
            raise self._failure(error) from error

    def _changed(self, sql: str, *values: object) -> int:
        try:
            return self._writer.execute(sql, values).rowcount
        except SQLITE_ERRORS as error:
            raise self._failure(error) from error

    def _read(self, sql: str, *values: object) -> list[Any]:
        # In memory there is one connection: a query must not see an unfinished transaction.
        with self._writing if self._reader is self._writer else self._reading:
            try:
                return self._reader.execute(sql, values).fetchall()
            except SQLITE_ERRORS as error:
                raise self._failure(error) from error

    def _stream(self, sql: str) -> Iterable[Any]:
        try:
            yield from self._writer.execute(sql)
        except SQLITE_ERRORS as error:
            raise self._failure(error) from error

    def _check_current(self) -> None:
        super()._check_current()
        names = [name for (name,) in self._write("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in names:
            if table in GROWING:
                self._check_newest(table)
            elif not table.startswith("sqlite_"):
                check_structure(self._stream, table)

    def _check_newest(self, table: str) -> None:
        """Compare the newest rows of a table with their checksums, and find each of them by each index.

        A damaged index could hide that a step was asked or released.
        """
        ((snapshots,),) = self._write("SELECT COUNT(*) FROM snapshots")  # two for each question
        newest = f"SELECT rowid AS place, * FROM {table} ORDER BY rowid DESC LIMIT {_NEWEST + 2 * snapshots}"  # noqa: S608
        for row in self._stream(f"{query_of(table)} ORDER BY rowid DESC LIMIT {_NEWEST + 2 * snapshots}"):
            compared(row, table)
        for _, index, *_ in self._write(f"PRAGMA index_list({table})"):
            definitions = self._write("SELECT sql FROM sqlite_master WHERE name = ?", index)
            condition = (definitions[0][0] or "").partition(" WHERE ")[2] or "1"
            columns = [column for _, _, column in self._write(f"PRAGMA index_info({index})")]
            same = " AND ".join(f"found.{column} = newest.{column}" for column in columns)
            ((rows, listed),) = self._write(
                f"""SELECT COUNT(*), SUM(EXISTS (SELECT 1 FROM {table} AS found INDEXED BY {index}
                    WHERE {same} AND found.rowid = newest.place AND {condition}))
                    FROM ({newest}) AS newest WHERE {condition}"""  # noqa: S608 - own names
            )
            if rows != (listed or 0):
                raise damaged(f"rows are missing in the index {index}")

    @contextmanager
    def inspect(self) -> Iterator[Inspection]:
        """A look at all that is stored, on a connection of its own; of a database in memory, on the only one."""
        if self._path == ":memory:":
            yield _SqliteInspection(self._read)
            return
        # Not `_connect`: a file that was deleted must not come back empty.
        place = f"{Path(self._path).absolute().as_uri()}?mode=rw"
        try:
            connection = sqlite3.connect(place, uri=True, timeout=PATIENCE, isolation_level=None)
        except sqlite3.Error as error:
            raise self._failure(error) from error
        try:
            yield _SqliteInspection(lambda sql, *values: connection.execute(sql, values))
        except SQLITE_ERRORS as error:
            raise self._failure(error) from error
        finally:
            connection.close()

    def _failure(self, error: Exception) -> StoreFailed:
        """The error of a statement; if it found damage, nothing is committed any more."""
        undecodable = isinstance(error, UnicodeDecodeError) or "Could not decode" in str(error)
        if undecodable or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            self.damage = StoreDamaged(f"{self._path}: {error}")
            return self.damage
        return StoreFailed(f"{self._path}: {error}")

    def _probe(self, seconds: float) -> list[Any]:
        self._check_place()
        self._write(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
        try:
            with self._transaction():
                return self._write(OWNER)
        finally:
            self._write(f"PRAGMA busy_timeout = {round(1000 * PATIENCE)}")

    def close(self) -> None:
        """Close the connections."""
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()


class _SqliteInspection(Inspection):
    """A look at a file of SQLite. The places of rows are their numbers."""

    def __init__(self, read: Callable[..., Iterable[Any]]) -> None:
        self._read = read

    def check_structure(self) -> None:
        check_structure(self._read)

    def extent(self, table: str) -> range:
        ((first, last),) = self._read(f"SELECT MIN(rowid), MAX(rowid) FROM {table}")  # noqa: S608 - own names
        return range(0) if first is None else range(first, last + 1)

    def rows(self, sql: str, table: str, places: range) -> Iterable[Any]:
        return self._read(f"{sql} WHERE rowid BETWEEN ? AND ?", places.start, places.stop - 1)


def _connect(path: str) -> sqlite3.Connection:
    if path != ":memory:":
        make_private_file(path)  # SQLite would let others read it; it gives -wal and -shm the same permissions
    try:
        return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreFailed(f"{path}: {error}") from error


def _identity(path: str) -> _Identity:
    """Device and inode of a file, if it exists. The file is not opened: closing it would drop SQLite's locks."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
