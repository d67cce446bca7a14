"""A copy of a SQLite store as it is at one moment, whether a collector is at work or not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from hubbub.core.private_file import make_private_file
from hubbub.service.backup.manifest import BackupRefused

_PATIENCE = 30.0


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a store to a new file, all at one moment; the collector goes on meanwhile.

    Example:
        >>> import tempfile
        >>> from hubbub.service.store.sqlite import SqliteStore
        >>> folder = Path(tempfile.mkdtemp())
        >>> SqliteStore(folder / "store.db").close()
        >>> copy_sqlite(folder / "store.db", folder / "copy.db")
        >>> sorted(path.name for path in folder.iterdir())
        ['copy.db', 'store.db']
    """
    if not source.is_file():
        raise BackupRefused(f"{source}: there is no such store")
    make_private_file(target)
    try:
        # Opened to write, which it does not: after a crash the log is part of the database, and must be recovered.
        address = f"{source.absolute().as_uri()}?mode=rw"
        with (
            closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as live,
            closing(sqlite3.connect(target)) as copy,
        ):
            live.backup(copy)  # in one go, which is one moment
            alone(copy)
    except sqlite3.Error as error:
        raise BackupRefused(f"{source}: {error}") from error


def alone(copy: sqlite3.Connection) -> None:
    """Make a database one file, without a log beside it."""
    copy.execute("PRAGMA journal_mode = DELETE")


def sqlite_files(path: Path) -> list[Path]:
    """The files that belong to a database of this name: itself, and what SQLite puts beside it.

    Example:
        >>> [path.name for path in sqlite_files(Path("store.db"))]
        ['store.db', 'store.db-wal', 'store.db-shm', 'store.db-journal']
    """
    return [path.with_name(path.name + ending) for ending in ("", "-wal", "-shm", "-journal")]
