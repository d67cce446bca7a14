"""A store in one SQLite file: the default, with nothing to install or to run."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import make_private_file
from hubbub.core.random import Random
from hubbub.service.store.base import StoreChanges, StoreFailed
from hubbub.service.store.sql import OWNER, Store

_PATIENCE = 10.0  # seconds that one process waits for another's transaction
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",  # a commit is on the disk before it is acknowledged
    "fullfsync = ON",  # macOS: through the disk's own cache
    "secure_delete = ON",  # what is deleted is overwritten
)


_Identity: TypeAlias = tuple[int, int] | None


class SqliteStore(Store):
    """A file in write-ahead mode, or ":memory:" for tests.

    Example:
        >>> store = SqliteStore(":memory:")
        >>> store.collections(), store.counts()
        ([], Counter())
        >>> store.close()
    """

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
        super().__init__(rng)
        self._file = _file_of(self._path)
        # A database in memory belongs to its connection.
        self._reader = self._writer if self._path == ":memory:" else _connect(self._path)
        self._opened = self._files()

    def commit(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        """Make all of the changes, or none; what was deleted is in no file any more."""
        with self._writing:
            deleted = super().commit(changes)
            self._leftovers |= bool(deleted)
            if self._leftovers and self._path != ":memory:":
                self._leftovers = not self._empty_log()
        return deleted

    def _empty_log(self) -> bool:
        """Write the log into the database and cut it: pages as they were before a deletion stay in it otherwise.

        Whether it was done: while someone else reads, such as a backup, it cannot be, and is tried at the next commit.
        """
        with self._reading:
            self._write("PRAGMA busy_timeout = 0")
            ((busy, _, _),) = self._write("PRAGMA wal_checkpoint(TRUNCATE)")
            self._write(f"PRAGMA busy_timeout = {round(1000 * _PATIENCE)}")
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
        """Which files are now found under the names of the database and its log."""
        real = os.path.realpath(self._path)
        return [] if self._path == ":memory:" else [_identity(real), _identity(f"{real}-wal")]

    def _check_place(self) -> None:
        """Acknowledge nothing that went into a file which was deleted, moved or replaced meanwhile."""
        if self._opened is not None and self._files() != self._opened:
            raise StoreFailed(f"{self._path}: the file, or its -wal, was deleted, moved or replaced while it was open")

    def _write(self, sql: str, *values: object) -> list[Any]:
        try:
            return self._writer.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StoreFailed(f"{self._path}: {error}") from error

    def _changed(self, sql: str, *values: object) -> int:
        try:
            return self._writer.execute(sql, values).rowcount
        except sqlite3.Error as error:
            raise StoreFailed(f"{self._path}: {error}") from error

    def _read(self, sql: str, *values: object) -> list[Any]:
        # In memory the two connections are one, and a transaction must not be looked into.
        with self._writing if self._reader is self._writer else self._reading:
            try:
                return self._reader.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise StoreFailed(f"{self._path}: {error}") from error

    def _probe(self, seconds: float) -> list[Any]:
        if _file_of(self._path) != self._file:  # what is committed would be lost with the old one
            raise StoreFailed(f"{self._path}: the file is gone, or is another one")
        self._write(f"PRAGMA busy_timeout = {round(1000 * seconds)}")
        try:
            with self._transaction():
                return self._write(OWNER)
        finally:
            self._write(f"PRAGMA busy_timeout = {round(1000 * _PATIENCE)}")

    def close(self) -> None:
        """Let go of the file."""
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()


def _file_of(path: str) -> tuple[int, int] | None:
    """Which file a path names now. It is not opened: to close it again would drop this process's locks on it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _connect(path: str) -> sqlite3.Connection:
    if path != ":memory:":
        make_private_file(path)  # SQLite would let others read it; it gives -wal and -shm the same permissions
    return sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)


def _identity(path: str) -> _Identity:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
