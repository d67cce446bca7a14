"""The ledger: a device's own account of what it has spent, which holds whatever the server asks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeVar

from hubbub.core.errors import InvalidValue
from hubbub.core.event import Event
from hubbub.core.migrations import Format
from hubbub.core.spec import Json
from hubbub.privacy.book import Book
from hubbub.privacy.budget import Budget, BudgetExceeded, Window
from hubbub.privacy.clock import LedgerClock, StepClock, StepRefused
from hubbub.privacy.device_clock import DeviceClock
from hubbub.privacy.ledger_checks import check_event, check_name, check_same, check_step
from hubbub.privacy.ledger_entries import ENTRIES, Entries, LedgerEntry
from hubbub.privacy.ledger_file import LedgerFile, LedgerUnavailable
from hubbub.privacy.ledger_migrations import from_1
from hubbub.privacy.ledger_store import TABLES
from hubbub.privacy.promise import Promise
from hubbub.privacy.spending import Spending, Status

if TYPE_CHECKING:
    from hubbub.core.random import Random

__all__ = [
    "Budget",
    "BudgetExceeded",
    "DeviceClock",
    "Ledger",
    "LedgerEntry",
    "LedgerUnavailable",
    "Spending",
    "Status",
    "StepClock",
    "StepRefused",
    "Window",
]

Value = TypeVar("Value", int, bytes)

ACCOUNT = "asks"
"""The one account of a ledger that is not divided."""

FORMAT = Format("version", 2, {1: from_1})
"""The version of a ledger's file; a change of its tables or of what they mean is a migration to the next."""


class Ledger:
    """One budget on one device: durable, shared by its processes, and the last word.

    An answer and its debit are stored in one transaction before the answer is handed out, so that spent is never less
    than sent. Only the clock's own step is answered, and none before the latest that was. A debit leaves the window
    once the step has moved on by w *and* trusted time (see `DeviceClock`) by w - 1 intervals: answers w steps apart may
    be as near as that. So no w consecutive steps cost more than the window's limit and, whatever is done to the clock,
    no stretch of w - 1 intervals of true time does.
    Not defended: someone who owns the device, and can take the file away.

    The rules are those of `Book`, which a client keeps in its own file, with the promises of every version.

    Parameters
    ----------
    path
        Its file, or ":memory:" for tests and simulations.
    budget
        The limits. They stay in the file: a changed budget is a new collection.
    clock
        The device's time, or a `StepClock`.
    collection
        The id of the collection.
    rng
        Where the entries' ids come from; the operating system if left out.

    Example:
        >>> ledger = Ledger(":memory:", Budget.of(event=1.0), clock=StepClock())
        >>> event = Event.of("GRR", "0" * 32, 1.0)
        >>> first = ledger.answer("ask 1", 0, event, lambda: b"randomised")
        >>> ledger.answer("ask 1", 0, event, lambda: b"never made") == first
        True
        >>> ledger.answer("ask 2", 0, event, lambda: b"never made")
        Traceback (most recent call last):
            ...
        hubbub.privacy.budget.BudgetExceeded: event: 1 epsilon spent, 1 asked, limit 1
        >>> ledger.close()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        budget: Budget,
        *,
        clock: LedgerClock,
        collection: str = "",
        rng: Random | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise InvalidValue("budget", budget, "a Budget")
        if collection != "":
            check_name("collection", collection)
        if rng is None:
            from hubbub.core.random import Random

            rng = Random()
        self._rng = rng
        terms: dict[str, Json] = {
            "budget": budget.spec(),
            "clock": clock.spec(),
            "collection": collection,
        }
        self._file = LedgerFile(path, terms, (*TABLES, ENTRIES), FORMAT)
        self._book, self._entries = Book(self._file, clock), Entries(self._file)
        self._promises = promises_of(budget, clock)
        with self._file.transaction():
            self._book.promise(self._promises.values())

    def answer(self, ask_id: str, step: int, event: Event, make: Callable[[], bytes]) -> LedgerEntry:
        """Answer an ask once: check step and budget, call `make` to randomise, store bytes and debit, return them.

        The same ask again returns the same entry and spends nothing; its `report` is None once it was acknowledged.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock()) as ledger:
            ...     entry = ledger.answer("ask 1", 0, Event.of("GRR", "0" * 32, 0.5), lambda: b"randomised")
            >>> len(entry.id), entry.report, entry.spent
            (16, b'randomised', 500000000000)
        """
        check_name("ask_id", ask_id)
        check_step(step)
        check_event(event, step)
        with self._file.transaction():
            known = self._entries.entry(ask_id)
            if known is not None:
                check_same(known, step, event)
                return known
            self._book.spend(step, ACCOUNT, ACCOUNT, event.spent)
            report = make()
            if type(report) is not bytes:
                raise InvalidValue("make", report, "a function that returns bytes")
            entry = LedgerEntry(self._rng.bytes(16), ask_id, step, event.mechanism, event.spec_id, event.spent, report)
            self._entries.add(entry)
        return entry

    def freeze(self, field: str, step: int, value: Value) -> Value:
        """Keep the first value of a field in the current step and return it, so that two asks see the same one.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock()) as ledger:
            ...     ledger.freeze("browser", 0, 3), ledger.freeze("browser", 0, 4)
            (3, 3)
        """
        check_name("field", field)
        check_step(step)
        if type(value) is not bytes and (type(value) is not int or not -(1 << 63) <= value < 1 << 63):
            raise InvalidValue("value", value, "bytes, or an integer of 64 bits")
        with self._file.transaction():
            kept = self._book.freeze(field, step, value)
        if type(kept) is not type(value):
            raise InvalidValue("value", value, f"of the kind that was frozen, {type(kept).__name__}")
        return kept

    def pending(self) -> list[LedgerEntry]:
        """The entries that were not acknowledged, oldest first: to be sent as they are.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock()) as ledger:
            ...     ledger.pending()
            []
        """
        with self._file.transaction():
            return self._entries.pending()

    def sent(self, entry_id: bytes) -> bool:
        """Note that an entry was acknowledged, and drop its bytes; its debit stays. Whether it was pending.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock()) as ledger:
            ...     entry = ledger.answer("ask 1", 0, Event.of("GRR", "0" * 32, 0.5), lambda: b"randomised")
            ...     ledger.sent(entry.id), ledger.sent(entry.id), ledger.pending()
            (True, False, [])
        """
        if type(entry_id) is not bytes or len(entry_id) != 16:
            raise InvalidValue("entry_id", entry_id, "the 16 bytes of an entry's id")
        with self._file.transaction():
            return self._entries.acknowledge(entry_id)

    def observe(self) -> int:
        """Store what the clock shows, and return its step.

        Trusted time is only as good as it is often read: done on starting, now and then, and on stopping, a reboot
        loses little more than the time that the device was off.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock(4)) as ledger:
            ...     ledger.observe()
            4
        """
        with self._file.transaction():
            return self._book.observe().step

    def status(self) -> Status:
        """What is spent and what remains, now.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock()) as ledger:
            ...     ledger.status().user
            Spending(spent=0, remaining=2000000000000, limit=2000000000000)
        """
        with self._file.transaction():
            units = {name: self._book.spending(promise) for name, promise in self._promises.items()}
            return Status(
                step=self._book.now().step,
                event=units.get("event"),
                window=units.get("window"),
                user=units.get("user"),
                lifetime=self._book.rows.total(),
                pending=self._entries.pending_count(),
            )

    def close(self) -> None:
        """Close the file; a `with` block does it too.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock()) as ledger:
            ...     ledger.status().pending
            0
        """
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def promises_of(budget: Budget, clock: LedgerClock) -> dict[str, Promise]:
    """The promises of a budget, all of it for one account, on the grid of a clock.

    Example:
        >>> promises_of(Budget(window=Window(10, 3)), StepClock())["window"].steps
        3
    """
    window, grid = budget.window, (clock.interval, clock.origin)
    found = {} if budget.event is None else {"event": (budget.event, 1, *grid)}
    found |= {} if window is None else {"window": (window.limit, window.steps, *grid)}
    found |= {} if budget.user is None else {"user": (budget.user, 0, 0, 0)}
    return {name: Promise(*given, parts={ACCOUNT: given[0]}) for name, given in found.items()}
