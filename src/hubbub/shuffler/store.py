"""The store of a shuffler: reports of batches that gather, and shuffled batches that are not handed on yet.

Nothing in it tells when a report came, from where, or in which order: reports are sorted by their random ids. Deleted
data is overwritten.
"""

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
from hubbub.core.private_file import make_private_file
from hubbub.service.store.sqlite import SQLITE_ERRORS

FORMAT = Format("shuffler", 1)
ENDED = ("handed", "dropped")
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
    # Of batches of shares: the secret seed and what was done, masks, and messages of other shufflers and to them.
    """CREATE TABLE turns (
        batch TEXT PRIMARY KEY, seed BLOB NOT NULL, layer TEXT NOT NULL, steps INTEGER NOT NULL
    )""",
    "CREATE TABLE masks (batch TEXT NOT NULL, number INTEGER NOT NULL, made BLOB, PRIMARY KEY (batch, number))",
    """CREATE TABLE messages (
        batch TEXT NOT NULL, sender INTEGER NOT NULL, topic TEXT NOT NULL, digest BLOB NOT NULL, sealed BLOB,
        PRIMARY KEY (batch, sender, topic)
    )""",
    """CREATE TABLE sending (
        batch TEXT NOT NULL, receiver INTEGER NOT NULL, topic TEXT NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (batch, receiver, topic)
    )""",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
)


class BatchRow(NamedTuple):
    """A batch. Its state is "gathering", "closed", "made" (shuffled), and at last "handed" (on) or "dropped".

    A batch of shares is "listed" once the others were told which of them can be read.

    `digest` is the hash of the batch that the previous shuffler handed on; the first shuffler has none. The contents of
    a batch are large, and are read separately (`incoming`, `outgoing`).
    """

    name: str
    version: int
    answer: AnswerName
    closes: float
    state: str
    digest: bytes | None
    note: str
    size: int
    """The number of reports from devices."""


class ShufflerStore:
    """An SQLite file that one shuffler holds open. Every change is on the disk when its call returns."""

    def __init__(self, path: str | Path, *, timeout: float = 5.0) -> None:
        self._lock = threading.RLock()
        if str(path) != ":memory:":
            make_private_file(path)  # SQLite would let others read it
        self._file = _connect(path, timeout)
        try:
            for pragma in _PRAGMAS:
                self.run(f"PRAGMA {pragma}")
            with self.transaction():
                self._bring_up_to_date()
        except BaseException as error:
            self.close()
            if isinstance(error, SQLITE_ERRORS):
                raise _unusable(path, error) from None
            raise

    def _bring_up_to_date(self) -> None:
        """Create the tables, or migrate those of an older version; refuse a damaged file."""
        damage = self.run("PRAGMA integrity_check(1)")
        if damage != [("ok",)]:
            raise sqlite3.DatabaseError(f"damaged: {damage[0][0]}")
        if not self.run("SELECT 1 FROM sqlite_master WHERE name = 'meta'"):
            for table in _TABLES:
                self.run(table)
            self.set_note("version", str(FORMAT.version))
        version = self.note("version") or "none"
        FORMAT.migrate(int(version) if version.isdecimal() else version, lambda sql: self.run(sql))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes inside the block, or none."""
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
        """Close the file."""
        with self._lock:
            self._file.close()

    # -- reports ----------------------------------------------------------------------------------------------

    def known(self, batch: str, report_id: bytes) -> bytes | None:
        """The hash of the stored report with an id; None if there is none."""
        rows = self.run("SELECT digest FROM reports WHERE batch = ? AND id = ?", batch, report_id)
        return rows[0][0] if rows else None

    def add(self, batch: str, report_id: bytes, onion: bytes) -> None:
        self.run("INSERT INTO reports VALUES (?, ?, ?, ?)", batch, report_id, report_digest(onion), onion)
        self.run("UPDATE batches SET size = size + 1 WHERE name = ?", batch)

    def reports(self, batch: str) -> list[tuple[bytes, bytes]]:
        """The ids and reports of a batch that has not ended, in the order of the ids."""
        return self.run("SELECT id, onion FROM reports WHERE batch = ? AND onion IS NOT NULL ORDER BY id", batch)

    # -- batches ----------------------------------------------------------------------------------------------

    def begin(self, name: str, version: int, answer: AnswerName, closes: float, incoming: bytes | None = None) -> None:
        """Begin a batch: one that gathers reports, or a whole one from the previous shuffler."""
        digest = None if incoming is None else hashlib.sha256(incoming).digest()
        row = (name, version, str(answer), closes, "gathering", digest, "", 0, incoming, None)
        self.run("INSERT OR IGNORE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def batches(self) -> list[BatchRow]:
        return [_batch_row(row) for row in self.run(f"{_ROWS} ORDER BY closes, name")]

    def batch(self, name: str) -> BatchRow | None:
        rows = self.run(f"{_ROWS} WHERE name = ?", name)
        return _batch_row(rows[0]) if rows else None

    def incoming(self, name: str) -> bytes | None:
        """The batch from the previous shuffler, until this shuffler has shuffled it."""
        return self._large("SELECT came FROM batches WHERE name = ?", name)

    def outgoing(self, name: str) -> bytes | None:
        """The shuffled batch, until it is handed on."""
        return self._large("SELECT made FROM batches WHERE name = ?", name)

    def close_batch(self, name: str) -> None:
        """Close a batch: it has all acknowledged reports, and no report is added any more."""
        with self.transaction():
            self.run("UPDATE batches SET state = 'closed' WHERE name = ? AND state = 'gathering'", name)

    def keep_outgoing(self, name: str, outgoing: bytes, note: str) -> bool:
        """Replace the incoming batch by the shuffled one, in one transaction: a batch is shuffled in one order only.

        Returns whether it was still there: its time may be over.
        """
        with self.transaction():
            batch = self.batch(name)
            if batch is None or batch.state != "closed":
                return False
            sql = "UPDATE batches SET state = 'made', made = ?, came = NULL, note = ?"
            self.run(f"{sql} WHERE name = ?", outgoing, note, name)
            self.run("UPDATE reports SET onion = NULL WHERE batch = ?", name)
        return True

    def end(self, name: str, state: str, note: str) -> bool:
        """End a batch as "handed" or "dropped": delete its contents, except the ids that tell a repeated upload.

        Returns whether this ended it: a batch ends once.
        """
        with self.transaction():
            batch = self.batch(name)
            if batch is None or batch.state in ENDED:
                return False
            sql = "UPDATE batches SET state = ?, came = NULL, made = NULL, note = ? WHERE name = ?"
            self.run(sql, state, note, name)
            self.count(f"batches {state}")
            self.set_note("counts", json.dumps(self.counts()))
            self.run("UPDATE reports SET onion = NULL WHERE batch = ?", name)
            self.run("UPDATE messages SET sealed = NULL WHERE batch = ?", name)
            for table in ("turns", "masks", "sending"):
                self.run(f"DELETE FROM {table} WHERE batch = ?", name)  # noqa: S608
        self._tidy()
        return True

    def forget(self, names: Sequence[str]) -> None:
        """Delete what is left of batches. No batch that closed at that time or before is begun again."""
        with self.transaction():
            for name in names:
                batch = self.batch(name)
                if batch is not None and batch.closes > self.forgotten:
                    self.set_note("forgotten", repr(batch.closes))
                self.run("DELETE FROM reports WHERE batch = ?", name)
                for table in ("messages", "turns", "masks"):
                    self.run(f"DELETE FROM {table} WHERE batch = ?", name)  # noqa: S608
                self.run("DELETE FROM batches WHERE name = ?", name)
        self._tidy()

    @property
    def forgotten(self) -> float:
        """When the latest of the deleted batches closed."""
        return float(self.note("forgotten") or "-inf")

    # -- the rest ---------------------------------------------------------------------------------------------

    def note(self, key: str) -> str | None:
        """The text that is stored under a key."""
        rows = self.run("SELECT value FROM meta WHERE key = ?", key)
        return rows[0][0] if rows else None

    def set_note(self, key: str, value: str) -> None:
        """Store a text under a key."""
        self.run("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, value)

    def count(self, name: str, times: int = 1) -> None:
        """Count an event, without its time."""
        sql = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"
        if times:
            self.run(sql, name, times)

    def counts(self) -> dict[str, int]:
        """The counts of all events."""
        return dict(self.run("SELECT name, count FROM counters ORDER BY name"))

    def _large(self, sql: str, name: str) -> bytes | None:
        rows = self.run(sql, name)
        return rows[0][0] if rows else None

    def _tidy(self) -> None:
        """Empty the write-ahead log, which still has the deleted data."""
        with self._lock:
            self._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def run(self, sql: str, *values: object) -> list[Any]:
        """Run a statement; returns its rows."""
        with self._lock:
            return self._file.execute(sql, values).fetchall()


def _connect(path: str | Path, timeout: float) -> sqlite3.Connection:
    try:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=timeout)
    except sqlite3.Error as error:
        raise _unusable(path, error) from None


def _unusable(path: str | Path, error: Exception) -> InvalidValue:
    return InvalidValue("store", str(path), f"a shuffler's store that no other program holds ({error})")


def _batch_row(row: Sequence[Any]) -> BatchRow:
    return BatchRow(row[0], row[1], AnswerName.read(row[2]), *row[3:])


def report_digest(onion: bytes) -> bytes:
    """The hash by which a repeated report is recognised."""
    return hashlib.sha256(onion).digest()[:16]
