"""The rows of a ledger, without its rules: promises, debits, totals, the time, and frozen values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from hubbub.core.spec import canonical
from hubbub.privacy.budget import MOST_UNITS
from hubbub.privacy.device_clock import Observation
from hubbub.privacy.ledger_file import LedgerFile
from hubbub.privacy.promise import Promise, Since

ANY = ""
"""The account, or question, of a debit that nobody can attribute any more: it counts toward all of them."""

TABLES = (
    "CREATE TABLE times (latest INTEGER, step INTEGER, wall INTEGER, monotonic INTEGER, trusted INTEGER)",
    "INSERT INTO times VALUES (NULL, NULL, NULL, NULL, NULL)",
    "CREATE TABLE promises (number INTEGER PRIMARY KEY, scope TEXT NOT NULL, promise TEXT NOT NULL)",
    "CREATE TABLE debits (number INTEGER PRIMARY KEY, account TEXT NOT NULL, question TEXT NOT NULL, "
    "spent INTEGER NOT NULL, wall INTEGER NOT NULL, trusted INTEGER NOT NULL)",
    # Totals are text: where nothing limits a life they have no limit, and SQLite's integers have.
    "CREATE TABLE totals (account TEXT NOT NULL, question TEXT NOT NULL, spent TEXT NOT NULL, "
    "PRIMARY KEY (account, question))",
    "CREATE TABLE frozen (field TEXT PRIMARY KEY, wall INTEGER NOT NULL, value NOT NULL)",
)
_MOST = (1 << 63) - 1


def all_spent(wall: int) -> tuple[str, ...]:
    """Statements that count every promise as spent to the last unit at a moment: those for life for good.

    It is what a ledger has to suppose that begins without its past; run together with `TABLES`.

    Example:
        >>> all_spent(5)[0]
        "INSERT INTO debits VALUES (1, '', '', 1000000000000000000, 5, 0)"
    """
    return (
        f"INSERT INTO debits VALUES (1, '', '', {MOST_UNITS}, {int(wall)}, 0)",  # noqa: S608 - numbers alone
        f"INSERT INTO totals VALUES ('', '', '{MOST_UNITS}')",  # noqa: S608
        f"UPDATE times SET latest = {int(wall)}",  # noqa: S608
    )


class Debit(NamedTuple):
    """What was spent, by which account on which question, and when by the wall clock and in trusted time."""

    account: str
    question: str
    spent: int
    wall: int
    trusted: int


class Times(NamedTuple):
    """The latest wall time that anything was answered or frozen at, and what the clock last showed."""

    latest: int | None
    seen: Observation | None


class LedgerStore:
    """What a ledger reads and writes, each inside a transaction of its file.

    Parameters
    ----------
    file
        The file, made with `TABLES`.

    Example:
        >>> from hubbub.core.migrations import Format
        >>> file = LedgerFile(":memory:", {}, TABLES, Format("version", 2))
        >>> with file.transaction():
        ...     LedgerStore(file).times()
        Times(latest=None, seen=None)
        >>> file.close()
    """

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def times(self) -> Times:
        """The one row of times."""
        ((latest, *seen),) = self._file.run("SELECT latest, step, wall, monotonic, trusted FROM times")
        return Times(latest, None if seen[0] is None else Observation(*seen))

    def set_times(self, times: Times) -> None:
        """Write it."""
        seen = times.seen or (None,) * 4
        self._file.run("UPDATE times SET latest = ?, step = ?, wall = ?, monotonic = ?, trusted = ?", times[0], *seen)

    def promises(self) -> dict[int, Promise]:
        """All promises, by number."""
        rows = self._file.run("SELECT number, scope, promise FROM promises ORDER BY number")
        return {number: Promise.from_spec(json.loads(text), scope) for number, scope, text in rows}

    def add_promise(self, promise: Promise) -> int:
        """Keep a promise; its number."""
        text = canonical(promise.spec())
        self._file.run("INSERT INTO promises (scope, promise) VALUES (?, ?)", promise.scope, text)
        ((number,),) = self._file.run("SELECT last_insert_rowid()")
        return int(number)

    def drop_promises(self, numbers: Iterable[int]) -> None:
        """Forget promises."""
        for number in numbers:
            self._file.run("DELETE FROM promises WHERE number = ?", number)

    def add_debit(self, debit: Debit) -> None:
        """A debit, and its share of the totals for life."""
        self._file.run(
            "INSERT INTO debits (account, question, spent, wall, trusted) VALUES (?, ?, ?, ?, ?)", *_fit(debit)
        )
        self.add_total(debit.account, debit.question, debit.spent)

    def add_total(self, account: str, question: str, spent: int) -> None:
        """A part of the totals for life."""
        names = (account, question)
        rows = self._file.run("SELECT spent FROM totals WHERE account = ? AND question = ?", *names)
        before = int(rows[0][0]) if rows else 0
        self._file.run("INSERT OR REPLACE INTO totals VALUES (?, ?, ?)", *names, str(before + spent))

    def total(self, account: str | None = None, question: str | None = None) -> int:
        """All that was ever spent, by an account or on a question where one is given."""
        rows = self._file.run(
            "SELECT spent FROM totals "
            "WHERE (?1 IS NULL OR account IN (?1, '')) AND (?2 IS NULL OR question IN (?2, ''))",
            *(account, question),
        )
        return sum(int(spent) for (spent,) in rows)

    def attributed(self) -> int:
        """All that is known to have been spent, without what is only supposed to have been."""
        return sum(int(spent) for (spent,) in self._file.run("SELECT spent FROM totals WHERE account <> ''"))

    def spent_since(self, since: Since, account: str | None = None, question: str | None = None) -> int:
        """What the debits that count have spent, of an account or on a question where one is given."""
        # In two halves: the debits of several promises may add up to more than 63 bits.
        ((high, low),) = self._file.run(
            "SELECT SUM(spent >> 32), SUM(spent & 4294967295) FROM debits WHERE (wall >= ?1 OR trusted > ?2) "
            "AND (?3 IS NULL OR account IN (?3, '')) AND (?4 IS NULL OR question IN (?4, ''))",
            *_fit(since),
            *(account, question),
        )
        return (int(high or 0) << 32) + int(low or 0)

    def forget(self, since: Since) -> None:
        """Forget debits that no promise counts any more, but for those that nobody can attribute."""
        self._file.run("DELETE FROM debits WHERE wall < ? AND trusted <= ? AND account <> ''", *_fit(since))

    def freeze(self, field: str, wall: int, value: int | bytes, begins: int) -> int | bytes:
        """Keep the first value of a field since a step began, and return it; forget the values of earlier steps."""
        self._file.run("DELETE FROM frozen WHERE wall < ?", begins)
        self._file.run("INSERT INTO frozen VALUES (?, ?, ?) ON CONFLICT DO NOTHING", field, wall, value)
        ((stored,),) = self._file.run("SELECT value FROM frozen WHERE field = ?", field)
        kept: int | bytes = stored
        return kept

    def frozen(self) -> list[str]:
        """What is frozen, by name."""
        return [field for (field,) in self._file.run("SELECT field FROM frozen")]

    def thaw(self, fields: Iterable[str]) -> None:
        """Forget the frozen values of fields that are not what they were."""
        for field in fields:
            self._file.run("DELETE FROM frozen WHERE field = ?", field)


def _fit(values: Iterable[object]) -> list[object]:
    """The same values, with times that are beyond SQLite's integers at the last of those."""
    return [max(-_MOST, min(value, _MOST)) if isinstance(value, int) else value for value in values]
