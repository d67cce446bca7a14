"""The file of a device: its key, signed documents, recorded values, states, answers, and its ledger."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.client.folder import FILE, AnswerCount, claim, mark, older_copy, state_folders
from hubbub.collection import Clock, SignedCollection
from hubbub.collection.names import AnswerName
from hubbub.core.domain import Code
from hubbub.core.migrations import Format
from hubbub.ledger.book import TABLES, Book, all_spent
from hubbub.ledger.clock import TICKS, DeviceClock
from hubbub.ledger.file import LedgerFile
from hubbub.random.source import Random


class Answer(NamedTuple):
    """An answer: its name, when its round closes, its random id, and the bytes to send; None once it is finished."""

    name: str
    step: int
    closes: float
    id: bytes
    report: bytes | None


class Outbox:
    """The answers of a device, in a table of its file. Every call is made inside a transaction of that file.

    An answer waits as long as its report is not NULL. An empty report is a frame of cover, without a report.
    """

    TABLES = (
        "CREATE TABLE answers (name TEXT PRIMARY KEY, step INTEGER NOT NULL, closes REAL NOT NULL, "
        "id BLOB NOT NULL UNIQUE, report BLOB)",
        "CREATE TABLE counters (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
    )

    def __init__(self, file: LedgerFile) -> None:
        self._run = file.run

    def answered(self, name: AnswerName) -> bool:
        """Whether the round of a name is answered: a device gives one answer to a round, whatever the part."""
        round_name = str(name).rpartition(":")[0]
        return bool(self._run("SELECT 1 FROM answers WHERE name GLOB ?", f"{round_name}:*"))

    def add(self, answer: Answer, *, since: float) -> None:
        """Store an answer, and forget finished ones whose rounds closed before `since`."""
        self._run("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", *answer)
        self._run("DELETE FROM answers WHERE report IS NULL AND closes <= ?", since)

    def waiting(self) -> list[Answer]:
        """The answers that wait to be sent, oldest first."""
        rows = self._run("SELECT name, step, closes, id, report FROM answers WHERE report IS NOT NULL ORDER BY rowid")
        return [Answer(*row) for row in rows]

    def finish(self, answer_id: bytes) -> bool:
        """Drop the bytes of an answer, which then no longer waits; whether it did wait."""
        waiting = self._run("SELECT 1 FROM answers WHERE id = ? AND report IS NOT NULL", answer_id)
        self._run("UPDATE answers SET report = NULL WHERE id = ?", answer_id)
        return bool(waiting)

    def followers(self, answer_id: bytes) -> list[Answer]:
        """The waiting answers to the same question in later steps than that of a waiting answer."""
        waiting = self.waiting()
        step, question = next(((each.step, _question(each)) for each in waiting if each.id == answer_id), (0, ""))
        return [each for each in waiting if _question(each) == question and each.step > step]

    def drop_followers(self, answer_id: bytes) -> None:
        """Drop the answers that wait for one that enrols the device, because it does so in vain."""
        for follower in self.followers(answer_id):
            self.finish(follower.id)
            self.count("not enrolled")

    def drop(self, *, names: bool) -> list[Answer]:
        """Drop all waiting answers, with their `names` if these change meaning; the answers that had reports."""
        waiting = [answer for answer in self.waiting() if answer.report]
        self._run("DELETE FROM answers" if names else "UPDATE answers SET report = NULL")
        return waiting

    def count(self, name: str, times: int = 1) -> None:
        """Add to the count of an outcome."""
        sql = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count"
        self._run(sql, name, times)

    def counts(self) -> dict[str, int]:
        """How often each outcome happened."""
        return dict(self._run("SELECT name, count FROM counters ORDER BY name"))


def _question(answer: Answer) -> str:
    return AnswerName.read(answer.name).question


IN_FORCE = "in force"
"""The name of the note with the version in force: the one whose asks the device answers."""
ANSWERS = "answers"
"""The name of the note with the number of answers that the device has given."""
RECOVERED = "recovered"
"""The name of the note with the time at which the file was made again after it was lost."""

FORMAT = Format("client", 1)
"""The version of the folder."""

_TABLES = (
    "CREATE TABLE device (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE documents (name TEXT PRIMARY KEY, etag TEXT NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE recorded (field TEXT PRIMARY KEY, at REAL NOT NULL, code BLOB NOT NULL)",
    "CREATE TABLE states (key TEXT PRIMARY KEY, stream TEXT NOT NULL, state BLOB NOT NULL, "
    "told INTEGER NOT NULL, enrolment BLOB)",
    *Outbox.TABLES,
)


class Document(NamedTuple):
    """The text of a signed document, and its ETag."""

    etag: str
    body: str


class StoredState(NamedTuple):
    """The state of a device that remembers, and how far its enrolment is.

    `state`: the bytes of the mechanism's `States`; of a study, JSON. `enrolled`: whether the server acknowledged the
    report that enrols the device. `enrolment`: the id of that report while it waits to be acknowledged.
    """

    state: bytes
    enrolled: bool = False
    enrolment: bytes | None = None


class DeviceStore:
    """One file in the client's folder, which processes share. What belongs together is written in one transaction.

    Parameters
    ----------
    folder
        The client's folder; made if it does not exist.
    collection
        The name of the collection; the folder serves no other.
    lost
        Whether the database was lost and is to be made again, with every promise spent (see `recover`).
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
        tables: tuple[str, ...] = (*_TABLES, *TABLES)
        if lost:
            now = int(clock.now())
            note = f"INSERT INTO device VALUES ('{RECOVERED}', CAST('{now}' AS BLOB))"  # noqa: S608 - a number
            tables += (*all_spent(now * TICKS), note)
        self._file = LedgerFile(folder / FILE, {"collection": collection}, tables, FORMAT)
        mark(folder, collection, FORMAT.version)
        self.book, self.outbox = Book(self._file, self.clock_of(None)), Outbox(self._file)
        with self.transaction():
            self._run("INSERT INTO device VALUES ('key', ?) ON CONFLICT DO NOTHING", rng.bytes(32))
            ((key,),) = self._run("SELECT value FROM device WHERE name = 'key'")
            # Not from `rng`: a test may give the same to several devices.
            self._run("INSERT INTO device VALUES ('count', ?) ON CONFLICT DO NOTHING", os.urandom(16).hex().encode())
            count = self.note("count")
        self.device_key: bytes = key
        self._folder, self._counted = folder, AnswerCount(state_folders(), str(count))
        try:
            with self.transaction():
                self.answers()
        except BaseException:
            self.close()
            raise

    def clock_of(self, collection: SignedCollection | None) -> DeviceClock:
        """The device's clock, with the steps of a collection; with steps of a second where there is none."""
        interval, origin = (1, 0) if collection is None else (collection.step_seconds, collection.origin)
        return DeviceClock(interval, origin=origin, wall=self._wall, monotonic=self._monotonic)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def transaction(self) -> AbstractContextManager[None]:
        """A transaction: all or nothing, one process at a time."""
        return self._file.transaction()

    def savepoint(self) -> AbstractContextManager[None]:
        """A part of a transaction, which is undone if it raises."""
        return self._file.savepoint()

    # -- answers ----------------------------------------------------------------------------------------------

    def answers(self) -> int:
        """How many answers were queued so far; `LedgerUnavailable` if more are known from outside of the folder."""
        answers, counted = int(self.note(ANSWERS) or 0), self._counted.read()
        if counted > answers:
            raise older_copy(self._folder, answers, counted)
        return answers

    def queue(self, answer: Answer, since: float) -> None:
        """Queue an answer, and count it."""
        self.set_note(ANSWERS, str(self.answers() + 1))
        self.outbox.add(answer, since=since)

    def count_outside(self, answers: int) -> None:
        """Keep the number of answers outside of the folder as well. This comes before any of them is sent."""
        self._counted.raise_to(answers)

    # -- documents --------------------------------------------------------------------------------------------

    def document(self, name: str) -> Document | None:
        """A stored document; None if it was never fetched."""
        rows = self._run("SELECT etag, body FROM documents WHERE name = ?", name)
        return Document(*rows[0]) if rows else None

    def set_document(self, name: str, document: Document) -> None:
        """Store a document; it replaces the one before."""
        self._run("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", name, *document)

    def in_force(self) -> tuple[int, str] | None:
        """The version in force and its collection's id."""
        note = self.note(IN_FORCE)
        if note is None:
            return None
        version, collection_id = json.loads(note)
        return version, collection_id

    def note(self, name: str) -> str | None:
        """The text of a note; None if there is none of this name."""
        rows = self._run("SELECT value FROM device WHERE name = ?", name)
        return bytes(rows[0][0]).decode() if rows else None

    def set_note(self, name: str, text: str) -> None:
        """Store a note; it replaces the one before."""
        self._run("INSERT OR REPLACE INTO device VALUES (?, ?)", name, text.encode())

    # -- values -----------------------------------------------------------------------------------------------

    def record(self, field: str, at: float, code: Code) -> None:
        """Store the latest value of a field, and when it was recorded."""
        self._run("INSERT OR REPLACE INTO recorded VALUES (?, ?, ?)", field, at, value_bytes(code))

    def recorded(self, field: str) -> tuple[float, Code] | None:
        """When the latest value of a field was recorded, and its code; None if there is none."""
        rows = self._run("SELECT at, code FROM recorded WHERE field = ?", field)
        return (rows[0][0], read_values(rows[0][1])) if rows else None

    def forget_all_but(self, fields: Iterable[str]) -> None:
        """Forget the recorded and frozen values of all other fields: their domains have changed."""
        unchanged = set(fields)
        for (field,) in self._run("SELECT field FROM recorded"):
            if field not in unchanged:
                self._run("DELETE FROM recorded WHERE field = ?", field)
        self.book.rows.thaw(key for key in self.book.rows.frozen() if not unchanged.issuperset(frozen_fields(key)))

    # -- states -----------------------------------------------------------------------------------------------

    def state(self, key: str, stream: str = "") -> StoredState | None:
        """The state stored under a key, if it belongs to this stream."""
        sql = "SELECT state, told, enrolment FROM states WHERE key = ? AND stream = ?"
        rows = self._run(sql, key, stream)
        return StoredState(bytes(rows[0][0]), bool(rows[0][1]), rows[0][2]) if rows else None

    def stream(self, key: str) -> str | None:
        """The stream of the state stored under a key."""
        rows = self._run("SELECT stream FROM states WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def set_state(self, key: str, stream: str, state: StoredState) -> None:
        """Store a state; it replaces the one before."""
        self._run("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?, ?)", key, stream, *state)

    def enrolment(self, key: str) -> bytes | None:
        """The id of the report that enrols the device in the stream of a key, whichever it is, while it waits."""
        rows = self._run("SELECT enrolment FROM states WHERE key = ?", key)
        return rows[0][0] if rows else None

    def enrolling(self) -> set[bytes]:
        """The ids of the reports that enrol the device and still wait."""
        return {report_id for (report_id,) in self._run("SELECT enrolment FROM states WHERE enrolment IS NOT NULL")}

    def settle_enrolment(self, report_id: bytes, *, acknowledged: bool) -> None:
        """Store whether an enrolling report was acknowledged; if not, another report has to enrol the device."""
        self._run("UPDATE states SET told = ?, enrolment = NULL WHERE enrolment = ?", acknowledged, report_id)

    def _run(self, sql: str, *values: object) -> list[Any]:
        return self._file.run(sql, *values)


def frozen_key(fields: Sequence[str], *, last: bool) -> str:
    """The key of the values of some fields that are frozen together; values recorded last have a key of their own."""
    name = fields[0] if len(fields) == 1 else json.dumps(list(fields))
    return f"last:{name}" if last else name


def frozen_fields(key: str) -> list[str]:
    """The fields of a key of `frozen_key`."""
    name = key.removeprefix("last:")
    return list(json.loads(name)) if name.startswith("[") else [name]


def value_bytes(value: Any) -> bytes:
    """A code, or codes by field, as the bytes that are stored."""
    return json.dumps(value).encode()


def read_values(stored: bytes) -> Any:
    """Read back what `value_bytes` made."""
    return _with_tuples(json.loads(stored))


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {field: _with_tuples(code) for field, code in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
