"""What a device keeps, in one file: its key, signed documents, values, states, answers, and its ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.client.folder import FILE, claim, mark, remove_old_ledgers
from hubbub.client.outbox import Outbox
from hubbub.collection import Clock, Collection
from hubbub.core.domain import Code
from hubbub.core.migrations import Format, Run
from hubbub.core.random import Random
from hubbub.privacy.book import Book
from hubbub.privacy.device_clock import TICKS, DeviceClock
from hubbub.privacy.ledger_file import LedgerFile
from hubbub.privacy.ledger_store import TABLES, all_spent

__all__ = [
    "FORMAT",
    "IN_FORCE",
    "RECOVERED",
    "DeviceStore",
    "Document",
    "Kept",
    "frozen_key",
    "read_values",
    "value_bytes",
]

IN_FORCE = "in force"
"""The note of the version that the device answers by."""
RECOVERED = "recovered"
"""The note that the file was begun anew after it was lost, and when."""

VERSION = 5
_FOLLOWING = "following (name TEXT PRIMARY KEY, state BLOB NOT NULL, told INTEGER NOT NULL, enrolment BLOB)"


def _from_4(run: Run) -> None:
    from hubbub.client.state_migration import from_4  # no client of today needs it

    from_4(run)


FORMAT = Format("client", VERSION, {2: (f"CREATE TABLE IF NOT EXISTS {_FOLLOWING}",), 3: (), 4: _from_4})
"""Versions of the folder. From 3, which had ledgers in files of their own, `DeviceStore` migrates."""

STATES = (
    "CREATE TABLE states (key TEXT PRIMARY KEY, stream TEXT NOT NULL, state BLOB NOT NULL, "
    "told INTEGER NOT NULL, enrolment BLOB)"
)
_TABLES = (
    "CREATE TABLE device (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE documents (name TEXT PRIMARY KEY, etag TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE recorded (field TEXT PRIMARY KEY, at REAL NOT NULL, code BLOB NOT NULL)",
    STATES,
    *Outbox.TABLES,
)


class Document(NamedTuple):
    """A signed document as it came, and the tag that it came with."""

    etag: str
    body: str


class Kept(NamedTuple):
    """The state of a device, whether the server knows that it takes part, and the report that says so."""

    state: bytes
    told: bool = False
    enrolment: bytes | None = None


class DeviceStore:
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
        ...     store = DeviceStore(Path(folder), "themes", Random(), clock, clock.now)
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

        def from_3(run: Run) -> None:
            from hubbub.client.migrate import from_3

            from_3(run, folder=folder, now=clock.now())

        format = Format("client", VERSION, {**FORMAT.migrations, 3: from_3})
        tables: tuple[str, ...] = (*_TABLES, *TABLES)
        if lost:
            now = int(clock.now())
            note = f"INSERT INTO device VALUES ('{RECOVERED}', CAST('{now}' AS BLOB))"  # noqa: S608 - a number
            tables += (*all_spent(now * TICKS), note)
        self._file = LedgerFile(folder / FILE, {"collection": collection}, tables, format)
        mark(folder, collection, VERSION)
        remove_old_ledgers(folder)
        self.book, self.outbox = Book(self._file, self.clock_of(None)), Outbox(self._file)
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

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of a transaction, which is undone if it raises."""
        with self._file.savepoint():
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
        note = self.note(IN_FORCE)
        if note is None:
            return None
        version, collection_id = json.loads(note)
        return version, collection_id

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
        self._run("INSERT OR REPLACE INTO recorded VALUES (?, ?, ?)", field, at, value_bytes(code))

    def recorded(self, field: str) -> tuple[float, Code] | None:
        """Both."""
        rows = self._run("SELECT at, code FROM recorded WHERE field = ?", field)
        return (rows[0][0], read_values(rows[0][1])) if rows else None

    def forget_all_but(self, fields: Iterable[str]) -> None:
        """Forget the values of fields that are not what they were."""
        stay = set(fields)
        for (field,) in self._run("SELECT field FROM recorded"):
            if field not in stay:
                self._run("DELETE FROM recorded WHERE field = ?", field)
        self.book.rows.thaw(key for key in self.book.rows.frozen() if not stay.issuperset(frozen_fields(key)))

    # -- states -----------------------------------------------------------------------------------------------

    def state(self, key: str, stream: str = "") -> Kept | None:
        """What is kept under a key, if it is of this stream."""
        sql = "SELECT state, told, enrolment FROM states WHERE key = ? AND stream = ?"
        rows = self._run(sql, key, stream)
        return Kept(bytes(rows[0][0]), bool(rows[0][1]), rows[0][2]) if rows else None

    def stream(self, key: str) -> str | None:
        """The stream of what is kept under a key."""
        rows = self._run("SELECT stream FROM states WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def keep_state(self, key: str, stream: str, kept: Kept) -> None:
        """Keep it, in the place of what was there before."""
        self._run("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?)", key, stream, *kept)

    def enrolled_by(self, report_id: bytes, *, told: bool) -> None:
        """Note what became of the report that a device enrolled with: where it was lost, another must say so."""
        self._run("UPDATE states SET told = ?, enrolment = NULL WHERE enrolment = ?", told, report_id)

    def _run(self, sql: str, *values: object) -> list[Any]:
        return self._file.run(sql, *values)


def frozen_key(fields: Sequence[str], *, last: bool) -> str:
    """What the values of some fields are frozen under, together; of those last recorded apart from those of a step.

    Example:
        >>> frozen_key(["home"], last=True), frozen_key(["home", "work"], last=False)
        ('last:home', '["home", "work"]')
    """
    name = fields[0] if len(fields) == 1 else json.dumps(list(fields))
    return f"last:{name}" if last else name


def frozen_fields(key: str) -> list[str]:
    """Which fields are frozen under a key.

    Example:
        >>> frozen_fields("last:home"), frozen_fields('["home", "work"]')
        (['home'], ['home', 'work'])
    """
    name = key.removeprefix("last:")
    return list(json.loads(name)) if name.startswith("[") else [name]


def value_bytes(value: Any) -> bytes:
    """A code, or a record of codes by field, as it is stored and frozen.

    Example:
        >>> value_bytes((2, 7)), read_values(b"[2, 7]"), read_values(value_bytes("x"))
        (b'[2, 7]', (2, 7), 'x')
    """
    return json.dumps(value).encode()


def read_values(stored: bytes) -> Any:
    """What was stored.

    Example:
        >>> read_values(value_bytes(((3, 0.5),))), read_values(value_bytes({"x": (2, 7)}))
        (((3, 0.5),), {'x': (2, 7)})
    """
    return _with_tuples(json.loads(stored))


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _with_tuples(code) for field, code in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
