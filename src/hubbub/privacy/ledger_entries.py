"""The answers of a ledger: the bytes to send, until they are acknowledged."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.privacy.ledger_file import LedgerFile

__all__ = ["ENTRIES", "Entries", "LedgerEntry"]

ENTRIES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, ask_id TEXT NOT NULL UNIQUE, id BLOB NOT NULL UNIQUE, "
    "step INTEGER NOT NULL, mechanism TEXT NOT NULL, spec_id TEXT NOT NULL, spent INTEGER NOT NULL, report BLOB)"
)
_ENTRY = "SELECT id, ask_id, step, mechanism, spec_id, spent, report FROM entries"


@dataclass(frozen=True)
class LedgerEntry:
    """One answer: its random id, the ask it answers, and the bytes to send; None once they were acknowledged."""

    id: bytes
    ask_id: str
    step: int
    mechanism: str
    spec_id: str
    spent: int
    report: bytes | None


class Entries:
    """The answers in a file, each read and written inside a transaction of it.

    Parameters
    ----------
    file
        The file, made with `ENTRIES`.

    Example:
        >>> from hubbub.core.migrations import Format
        >>> file = LedgerFile(":memory:", {}, (ENTRIES,), Format("version", 2))
        >>> with file.transaction():
        ...     Entries(file).pending()
        []
        >>> file.close()
    """

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def entry(self, ask_id: str) -> LedgerEntry | None:
        """The answer to an ask, if it was given."""
        rows = self._file.run(f"{_ENTRY} WHERE ask_id = ?", ask_id)
        return LedgerEntry(*rows[0]) if rows else None

    def pending(self) -> list[LedgerEntry]:
        """The answers that are not acknowledged, in order."""
        return [LedgerEntry(*row) for row in self._file.run(f"{_ENTRY} WHERE report IS NOT NULL ORDER BY number")]

    def pending_count(self) -> int:
        """How many there are of them."""
        ((count,),) = self._file.run("SELECT COUNT(*) FROM entries WHERE report IS NOT NULL")
        return int(count)

    def add(self, entry: LedgerEntry) -> None:
        """An answer; those of earlier steps that were acknowledged are forgotten."""
        self._file.run(
            "INSERT INTO entries (id, ask_id, step, mechanism, spec_id, spent, report) VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(entry.id, entry.ask_id, entry.step, entry.mechanism, entry.spec_id, entry.spent, entry.report),
        )
        self._file.run("DELETE FROM entries WHERE report IS NULL AND step < ?", entry.step)

    def acknowledge(self, entry_id: bytes) -> bool:
        """Drop the bytes of an answer; whether it was pending."""
        known = self._file.run("SELECT 1 FROM entries WHERE id = ? AND report IS NOT NULL", entry_id)
        self._file.run("UPDATE entries SET report = NULL WHERE id = ?", entry_id)
        return bool(known)
