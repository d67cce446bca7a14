"""Copies a SQLite store in one snapshot, whether or not a collector uses it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from hubbub.core.private_file import make_private_file
from hubbub.service.backup.manifest import BackupRefused
from hubbub.service.store.sqlite import SQLITE_ERRORS

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
    """Make a database one file, without a log beside it."""
    copy.execute("PRAGMA journal_mode = DELETE")


def sqlite_files(path: Path) -> list[Path]:
    """The files of a SQLite database: the database itself, and those that SQLite puts beside it."""
    return [path.with_name(path.name + ending) for ending in ("", "-wal", "-shm", "-journal")]
