"""The answers of a device that wait to be sent, and counts of what happened to the others."""

from __future__ import annotations

from typing import NamedTuple

from hubbub.collection.names import AnswerName
from hubbub.privacy.ledger_file import LedgerFile


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

    Parameters
    ----------
    file
        The device's file.
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
