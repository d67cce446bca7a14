"""What a device keeps beside its ledgers: its key, signed documents, recorded values, streams, reports that wait."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.collection.fields import Code
from hubbub.core.migrations import Format
from hubbub.core.random import Random
from hubbub.privacy.ledger_file import LedgerFile

__all__ = ["Document", "Followed", "Queued", "Store", "code_bytes", "collection_in", "read_code"]

FILE = "client.sqlite"
_FOLLOWING = "following (name TEXT PRIMARY KEY, state BLOB NOT NULL, told INTEGER NOT NULL, enrolment BLOB)"
FORMAT = Format("client", 3, {2: (f"CREATE TABLE IF NOT EXISTS {_FOLLOWING}",)})  # 2: some had no streams of changes
_TABLES = (
    "CREATE TABLE device (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE documents (name TEXT PRIMARY KEY, etag TEXT NOT NULL, body TEXT NOT NULL)",
    # Totals are text: SQLite's integers have a largest one.
    "CREATE TABLE versions (version INTEGER PRIMARY KEY, spent TEXT NOT NULL, most TEXT)",
    "CREATE TABLE recorded (field TEXT PRIMARY KEY, step INTEGER NOT NULL, code BLOB NOT NULL)",
    "CREATE TABLE enrolled (account TEXT PRIMARY KEY, public INTEGER NOT NULL, current INTEGER)",
    "CREATE TABLE memos (name TEXT PRIMARY KEY, memo BLOB NOT NULL)",
    f"CREATE TABLE {_FOLLOWING}",
    "CREATE TABLE asks (ask_id TEXT PRIMARY KEY, step INTEGER NOT NULL, closes REAL NOT NULL)",
    "CREATE TABLE queue (ask_id TEXT PRIMARY KEY, question TEXT NOT NULL, step INTEGER NOT NULL, "
    "id BLOB NOT NULL UNIQUE, report BLOB, UNIQUE (question, step))",
    "CREATE TABLE cover (ask_id TEXT PRIMARY KEY, step INTEGER NOT NULL, id BLOB UNIQUE)",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
)


class Document(NamedTuple):
    """A signed document as it came, and the tag that it came with."""

    etag: str
    body: str


class Queued(NamedTuple):
    """A report that waits: its id, the ask it answers, that ask's step, its bytes."""

    id: bytes
    ask_id: str
    step: int
    report: bytes


class Followed(NamedTuple):
    """What a device keeps of a stream: its state, whether the server knows of it, and the report that says so."""

    state: bytes
    told: bool
    enrolment: bytes | None


class Store:
    """One file in the client's folder, shared by its processes.

    Parameters
    ----------
    folder
        The client's folder, made if need be.
    collection
        The name of the collection; the folder serves no other.
    rng
        Where the device's key comes from.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random())
        ...     with store.transaction():
        ...         store.record("theme", 3, 1)
        ...         store.recorded("theme")
        ...     store.close()
        (3, 1)
    """

    def __init__(self, folder: Path, collection: str, rng: Random) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = LedgerFile(folder / FILE, {"collection": collection}, _TABLES, FORMAT)
        with self.transaction():
            self._run("INSERT INTO device VALUES ('key', ?) ON CONFLICT DO NOTHING", rng.bytes(32))
            ((key,),) = self._run("SELECT value FROM device WHERE name = 'key'")
        self.device_key: bytes = key

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and one process at a time."""
        with self._file.transaction():
            yield

    # -- documents --------------------------------------------------------------------------------------------

    def document(self, name: str) -> Document | None:
        """A document, if it was ever fetched."""
        rows = self._run("SELECT etag, body FROM documents WHERE name = ?", name)
        return Document(*rows[0]) if rows else None

    def keep(self, name: str, document: Document) -> None:
        """Keep a document in the place of the one before."""
        self._run("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", name, *document)

    def drop(self, name: str) -> None:
        """Forget a document."""
        self._run("DELETE FROM documents WHERE name = ?", name)

    def in_force(self) -> tuple[int, str] | None:
        """The version that the device answers by, and its collection's id."""
        rows = self._run("SELECT value FROM device WHERE name = 'in force'")
        if not rows:
            return None
        version, collection_id = json.loads(rows[0][0])
        return version, collection_id

    def put_in_force(self, version: int, collection_id: str) -> None:
        """Answer by a version from now on."""
        text = json.dumps([version, collection_id])
        self._run("INSERT OR REPLACE INTO device VALUES ('in force', ?)", text.encode())

    def versions(self) -> list[tuple[int, int, int | None]]:
        """Every version that was served before: its number, what it spent, and the most a life could cost under it."""
        rows = self._run("SELECT version, spent, most FROM versions ORDER BY version")
        return [(version, int(spent), None if most is None else int(most)) for version, spent, most in rows]

    def retire(self, version: int, spent: int, most: int | None) -> None:
        """Close the account of a version."""
        text = None if most is None else str(most)
        self._run("INSERT OR REPLACE INTO versions VALUES (?, ?, ?)", version, str(spent), text)

    # -- values -----------------------------------------------------------------------------------------------

    def record(self, field: str, step: int, code: Code) -> None:
        """The latest value of a field."""
        self._run("INSERT OR REPLACE INTO recorded VALUES (?, ?, ?)", field, step, code_bytes(code))

    def recorded(self, field: str) -> tuple[int, Code] | None:
        """The latest value of a field, and the step that it was recorded in."""
        rows = self._run("SELECT step, code FROM recorded WHERE field = ?", field)
        return (rows[0][0], read_code(rows[0][1])) if rows else None

    def forget(self, fields: Iterable[str]) -> None:
        """Forget the values of fields that are not what they were."""
        for field in fields:
            self._run("DELETE FROM recorded WHERE field = ?", field)

    # -- memos ------------------------------------------------------------------------------------------------

    def enrolled(self, account: str) -> tuple[int, int | None] | None:
        """What the device drew for a field and its mechanism, and the key of the memo it last answered from."""
        rows = self._run("SELECT public, current FROM enrolled WHERE account = ?", account)
        return (rows[0][0], rows[0][1]) if rows else None

    def enroll(self, account: str, public: int, current: int | None = None) -> None:
        """Note both."""
        self._run("INSERT OR REPLACE INTO enrolled VALUES (?, ?, ?)", account, public, current)

    def memo(self, name: str) -> bytes | None:
        """A memo that an earlier version of the collection paid for."""
        rows = self._run("SELECT memo FROM memos WHERE name = ?", name)
        return bytes(rows[0][0]) if rows else None

    def memo_names(self) -> list[str]:
        """The names of all such memos."""
        return [name for (name,) in self._run("SELECT name FROM memos")]

    def carry_memo(self, name: str, memo: bytes) -> None:
        """Carry a memo over to later versions."""
        self._run("INSERT OR REPLACE INTO memos VALUES (?, ?)", name, memo)

    # -- streams of changes -----------------------------------------------------------------------------------

    def followed(self, name: str) -> Followed | None:
        """What is kept of a stream."""
        rows = self._run("SELECT state, told, enrolment FROM following WHERE name = ?", name)
        return Followed(bytes(rows[0][0]), bool(rows[0][1]), rows[0][2]) if rows else None

    def follow(self, name: str, kept: Followed) -> None:
        """Keep it, in the place of what was kept before of that stream."""
        self._run("INSERT OR REPLACE INTO following VALUES (?, ?, ?, ?)", name, *kept)

    def unfollow(self, beginning: str = "", *, but: str = "") -> None:
        """Forget all streams whose names begin so, but for one."""
        names = [name for (name,) in self._run("SELECT name FROM following")]
        for name in names:
            if name.startswith(beginning) and name != but:
                self._run("DELETE FROM following WHERE name = ?", name)

    def enrolled_by(self, report_id: bytes, *, told: bool) -> None:
        """Note what became of the report that a device enrolled with: where it was lost, another must say so."""
        self._run("UPDATE following SET told = ?, enrolment = NULL WHERE enrolment = ?", int(told), report_id)

    # -- the queue of reports from memos and streams ----------------------------------------------------------

    def enqueue(self, question: str, queued: Queued) -> None:
        """Keep a report until it is acknowledged."""
        self._run(
            "INSERT INTO queue (ask_id, question, step, id, report) VALUES (?, ?, ?, ?, ?)",
            *(queued.ask_id, question, queued.step, queued.id, queued.report),
        )
        self._run("DELETE FROM queue WHERE question = ? AND step < ? AND report IS NULL", question, queued.step)

    def empty_queue(self) -> int:
        """Drop all that waits; how much it was."""
        waiting = len(self.queued())
        self._run("DELETE FROM queue")
        self._run("DELETE FROM cover")
        return waiting

    def answered(self, question: str, step: int) -> bool:
        """Whether a question of memos, or of changes, has its answer for a step."""
        return bool(self._run("SELECT 1 FROM queue WHERE question = ? AND step >= ?", question, step))

    def queued(self) -> list[Queued]:
        """The reports that wait, oldest first."""
        rows = self._run("SELECT id, ask_id, step, report FROM queue WHERE report IS NOT NULL ORDER BY rowid")
        return [Queued(*row) for row in rows]

    def dequeue(self, report_id: bytes) -> bool:
        """Drop the bytes of a report, or a frame without one; whether it was there."""
        known = self._run("SELECT 1 FROM queue WHERE id = ? AND report IS NOT NULL", report_id)
        known += self._run("SELECT 1 FROM cover WHERE id = ?", report_id)
        self._run("UPDATE cover SET id = NULL WHERE id = ?", report_id)
        self._run("UPDATE queue SET report = NULL WHERE id = ?", report_id)
        return bool(known)

    # -- cover ------------------------------------------------------------------------------------------------

    def cover(self, ask_id: str, queued_id: bytes, step: int) -> None:
        """Have a frame without a report stand for the answer to an ask: once, like the answer."""
        self._run("INSERT OR IGNORE INTO cover VALUES (?, ?, ?)", ask_id, step, queued_id)
        self._run("DELETE FROM cover WHERE id IS NULL AND step < ?", step)

    def covered(self, ask_id: str) -> bool:
        """Whether one does."""
        return bool(self._run("SELECT 1 FROM cover WHERE ask_id = ?", ask_id))

    def covers(self) -> list[Queued]:
        """Those that wait."""
        rows = self._run("SELECT id, ask_id, step FROM cover WHERE id IS NOT NULL ORDER BY rowid")
        return [Queued(report_id, ask_id, step, b"") for report_id, ask_id, step in rows]

    # -- asks and counts --------------------------------------------------------------------------------------

    def expect(self, ask_id: str, step: int, closes: float) -> None:
        """Remember when an ask closes, and forget asks that were over long ago."""
        self._run("INSERT OR IGNORE INTO asks VALUES (?, ?, ?)", ask_id, step, closes)
        self._run("DELETE FROM asks WHERE ask_id NOT IN (SELECT ask_id FROM asks ORDER BY rowid DESC LIMIT 1000)")

    def closes(self, ask_id: str) -> float | None:
        """When an ask closes."""
        rows = self._run("SELECT closes FROM asks WHERE ask_id = ?", ask_id)
        return float(rows[0][0]) if rows else None

    def count(self, name: str, times: int = 1) -> None:
        """Count what happened."""
        self._run(
            "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count",
            *(name, times),
        )

    def counts(self) -> dict[str, int]:
        """What happened, and how often."""
        return dict(self._run("SELECT name, count FROM counters ORDER BY name"))

    def _run(self, sql: str, *values: object) -> list[Any]:
        return self._file.run(sql, *values)


def collection_in(folder: Path) -> str | None:
    """The name of the collection that a folder serves; None if it is not a client's.

    Example:
        >>> collection_in(Path("no such folder")) is None
        True
    """
    if not (folder / FILE).is_file():
        return None
    try:
        database = sqlite3.connect(f"{(folder / FILE).absolute().as_uri()}?mode=ro", uri=True)
        try:
            ((terms,),) = database.execute("SELECT terms FROM terms")
        finally:
            database.close()
        return str(json.loads(terms)["collection"])
    except (sqlite3.Error, ValueError, KeyError, TypeError):
        return None


def code_bytes(code: Code) -> bytes:
    """A code as it is stored and frozen.

    Example:
        >>> code_bytes((2, 7)), read_code(b"[2, 7]"), read_code(code_bytes("x"))
        (b'[2, 7]', (2, 7), 'x')
    """
    return json.dumps(list(code) if isinstance(code, tuple) else code).encode()


def read_code(stored: bytes) -> Code:
    """The code that was stored.

    Example:
        >>> read_code(code_bytes(1.5)), read_code(code_bytes(((3, 0.5),)))
        (1.5, ((3, 0.5),))
    """
    found = json.loads(stored)
    if not isinstance(found, list):
        return found  # type: ignore[no-any-return]
    code: Code = tuple(tuple(one) if isinstance(one, list) else one for one in found)
    return code
