"""A book of promises in a file of its own, with the answers it paid for: what tests of the book drive.

A client keeps its book in its one database, with everything else (`hubbub.client.store`). Here a budget is one
account of one grid, so that the rules of `Book` and `LedgerFile` are tried without a collection or a mechanism.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from hubbub.core.event import Event
from hubbub.core.migrations import Format
from hubbub.ledger.book import TABLES, Book
from hubbub.ledger.clock import DeviceClock, LedgerClock, Observation
from hubbub.ledger.file import LedgerFile
from hubbub.ledger.promise import Budget, Promise, Spending
from hubbub.random.source import Random

ACCOUNT = "asks"
ENTRIES = (
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, ask_id TEXT NOT NULL UNIQUE, id BLOB NOT NULL UNIQUE, "
    "step INTEGER NOT NULL, mechanism TEXT NOT NULL, spec_id TEXT NOT NULL, spent INTEGER NOT NULL, report BLOB)"
)
_ENTRY = "SELECT id, ask_id, step, mechanism, spec_id, spent, report FROM entries"
FORMAT = Format("version", 2)


@dataclass(frozen=True)
class LedgerEntry:
    """One answer; its bytes are None once they were acknowledged."""

    id: bytes
    ask_id: str
    step: int
    mechanism: str
    spec_id: str
    spent: int
    report: bytes | None


@dataclass(frozen=True)
class Status:
    """What is spent of each limit, all that was ever spent, and what waits to be sent."""

    step: int
    event: Spending | None
    window: Spending | None
    user: Spending | None
    lifetime: int
    pending: int


class StepClock:
    """A clock whose step is simply set; trusted time follows it, and a step set back adds none."""

    interval = 1
    origin = 0

    def __init__(self, step: int = 0) -> None:
        self.step = step

    def observe(self, last: Observation | None) -> Observation:
        trusted = 0 if last is None else last.trusted + max(0, self.step - last.step)
        return Observation(self.step, self.step, self.step, trusted)


class ShownClock:
    """A clock that shows what it is told, wall time and trusted time apart."""

    origin = 0

    def __init__(self, interval: int) -> None:
        self.interval, self.wall, self.trusted = interval, 0, 0

    @property
    def step(self) -> int:
        return self.wall // self.interval

    def observe(self, last: Observation | None) -> Observation:
        return Observation(self.step, self.wall, 0, self.trusted)


class TrueTime:
    """A world whose true time is known, with a wall clock that can be set and a clock since boot."""

    def __init__(self, true: int = 1000, since_boot: int = 100) -> None:
        self.true, self.boot, self.error = true, true - since_boot, 0

    def clock(self, interval: int, *, origin: int = 0, kind: type[DeviceClock] = DeviceClock) -> DeviceClock:
        wall, monotonic = (lambda: self.true + self.error), (lambda: self.true - self.boot)
        return kind(interval, origin=origin, wall=wall, monotonic=monotonic)

    def wait(self, seconds: int) -> None:
        self.true += seconds

    def set(self, seconds: int) -> None:
        """Set the wall clock forward, or back."""
        self.error += seconds

    def reboot(self, off: int) -> None:
        """Start the machine again, after it was off for some time."""
        self.true += off
        self.boot = self.true


def memory_book(clock: LedgerClock, *promises: Promise) -> tuple[Book, LedgerFile]:
    """A book in memory in which promises were made, and its file."""
    file = LedgerFile(":memory:", {}, TABLES, FORMAT)
    book = Book(file, clock)
    with file.transaction():
        book.promise(promises)
    return book, file


class Ledger:
    """One budget in one file: an answer and its debit are one transaction."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        budget: Budget,
        *,
        clock: LedgerClock,
        collection: str = "",
        rng: Random | None = None,
    ) -> None:
        self._rng = rng or Random()
        terms: dict[str, Any] = {
            "budget": budget.spec(),
            "clock": [type(clock).__name__, clock.interval, clock.origin],
            "collection": collection,
        }
        self.file = LedgerFile(path, terms, (*TABLES, ENTRIES), FORMAT)
        self.book = Book(self.file, clock)
        window, grid = budget.window, (clock.interval, clock.origin)
        limits = {} if budget.event is None else {"event": (budget.event, 1, *grid)}
        limits |= {} if window is None else {"window": (window.limit, window.steps, *grid)}
        limits |= {} if budget.user is None else {"user": (budget.user, 0, 0, 0)}
        self._promises = {unit: Promise(*limit, parts={ACCOUNT: limit[0]}) for unit, limit in limits.items()}
        with self.file.transaction():
            self.book.promise(self._promises.values())

    def answer(self, ask_id: str, step: int, event: Event, make: Callable[[], bytes]) -> LedgerEntry:
        """Answer an ask once; the same ask again is the same entry, and free."""
        with self.file.transaction():
            rows = self.file.run(f"{_ENTRY} WHERE ask_id = ?", ask_id)
            if rows:
                return LedgerEntry(*rows[0])
            self.book.spend(step, ACCOUNT, ACCOUNT, event.spent)
            report = make()
            entry = LedgerEntry(self._rng.bytes(16), ask_id, step, event.mechanism, event.spec_id, event.spent, report)
            self.file.run(
                "INSERT INTO entries (id, ask_id, step, mechanism, spec_id, spent, report) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(entry.id, ask_id, step, event.mechanism, event.spec_id, event.spent, report),
            )
            self.file.run("DELETE FROM entries WHERE report IS NULL AND step < ?", step)
        return entry

    def freeze(self, field: str, step: int, value: Any) -> Any:
        """The first value of a field in the present step."""
        with self.file.transaction():
            return self.book.freeze(field, step, value)

    def pending(self) -> list[LedgerEntry]:
        """What was not acknowledged, oldest first."""
        with self.file.transaction():
            return [LedgerEntry(*row) for row in self.file.run(f"{_ENTRY} WHERE report IS NOT NULL ORDER BY number")]

    def sent(self, entry_id: bytes) -> bool:
        """Drop the bytes of an answer; whether it was pending."""
        with self.file.transaction():
            known = self.file.run("SELECT 1 FROM entries WHERE id = ? AND report IS NOT NULL", entry_id)
            self.file.run("UPDATE entries SET report = NULL WHERE id = ?", entry_id)
        return bool(known)

    def observe(self) -> int:
        """Store what the clock shows, and return its step."""
        with self.file.transaction():
            return self.book.observe().step

    def status(self) -> Status:
        """Where it stands."""
        pending = len(self.pending())
        with self.file.transaction():
            spent = {unit: self.book.spending(promise) for unit, promise in self._promises.items()}
            return Status(
                step=self.book.now().step,
                event=spent.get("event"),
                window=spent.get("window"),
                user=spent.get("user"),
                lifetime=self.book.rows.total(),
                pending=pending,
            )

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
