"""A store in one SQLite file: the default, with no other program to install or run."""

import os
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import make_private_file
from hubbub.random.source import Random
from hubbub.service.store.base import StoreChanges, StoreFailed
from hubbub.service.store.sql import OWNER, Store, sqlite_damage

PATIENCE = 10.0  # seconds that one process waits for another's transaction
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",  # a commit is on the disk before it is acknowledged
    "fullfsync = ON",  # macOS: through the disk's own cache
    "secure_delete = ON",  # what is deleted is overwritten
)

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file makes SQLite raise: its message may contain bytes of the file."""

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
            raise StoreFailed(f"{self._path}: {error}") from error

    def _changed(self, sql: str, *values: object) -> int:
        try:
            return self._writer.execute(sql, values).rowcount
        except SQLITE_ERRORS as error:
            raise StoreFailed(f"{self._path}: {error}") from error

    def _read(self, sql: str, *values: object) -> list[Any]:
        # In memory there is one connection: a query must not see an unfinished transaction.
        with self._writing if self._reader is self._writer else self._reading:
            try:
                return self._reader.execute(sql, values).fetchall()
            except SQLITE_ERRORS as error:
                raise StoreFailed(f"{self._path}: {error}") from error

    def _stream(self, sql: str) -> Iterable[Any]:
        try:
            yield from self._writer.execute(sql)
        except SQLITE_ERRORS as error:
            raise StoreFailed(f"{self._path}: {error}") from error

    def _damage(self) -> str | None:
        return sqlite_damage(self._stream)

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
