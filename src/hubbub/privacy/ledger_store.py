"""The rows of a ledger, without its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hubbub.privacy.clock import Observation
from hubbub.privacy.ledger_file import LedgerFile

__all__ = ["TABLES", "Account", "Entry", "LedgerStore"]

TABLES = (
    # The lifetime total is text: where no lifetime budget is declared it has no limit, and SQLite's integers have.
    "CREATE TABLE account (lifetime TEXT NOT NULL, latest INTEGER NOT NULL, "
    "step INTEGER, wall INTEGER, monotonic INTEGER, trusted INTEGER)",
    "INSERT INTO account (lifetime, latest) VALUES ('0', -1)",
    "CREATE TABLE debits (step INTEGER PRIMARY KEY, spent INTEGER NOT NULL, trusted INTEGER NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, ask_id TEXT NOT NULL UNIQUE, id BLOB NOT NULL UNIQUE, "
    "step INTEGER NOT NULL, mechanism TEXT NOT NULL, spec_id TEXT NOT NULL, spent INTEGER NOT NULL, report BLOB)",
    "CREATE TABLE frozen (field TEXT PRIMARY KEY, step INTEGER NOT NULL, value NOT NULL)",
)
_ENTRY = "SELECT id, ask_id, step, mechanism, spec_id, spent, report FROM entries"


@dataclass(frozen=True)
class Entry:
    """One answer: its random id, the ask it answers, and the bytes to send; None once they were acknowledged."""

    id: bytes
    ask_id: str
    step: int
    mechanism: str
    spec_id: str
    spent: int
    report: bytes | None


class Account(NamedTuple):
    """The lifetime total, the latest step that was used (-1: none), and what the clock last showed."""

    lifetime: int
    latest: int
    seen: Observation | None


class LedgerStore:
    """What a ledger reads and writes, each inside a transaction of its file.

    Parameters
    ----------
    file
        The file, made with `TABLES`.

    Example:
        >>> from hubbub.core.migrations import Format
        >>> file = LedgerFile(":memory:", {}, TABLES, Format("version", 1))
        >>> with file.transaction():
        ...     LedgerStore(file).account()
        Account(lifetime=0, latest=-1, seen=None)
        >>> file.close()
    """

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def account(self) -> Account:
        """The one row of totals."""
        ((lifetime, latest, *seen),) = self._file.run(
            "SELECT lifetime, latest, step, wall, monotonic, trusted FROM account"
        )
        return Account(int(lifetime), latest, None if seen[0] is None else Observation(*seen))

    def set_account(self, account: Account) -> None:
        """Write the totals."""
        seen = account.seen or (None,) * 4
        self._file.run(
            "UPDATE account SET lifetime = ?, latest = ?, step = ?, wall = ?, monotonic = ?, trusted = ?",
            str(account.lifetime),
            account.latest,
            *seen,
        )

    def entry(self, ask_id: str) -> Entry | None:
        """The answer to an ask, if it was given."""
        rows = self._file.run(f"{_ENTRY} WHERE ask_id = ?", ask_id)
        return Entry(*rows[0]) if rows else None

    def pending(self) -> list[Entry]:
        """The answers that are not acknowledged, in order."""
        return [Entry(*row) for row in self._file.run(f"{_ENTRY} WHERE report IS NOT NULL ORDER BY number")]

    def pending_count(self) -> int:
        """How many there are of them."""
        ((count,),) = self._file.run("SELECT COUNT(*) FROM entries WHERE report IS NOT NULL")
        return int(count)

    def add(self, entry: Entry, trusted: int) -> None:
        """An answer together with its debit."""
        self._file.run(
            "INSERT INTO entries (id, ask_id, step, mechanism, spec_id, spent, report) VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(entry.id, entry.ask_id, entry.step, entry.mechanism, entry.spec_id, entry.spent, entry.report),
        )
        self._file.run(
            "INSERT INTO debits (step, spent, trusted) VALUES (?, ?, ?) "
            "ON CONFLICT (step) DO UPDATE SET spent = spent + excluded.spent, trusted = excluded.trusted",
            *(entry.step, entry.spent, trusted),
        )

    def acknowledge(self, entry_id: bytes) -> bool:
        """Drop the bytes of an answer; whether it was pending."""
        known = self._file.run("SELECT 1 FROM entries WHERE id = ? AND report IS NOT NULL", entry_id)
        self._file.run("UPDATE entries SET report = NULL WHERE id = ?", entry_id)
        return bool(known)

    def spent_since(self, step: int, trusted: int) -> int:
        """The sum of the debits that came after a step, or after a trusted time."""
        ((spent,),) = self._file.run("SELECT SUM(spent) FROM debits WHERE step > ? OR trusted > ?", step, trusted)
        return int(spent or 0)

    def spent_in(self, step: int) -> int:
        """What one step has cost."""
        rows = self._file.run("SELECT spent FROM debits WHERE step = ?", step)
        return int(rows[0][0]) if rows else 0

    def fold(self, step: int, trusted: int, latest: int) -> None:
        """Forget debits up to both a step and a trusted time, and what was done with before the latest step."""
        self._file.run("DELETE FROM debits WHERE step <= ? AND trusted <= ?", step, trusted)
        self._file.run("DELETE FROM entries WHERE report IS NULL AND step < ?", latest)
        self._file.run("DELETE FROM frozen WHERE step < ?", latest)

    def freeze(self, field: str, step: int, value: int | bytes) -> int | bytes:
        """Keep the first value of a field in a step, and return it."""
        self._file.run(
            "INSERT INTO frozen (field, step, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", field, step, value
        )
        ((stored,),) = self._file.run("SELECT value FROM frozen WHERE field = ?", field)
        kept: int | bytes = stored
        return kept
