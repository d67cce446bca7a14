"""What a device keeps, in one file: its key, signed documents, values, memos, streams, answers, and its ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.client.folder import FILE, claim, mark
from hubbub.client.migrate import FOLLOWING, from_3, remove_old_ledgers
from hubbub.collection import Clock, Collection
from hubbub.core.domain import Code
from hubbub.core.migrations import Format
from hubbub.core.random import Random
from hubbub.privacy.book import Book
from hubbub.privacy.device_clock import TICKS, DeviceClock
from hubbub.privacy.ledger_file import LedgerFile
from hubbub.privacy.ledger_store import TABLES, all_spent

__all__ = ["FORMAT", "RECOVERED", "Answer", "Document", "Followed", "Store", "code_bytes", "read_code"]

RECOVERED = "recovered"
"""The note that the file was begun anew after it was lost, and when."""

VERSION = 4
FORMAT = Format("client", VERSION, {2: (f"CREATE TABLE IF NOT EXISTS {FOLLOWING}",), 3: ()})
"""Versions of the folder. From 3, which had ledgers in files of their own, `Store` migrates."""

_TABLES = (
    "CREATE TABLE device (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE documents (name TEXT PRIMARY KEY, etag TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE recorded (field TEXT PRIMARY KEY, at REAL NOT NULL, code BLOB NOT NULL)",
    "CREATE TABLE enrolled (account TEXT PRIMARY KEY, public INTEGER NOT NULL, current INTEGER)",
    "CREATE TABLE memos (account TEXT NOT NULL, key INTEGER NOT NULL, memo BLOB NOT NULL, PRIMARY KEY (account, key))",
    "CREATE TABLE following (question TEXT PRIMARY KEY, stream TEXT NOT NULL, state BLOB NOT NULL, "
    "told INTEGER NOT NULL, enrolment BLOB)",
    # An answer waits while it has a report: empty for a frame without one, NULL once it is done.
    "CREATE TABLE answers (name TEXT PRIMARY KEY, step INTEGER NOT NULL, closes REAL NOT NULL, "
    "id BLOB NOT NULL UNIQUE, report BLOB)",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
)


class Document(NamedTuple):
    """A signed document as it came, and the tag that it came with."""

    etag: str
    body: str


class Answer(NamedTuple):
    """The answer of a name: when it closes, its random id, and the bytes to send; None when there is no more to do."""

    name: str
    step: int
    closes: float
    id: bytes
    report: bytes | None


class Followed(NamedTuple):
    """What a device keeps of a stream: its state, whether the server knows of it, and the report that says so."""

    state: bytes
    told: bool
    enrolment: bytes | None


class Store:
    """One file in the client's folder, shared by its processes. Everything that belongs together is one transaction.

    Parameters
    ----------
    folder
        The client's folder, made if need be.
    collection
        The name of the collection; the folder serves no other.
    rng
        Where the device's key comes from.
    clock, monotonic
        The device's time.
    lost
        Whether a database that was there before is known to be lost, and to be begun anew (see `recover`).

    Example:
        >>> import tempfile
        >>> from hubbub.collection import ManualClock
        >>> clock = ManualClock()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(Path(folder), "themes", Random(), clock, clock.now)
        ...     with store.transaction():
        ...         store.record("theme", 12.0, 1)
        ...         store.recorded("theme")
        ...     store.close()
        (12.0, 1)
    """

    def __init__(
        self,
        folder: Path,
        collection: str,
        rng: Random,
        clock: Clock,
        monotonic: Callable[[], float],
        *,
        lost: bool = False,
    ) -> None:
        self._wall, self._monotonic = clock.now, monotonic
        if not lost:
            claim(folder)
        format = Format("client", VERSION, {**FORMAT.migrations, 3: partial(from_3, folder=folder, now=clock.now())})
        tables: tuple[str, ...] = (*_TABLES, *TABLES)
        if lost:
            now = int(clock.now())
            note = f"INSERT INTO device VALUES ('{RECOVERED}', CAST('{now}' AS BLOB))"  # noqa: S608 - a number
            tables += (*all_spent(now * TICKS), note)
        self._file = LedgerFile(folder / FILE, {"collection": collection}, tables, format)
        mark(folder, collection, VERSION)
        remove_old_ledgers(folder)
        self.book = Book(self._file, self.clock_of(None))
        with self.transaction():
            self._run("INSERT INTO device VALUES ('key', ?) ON CONFLICT DO NOTHING", rng.bytes(32))
            ((key,),) = self._run("SELECT value FROM device WHERE name = 'key'")
        self.device_key: bytes = key

    def clock_of(self, collection: Collection | None) -> DeviceClock:
        """The device's time in steps of a collection; in seconds where there is none."""
        interval, origin = (1, 0) if collection is None else (collection.step_seconds, collection.origin)
        return DeviceClock(interval, origin=origin, wall=self._wall, monotonic=self._monotonic)

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

    def in_force(self) -> tuple[int, str] | None:
        """The version that the device answers by, and its collection's id, which is empty where nobody knows it."""
        found = self.note("in force")
        if found is None:
            return None
        version, collection_id = json.loads(found)
        return version, collection_id

    def put_in_force(self, version: int, collection_id: str) -> None:
        """Answer by a version from now on."""
        self.set_note("in force", json.dumps([version, collection_id]))

    def note(self, name: str) -> str | None:
        """Something that the device knows about itself."""
        rows = self._run("SELECT value FROM device WHERE name = ?", name)
        return bytes(rows[0][0]).decode() if rows else None

    def set_note(self, name: str, text: str) -> None:
        """Note it."""
        self._run("INSERT OR REPLACE INTO device VALUES (?, ?)", name, text.encode())

    # -- values -----------------------------------------------------------------------------------------------

    def record(self, field: str, at: float, code: Code) -> None:
        """The latest value of a field, and when it was recorded."""
        self._run("INSERT OR REPLACE INTO recorded VALUES (?, ?, ?)", field, at, code_bytes(code))

    def recorded(self, field: str) -> tuple[float, Code] | None:
        """Both."""
        rows = self._run("SELECT at, code FROM recorded WHERE field = ?", field)
        return (rows[0][0], read_code(rows[0][1])) if rows else None

    def recorded_fields(self) -> set[str]:
        """The fields that have a value."""
        return {field for (field,) in self._run("SELECT field FROM recorded")}

    def forget(self, fields: Iterable[str]) -> None:
        """Forget the values of fields that are not what they were."""
        for field in fields:
            self._run("DELETE FROM recorded WHERE field = ?", field)
            self.book.rows.thaw((field, f"last:{field}"))

    # -- memos and streams ------------------------------------------------------------------------------------

    def enrolled(self, account: str) -> tuple[int, int | None] | None:
        """What the device drew for a field and its mechanism, and the key of the memo it last answered from."""
        rows = self._run("SELECT public, current FROM enrolled WHERE account = ?", account)
        return (rows[0][0], rows[0][1]) if rows else None

    def enroll(self, account: str, public: int, current: int | None = None) -> None:
        """Note both."""
        self._run("INSERT OR REPLACE INTO enrolled VALUES (?, ?, ?)", account, public, current)

    def memo(self, account: str, key: int) -> bytes | None:
        """The permanent answer of a key."""
        rows = self._run("SELECT memo FROM memos WHERE account = ? AND key = ?", account, key)
        return bytes(rows[0][0]) if rows else None

    def memos(self, account: str) -> list[bytes]:
        """All permanent answers of an account."""
        return [bytes(memo) for (memo,) in self._run("SELECT memo FROM memos WHERE account = ? ORDER BY key", account)]

    def add_memo(self, account: str, key: int, memo: bytes) -> None:
        """Keep a permanent answer for good."""
        self._run("INSERT INTO memos VALUES (?, ?, ?)", account, key, memo)

    def followed(self, question: str, stream: str) -> Followed | None:
        """What is kept of a stream of changes, if it is this one."""
        sql = "SELECT state, told, enrolment FROM following WHERE question = ? AND stream = ?"
        rows = self._run(sql, question, stream)
        return Followed(bytes(rows[0][0]), bool(rows[0][1]), rows[0][2]) if rows else None

    def follow(self, question: str, stream: str, followed: Followed) -> None:
        """Keep it, in the place of the stream before."""
        values = (followed.state, int(followed.told), followed.enrolment)
        self._run("INSERT OR REPLACE INTO following VALUES (?, ?, ?, ?, ?)", question, stream, *values)

    def enrolled_by(self, report_id: bytes, *, told: bool) -> None:
        """Note what became of the report that a device enrolled with: where it was lost, another must say so."""
        self._run("UPDATE following SET told = ?, enrolment = NULL WHERE enrolment = ?", int(told), report_id)

    # -- answers ----------------------------------------------------------------------------------------------

    def answered(self, name: str) -> bool:
        """Whether a name has its answer: there is no other."""
        return bool(self._run("SELECT 1 FROM answers WHERE name = ?", name))

    def add_answer(self, answer: Answer) -> None:
        """Keep an answer; those of earlier steps that are done are forgotten."""
        self._run("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", *answer)
        self._run("DELETE FROM answers WHERE report IS NULL AND step < ?", answer.step)

    def waiting(self) -> list[Answer]:
        """The answers that wait to be sent, oldest first; with an empty report, frames without one."""
        rows = self._run("SELECT name, step, closes, id, report FROM answers WHERE report IS NOT NULL ORDER BY rowid")
        return [Answer(*row) for row in rows]

    def done(self, answer_id: bytes) -> bool:
        """Drop the bytes of an answer; whether it waited."""
        known = self._run("SELECT 1 FROM answers WHERE id = ? AND report IS NOT NULL", answer_id)
        self._run("UPDATE answers SET report = NULL WHERE id = ?", answer_id)
        return bool(known)

    def drop_answers(self, *, names: bool) -> int:
        """Drop all that waits, and the names too where they no longer mean the same; how many reports it were."""
        waiting = [answer for answer in self.waiting() if answer.report]
        for answer in waiting:
            self.enrolled_by(answer.id, told=False)
        self._run("DELETE FROM answers" if names else "UPDATE answers SET report = NULL")
        return len(waiting)

    # -- counts -----------------------------------------------------------------------------------------------

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
