"""What a shuffler keeps: the reports of batches that still gather, and batches that are made and not yet handed on.

Nothing here says when a report came, from where, or in which order: reports are kept by their random ids. What is
deleted is overwritten.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import Format

FORMAT = Format("shuffler", 1)
_PRAGMAS = ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON")
_ROWS = "SELECT name, version, answer, closes, state, digest, note, size FROM batches"
_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE batches (
        name TEXT PRIMARY KEY, version INTEGER NOT NULL, answer TEXT NOT NULL, closes REAL NOT NULL,
        state TEXT NOT NULL, digest BLOB, note TEXT NOT NULL, size INTEGER NOT NULL, came BLOB, made BLOB
    )""",
    # Without rowids, which would keep the order in which reports came.
    """CREATE TABLE reports (
        batch TEXT NOT NULL, id BLOB NOT NULL, digest BLOB NOT NULL, onion BLOB, PRIMARY KEY (batch, id)
    ) WITHOUT ROWID""",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
)


class BatchRow(NamedTuple):
    """A batch: "gathering" until its time is over, "closed" until it is "made", then "handed" or "dropped".

    `digest` is the hash of what the shuffler before this one handed on; the first shuffler has none. What came and what
    goes on is large, and read by itself.
    """

    name: str
    version: int
    answer: AnswerName
    closes: float
    state: str
    digest: bytes | None
    note: str
    size: int
    """How many reports of devices it has."""


class ShufflerStore:
    """A file of SQLite that one shuffler holds. Every change is on the disk when its call returns.

    Example:
        >>> store = ShufflerStore(":memory:")
        >>> answer = AnswerName("popular", 0, 7, 1, 0)
        >>> with store.transaction():
        ...     store.begin("themes:1:popular:0:7:1:0", 1, answer, 28800.0)
        ...     store.add("themes:1:popular:0:7:1:0", b"i" * 16, b"onion")
        >>> store.onions("themes:1:popular:0:7:1:0"), [row.state for row in store.batches()]
        ([b'onion'], ['gathering'])
    """

    def __init__(self, path: str | Path, *, timeout: float = 5.0) -> None:
        self._lock = threading.RLock()
        try:
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=timeout)
            for pragma in _PRAGMAS:
                self._file.execute(f"PRAGMA {pragma}")
        except sqlite3.Error as error:
            raise InvalidValue(
                "store", str(path), f"a shuffler's store that no other program holds ({error})"
            ) from None
        with self.transaction():
            known = self._file.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
            if known is None:
                for table in _TABLES:
                    self._run(table)
                self.set_note("version", str(FORMAT.version))
            FORMAT.migrate(int(self.note("version") or 0), lambda sql: self._run(sql))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done inside, or nothing."""
        with self._lock:
            if self._file.in_transaction:
                yield
                return
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._file.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.OperationalError):  # SQLite has ended it already where the disk is full
                    self._file.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._file.close()

    # -- reports ----------------------------------------------------------------------------------------------

    def known(self, batch: str, report_id: bytes) -> bytes | None:
        """The hash of the report that came under an id."""
        rows = self._run("SELECT digest FROM reports WHERE batch = ? AND id = ?", batch, report_id)
        return rows[0][0] if rows else None

    def add(self, batch: str, report_id: bytes, onion: bytes) -> None:
        """Keep a report."""
        self._run("INSERT INTO reports VALUES (?, ?, ?, ?)", batch, report_id, report_digest(onion), onion)
        self._run("UPDATE batches SET size = size + 1 WHERE name = ?", batch)

    def onions(self, batch: str) -> list[bytes]:
        """The reports of a batch, in the order of their ids."""
        return [onion for (onion,) in self._run("SELECT onion FROM reports WHERE batch = ? ORDER BY id", batch)]

    # -- batches ----------------------------------------------------------------------------------------------

    def begin(self, name: str, version: int, answer: AnswerName, closes: float, came: bytes | None = None) -> None:
        """A batch gathers from now on, or came whole from the shuffler before."""
        digest = None if came is None else hashlib.sha256(came).digest()
        row = (name, version, str(answer), closes, "gathering", digest, "", 0, came, None)
        self._run("INSERT OR IGNORE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def batches(self) -> list[BatchRow]:
        """All batches that are known."""
        return [_batch_row(row) for row in self._run(f"{_ROWS} ORDER BY closes, name")]

    def batch(self, name: str) -> BatchRow | None:
        """The batch of a name."""
        rows = self._run(f"{_ROWS} WHERE name = ?", name)
        return _batch_row(rows[0]) if rows else None

    def came(self, name: str) -> bytes | None:
        """What the shuffler before this one handed on, until the turn is taken."""
        return self._large("SELECT came FROM batches WHERE name = ?", name)

    def made(self, name: str) -> bytes | None:
        """What goes on, from the turn until it is taken."""
        return self._large("SELECT made FROM batches WHERE name = ?", name)

    def close_batch(self, name: str) -> None:
        """From now on no report is added to a batch: all that was acknowledged is in it."""
        with self.transaction():
            self._run("UPDATE batches SET state = 'closed' WHERE name = ? AND state = 'gathering'", name)

    def make(self, name: str, made: bytes, note: str) -> None:
        """Keep what goes on, and let go of what came: in one transaction, so that there is one order for good."""
        with self.transaction():
            sql = "UPDATE batches SET state = 'made', made = ?, came = NULL, note = ?"
            self._run(f"{sql} WHERE name = ? AND state = 'closed'", made, note, name)
            self._run("UPDATE reports SET onion = NULL WHERE batch = ?", name)

    def end(self, name: str, state: str, note: str) -> None:
        """A batch is "handed" or "dropped": all of it is deleted, but for what tells a repeated upload."""
        with self.transaction():
            sql = "UPDATE batches SET state = ?, came = NULL, made = NULL, note = ? WHERE name = ?"
            self._run(sql, state, note, name)
            self.count(f"batches {state}")
            self.set_note("counts", json.dumps(self.counts()))
            self._run("UPDATE reports SET onion = NULL WHERE batch = ?", name)
        self._tidy()

    def forget(self, names: Sequence[str]) -> None:
        """Delete what is left of batches; none that closed as early is begun again, even if the clock goes back."""
        with self.transaction():
            for name in names:
                batch = self.batch(name)
                if batch is not None and batch.closes > self.forgotten:
                    self.set_note("forgotten", repr(batch.closes))
                self._run("DELETE FROM reports WHERE batch = ?", name)
                self._run("DELETE FROM batches WHERE name = ?", name)
        self._tidy()

    @property
    def forgotten(self) -> float:
        """When the latest batch closed of which nothing is left."""
        return float(self.note("forgotten") or "-inf")

    # -- the rest ---------------------------------------------------------------------------------------------

    def note(self, key: str) -> str | None:
        """A text that was kept."""
        rows = self._run("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    def set_note(self, key: str, value: str) -> None:
        """Keep a text."""
        self._run("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, value)

    def count(self, name: str, times: int = 1) -> None:
        """Count what happened; how often, and not when."""
        sql = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"
        if times:
            self._run(sql, name, times)

    def counts(self) -> dict[str, int]:
        """What happened, and how often."""
        return dict(self._run("SELECT name, count FROM counters ORDER BY name"))

    def _large(self, sql: str, name: str) -> bytes | None:
        rows = self._run(sql, name)
        return rows[0][0] if rows else None

    def _tidy(self) -> None:
        """What was deleted is still in the log until this."""
        with self._lock:
            self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _run(self, sql: str, *values: object) -> list[Any]:
        with self._lock:
            return self._file.execute(sql, values).fetchall()


def _batch_row(row: Sequence[Any]) -> BatchRow:
    return BatchRow(row[0], row[1], AnswerName.read(row[2]), *row[3:])


def report_digest(onion: bytes) -> bytes:
    """By what a repeated upload is known for the same.

    Example:
        >>> len(report_digest(b"onion"))
        16
    """
    return hashlib.sha256(onion).digest()[:16]
