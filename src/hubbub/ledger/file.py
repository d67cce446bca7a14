"""SQLite files whose transactions are on the disk before they return, and state files that no older copy continues."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hubbub.core.errors import HubbubError, InvalidValue, SpecMismatch
from hubbub.core.migrations import Format, UnknownFormat
from hubbub.core.private_file import make_private_file, name_private_file, replace_private_file
from hubbub.core.spec import Json, canonical

_PATIENCE = 30.0  # seconds that one process waits for another to finish its transaction
_PRAGMAS = (
    "journal_mode = DELETE",  # one file, and no other to lose
    "synchronous = EXTRA",  # FULL, and the directory too: a deleted journal must not come back
    "fullfsync = ON",  # macOS: through the disk's own cache
    "secure_delete = ON",  # what is deleted is overwritten
)


class LedgerUnavailable(HubbubError):
    """The ledger's file cannot be read or written: nothing is answered."""


class LedgerFile:
    """A database that several processes share. The terms that it was made with never change.

    Parameters
    ----------
    path
        The file, or ":memory:". A new one can be read by its owner only.
    terms
        The terms of the file, stored when it is made; every later opening must give the same.
    tables
        The statements that make its tables.
    format
        Its version, which is stored with the terms under the format's name: a file of an older one is migrated when
        it is opened, all of it or nothing, and one of a newer version is refused.
    patience
        Seconds to wait for another process.
    words
        For errors: what the file is called, and what has to be made new where the terms are to change.
    kinds
        For errors: what other kinds of files are called, by the names of their formats.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        terms: Mapping[str, Json],
        tables: tuple[str, ...],
        format: Format,
        *,
        patience: float = _PATIENCE,
        words: tuple[str, str] = ("ledger", "collection"),
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self._kinds = dict(kinds or {})
        self._patience, (self._kind, self._anew) = patience, words
        if not self._path:
            # SQLite would make a file that is deleted on closing.
            raise InvalidValue("path", path, "a file, or ':memory:'")
        self._lock = threading.RLock()
        self._pid = os.getpid()
        present = {**terms, format.name: format.version}
        if self._path == ":memory:":
            self._open(self._path, lambda: self._begin(present, tables))
            return
        if not os.path.lexists(os.path.realpath(self._path)):
            self._make(present, tables)
        self._open(self._path, lambda: self._agree(present, format))

    def _open(self, path: str, first: Callable[[], None]) -> None:
        self._database = _connect(path, self._patience)
        try:
            for pragma in _PRAGMAS:
                self.run(f"PRAGMA {pragma}")
            with self.transaction():
                first()
        except BaseException:
            self.close()
            raise

    def _make(self, present: Mapping[str, Json], tables: tuple[str, ...]) -> None:
        """Make the whole file before it gets its name, so that a file without tables is one that has lost them."""
        fresh = f"{os.path.realpath(self._path)}.{os.urandom(8).hex()}.new"
        try:
            make_private_file(fresh)  # SQLite would let others read it
            self._open(fresh, lambda: self._begin(present, tables))
            self.close()
            name_private_file(fresh, self._path)
        except OSError as error:
            raise LedgerUnavailable(f"{self._path}: {error}") from error

    def close(self) -> None:
        """Close the file. A forked process leaves that to its parent, whose transaction would be rolled back."""
        if os.getpid() == self._pid:
            self._database.close()

    def run(self, sql: str, *values: object) -> list[Any]:
        """Run one statement, and return its rows."""
        try:
            return self._database.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise LedgerUnavailable(f"{self._path}: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: on the disk when it ends, and without any effect if it raises or the device stops."""
        if os.getpid() != self._pid:
            raise LedgerUnavailable(f"{self._path}: opened before a fork; each process opens its own")
        with self._lock:
            if self._inside():
                raise LedgerUnavailable(f"{self._path}: used again from within one of its own transactions")
            # The write lock comes first: two processes that both read the same remainder would both spend it.
            self.run("BEGIN IMMEDIATE")
            try:
                yield
                self.run("COMMIT")
            except BaseException:
                if self._inside():
                    self.run("ROLLBACK")
                raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of a transaction: if it raises, it is undone, and the rest of the transaction stands."""
        self.run("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self._inside():  # SQLite itself ends the transaction when the disk is full
                self.run("ROLLBACK TO part")
                self.run("RELEASE part")
            raise
        self.run("RELEASE part")

    def _inside(self) -> bool:
        return self._database.in_transaction

    def _begin(self, present: Mapping[str, Json], tables: tuple[str, ...]) -> None:
        for table in ("CREATE TABLE terms (terms TEXT NOT NULL)", *tables):
            self.run(table)
        self.run("INSERT INTO terms VALUES (?)", canonical(dict(present)))

    def _agree(self, present: Mapping[str, Json], format: Format) -> None:
        names = {name for (name,) in self.run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not names:
            raise LedgerUnavailable(f"{self._path}: empty; a {self._kind} that was lost is not replaced by a new one")
        if "terms" not in names:
            raise LedgerUnavailable(f"{self._path}: not a {self._kind}")
        terms = self._terms()
        for name in self._kinds.keys() & terms.keys() - {format.name}:
            raise LedgerUnavailable(f"{self._path}: not {self._kinds[format.name]}, but {self._kinds[name]}")
        try:
            migrated = format.migrate(terms.get(format.name), self.run)
        except UnknownFormat as error:
            raise LedgerUnavailable(f"{self._path}: {error}") from error
        stored = {**self._terms(), format.name: format.version}  # a migration may have changed the terms, too
        if migrated:
            self.run("UPDATE terms SET terms = ?", canonical(stored))
        wanted = json.loads(canonical(dict(present)))
        for name in sorted(stored.keys() | wanted.keys()):
            if stored.get(name) != wanted.get(name):
                change = f"a change is a new {self._anew}, with a new file"
                allowed = f"{stored.get(name)!r}, as this {self._kind} has it; {change}"
                raise SpecMismatch(name, wanted.get(name), allowed)

    def _terms(self) -> dict[str, Any]:
        ((text,),) = self.run("SELECT terms FROM terms")
        stored: dict[str, Any] = json.loads(text)
        return stored


def _connect(path: str, patience: float) -> sqlite3.Connection:
    try:
        # SQLite must not make the file: a file that is missing was lost.
        name = path if path == ":memory:" else f"{Path(path).absolute().as_uri()}?mode=rw"
        return sqlite3.connect(
            name, timeout=patience, isolation_level=None, check_same_thread=False, uri=path != ":memory:"
        )
    except (OSError, sqlite3.Error) as error:
        raise LedgerUnavailable(f"{path}: {error}") from error


def stored_terms(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The terms that a state file was begun with, its format among them; nothing of it is changed."""
    name = os.fspath(path)
    try:
        database = sqlite3.connect(f"{Path(name).absolute().as_uri()}?mode=ro", timeout=0.0, uri=True)
        try:
            ((text,),) = database.execute("SELECT terms FROM terms").fetchall()
        finally:
            database.close()
        stored: dict[str, Any] = json.loads(text)
    except (sqlite3.Error, ValueError) as error:
        if "locked" in str(error):
            raise StateInUse(f"{name}: {_IN_USE}") from error
        raise LedgerUnavailable(f"{name}: not a state file: {error}") from error
    return stored


_IN_USE = "another process is releasing with this state file"
_KINDS = {
    "release_format": "the state of a curator's release (without --local)",
    "local_release_format": "the state of a release by devices (with --local)",
    "sums_format": "the state of a curator's running sums",
}
"""What the files are called in errors, by the names of their formats."""


class StateInUse(HubbubError):
    """Another process has the state file open: two would spend on the same values."""


class CountedFile:
    """A `LedgerFile` that one process has open at a time, with a counter next to it by which an older copy is detected.

    The owner stores the number of changes in its tables, calls `check` with it on opening, and `mark` after each
    change. The counter is in a second file, whose name ends in `.count`. Restoring older copies of both files is not
    detected.

    `path`, `terms`, `tables`, `format`: as of `LedgerFile`. `load`: called within the opening transaction; if it
    raises, the file is closed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        terms: Mapping[str, Json],
        tables: tuple[str, ...],
        format: Format,
        load: Callable[[CountedFile], None],
    ) -> None:
        self.path = Path(path)
        self._counter = self.path.with_name(self.path.name + ".count")
        words = ("release's state file", "release")
        try:
            self._file = LedgerFile(path, terms, tables, format, patience=0.0, words=words, kinds=_KINDS)
        except LedgerUnavailable as error:
            raise self._explained(error) from error
        self.run, self.transaction, self.close = self._file.run, self._file.transaction, self._file.close
        try:
            self.run("PRAGMA locking_mode = EXCLUSIVE")
            with self.transaction():
                damage = self.run("PRAGMA integrity_check")
                if damage != [("ok",)]:
                    raise LedgerUnavailable(f"{self.path}: damaged: {damage[0][0]}")
                load(self)
        except LedgerUnavailable as error:
            self.close()
            raise self._explained(error) from error
        except BaseException:
            self.close()
            raise

    def _explained(self, error: LedgerUnavailable) -> HubbubError:
        if "locked" in str(error):
            return StateInUse(f"{self.path}: {_IN_USE}")
        return error

    def check(self, number: int) -> None:
        """Refuse a state after `number` changes if the counter is higher; 0 means that the state is new."""
        counted = self._count()
        if counted is None and number == 0:
            self.mark(0)  # before the first change, so that a process that stops right after it leaves both files
        if counted is None and number:
            allowed = f"the file {self._counter.name} next to it, without which an older copy cannot be detected"
            raise InvalidValue("state", str(self.path), allowed)
        if counted is not None and counted > number:
            age = f"older (after {number})" if number else "new"
            raise InvalidValue("state", str(self.path), f"the state after {counted} changes: this one is {age}")

    def mark(self, number: int) -> None:
        """Raise the counter, after the state was written: a state behind the counter was restored from a copy."""
        replace_private_file(self._counter, str(number).encode())

    def _count(self) -> int | None:
        try:
            return int(self._counter.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except ValueError:
            raise InvalidValue("state", str(self._counter), "a number: the file is cut short or another's") from None
