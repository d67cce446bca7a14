"""The ledger: a device's own account of what it has spent, which holds whatever the server asks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeVar

from hubbub.core.errors import InvalidValue
from hubbub.core.event import Event
from hubbub.core.migrations import Format
from hubbub.core.spec import Json
from hubbub.privacy.budget import Budget, BudgetExceeded, Window
from hubbub.privacy.clock import Clock, Observation, StepClock, StepRefused
from hubbub.privacy.device_clock import DeviceClock
from hubbub.privacy.ledger_checks import check_event, check_name, check_same, check_step
from hubbub.privacy.ledger_file import LedgerFile, LedgerUnavailable
from hubbub.privacy.ledger_store import TABLES, Account, Entry, LedgerStore
from hubbub.privacy.spending import Spending, Status, settle, spendings

if TYPE_CHECKING:
    from hubbub.core.random import Random

__all__ = [
    "Budget",
    "BudgetExceeded",
    "DeviceClock",
    "Entry",
    "Ledger",
    "LedgerUnavailable",
    "Spending",
    "Status",
    "StepClock",
    "StepRefused",
    "Window",
]

Value = TypeVar("Value", int, bytes)

FORMAT = Format("version", 1)
"""The version of a ledger's file; a change of its tables or of what they mean is a migration to the next."""


class Ledger:
    """One device's account in one collection: durable, shared by its processes, and the last word.

    An answer and its debit are stored in one transaction before the answer is handed out, so that spent is never less
    than sent. Only the clock's own step is answered, and none before the latest that was. A debit leaves the window
    once the step has moved on by w *and* trusted time (see `DeviceClock`) by w - 1 intervals: answers w steps apart may
    be as near as that. So no w consecutive steps cost more than the window's limit and, whatever is done to the clock,
    no stretch of w - 1 intervals of true time does.
    Not defended: someone who owns the device, and can take the file away.

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
        clock: Clock,
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
        self._budget = budget
        self._clock = clock
        self._rng = rng
        terms: dict[str, Json] = {
            "budget": budget.spec(),
            "clock": clock.spec(),
            "collection": collection,
        }
        self._file = LedgerFile(path, terms, TABLES, FORMAT)
        self._store = LedgerStore(self._file)

    def answer(self, ask_id: str, step: int, event: Event, make: Callable[[], bytes]) -> Entry:
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
            known = self._store.entry(ask_id)
            if known is not None:
                check_same(known, step, event)
                return known
            account, now = self._enter(step)
            for unit, spending in self._spendings(account, now).items():
                if event.spent > spending.remaining:
                    raise BudgetExceeded(unit, spending.spent, event.spent, spending.limit)
            report = make()
            if type(report) is not bytes:
                raise InvalidValue("make", report, "a function that returns bytes")
            entry = Entry(self._rng.bytes(16), ask_id, step, event.mechanism, event.spec_id, event.spent, report)
            self._store.add(entry, now.trusted)
            self._settle(account._replace(lifetime=account.lifetime + event.spent, latest=step), now)
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
            account, now = self._enter(step)
            self._settle(account._replace(latest=step), now)
            kept = self._store.freeze(field, step, value)
        if type(kept) is not type(value):
            raise InvalidValue("value", value, f"of the kind that was frozen, {type(kept).__name__}")
        return kept

    def pending(self) -> list[Entry]:
        """The entries that were not acknowledged, oldest first: to be sent as they are.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock()) as ledger:
            ...     ledger.pending()
            []
        """
        with self._file.transaction():
            return self._store.pending()

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
            return self._store.acknowledge(entry_id)

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
            account = self._store.account()
            now = self._clock.observe(account.seen)
            self._settle(account, now)
        return now.step

    def status(self) -> Status:
        """What is spent and what remains, now.

        Example:
            >>> with Ledger(":memory:", Budget.of(user=2.0), clock=StepClock()) as ledger:
            ...     ledger.status().user
            Spending(spent=0, remaining=2000000000000, limit=2000000000000)
        """
        with self._file.transaction():
            account = self._store.account()
            now = self._clock.observe(account.seen)
            units = self._spendings(account, now)
            pending = self._store.pending_count()
        return Status(
            step=now.step,
            event=units.get("event"),
            window=units.get("window"),
            user=units.get("user"),
            lifetime=account.lifetime,
            pending=pending,
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

    def _enter(self, step: int) -> tuple[Account, Observation]:
        """Refuse a step that is not the device's own, by a clock read while no other process can."""
        account = self._store.account()
        now = self._clock.observe(account.seen)
        if step != now.step:
            raise StepRefused(step, f"the device is in step {now.step}, and answers no other")
        if step < account.latest:
            raise StepRefused(step, f"the device has answered step {account.latest}: its clock was set back")
        return account, now

    def _spendings(self, account: Account, now: Observation) -> dict[str, Spending]:
        return spendings(self._store, account, now, self._budget, self._clock.interval)

    def _settle(self, account: Account, now: Observation) -> None:
        settle(self._store, account, now, self._budget, self._clock.interval)
