"""The ledger of a device: its rows, and the rules by which every promise ever made is kept."""

import json
from collections.abc import Iterable
from typing import NamedTuple

from hubbub.core.errors import HubbubError
from hubbub.core.spec import canonical
from hubbub.ledger.clock import LedgerClock, Observation, StepRefused
from hubbub.ledger.file import LedgerFile
from hubbub.ledger.promise import (
    MOST_PROMISES,
    MOST_UNITS,
    WHOLE,
    BudgetExceeded,
    Promise,
    Since,
    Spending,
    of_question,
)

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
    """Statements after which every promise counts as fully spent at a moment; promises for life stay spent for good.

    A ledger whose past was lost is made with `TABLES` and these statements.
    """
    return (
        f"INSERT INTO debits VALUES (1, '', '', {MOST_UNITS}, {int(wall)}, 0)",  # noqa: S608 - numbers alone
        f"INSERT INTO totals VALUES ('', '', '{MOST_UNITS}')",  # noqa: S608
        f"UPDATE times SET latest = {int(wall)}",  # noqa: S608
    )


class Debit(NamedTuple):
    """Units that an account spent on a question, and when: by the wall clock and in trusted time."""

    account: str
    question: str
    spent: int
    wall: int
    trusted: int


class Times(NamedTuple):
    """The latest wall time at which something was answered or frozen, and the last reading of the clock."""

    latest: int | None
    observation: Observation | None


class LedgerStore:
    """Reads and writes the rows of a ledger. Every call is made inside a transaction of its file."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def times(self) -> Times:
        """The row of times; there is one."""
        ((latest, *reading),) = self._file.run("SELECT latest, step, wall, monotonic, trusted FROM times")
        return Times(latest, None if reading[0] is None else Observation(*reading))

    def set_times(self, times: Times) -> None:
        """Write the row of times."""
        reading = times.observation or (None,) * 4
        self._file.run(
            "UPDATE times SET latest = ?, step = ?, wall = ?, monotonic = ?, trusted = ?", times[0], *reading
        )

    def promises(self) -> dict[int, Promise]:
        """All promises, by number."""
        rows = self._file.run("SELECT number, scope, promise FROM promises ORDER BY number")
        return {number: Promise.from_spec(json.loads(text), scope) for number, scope, text in rows}

    def add_promise(self, promise: Promise) -> int:
        """Store a promise, and return its number."""
        text = canonical(promise.spec())
        self._file.run("INSERT INTO promises (scope, promise) VALUES (?, ?)", promise.scope, text)
        ((number,),) = self._file.run("SELECT last_insert_rowid()")
        return int(number)

    def drop_promises(self, numbers: Iterable[int]) -> None:
        """Delete promises."""
        for number in numbers:
            self._file.run("DELETE FROM promises WHERE number = ?", number)

    def add_debit(self, debit: Debit) -> None:
        """Store a debit, and add it to the totals for life."""
        self._file.run(
            "INSERT INTO debits (account, question, spent, wall, trusted) VALUES (?, ?, ?, ?, ?)", *_fit(debit)
        )
        self.add_total(debit.account, debit.question, debit.spent)

    def add_total(self, account: str, question: str, spent: int) -> None:
        """Add to the totals for life."""
        names = (account, question)
        rows = self._file.run("SELECT spent FROM totals WHERE account = ? AND question = ?", *names)
        total = int(rows[0][0]) if rows else 0
        self._file.run("INSERT OR REPLACE INTO totals VALUES (?, ?, ?)", *names, str(total + spent))

    def total(self, account: str | None = None, question: str | None = None) -> int:
        """All that was ever spent: by an account, on a question, or at all."""
        rows = self._file.run(
            "SELECT spent FROM totals "
            "WHERE (?1 IS NULL OR account IN (?1, '')) AND (?2 IS NULL OR question IN (?2, ''))",
            *(account, question),
        )
        return sum(int(spent) for (spent,) in rows)

    def attributed(self) -> int:
        """All debits with a known account: without what a lost ledger is assumed to have spent."""
        return sum(int(spent) for (spent,) in self._file.run("SELECT spent FROM totals WHERE account <> ''"))

    def spent_since(self, since: Since, account: str | None = None, question: str | None = None) -> int:
        """The sum of the debits that count: of an account, on a question, or all."""
        # In two halves: the debits of several promises may add up to more than 63 bits.
        ((high, low),) = self._file.run(
            "SELECT SUM(spent >> 32), SUM(spent & 4294967295) FROM debits WHERE (wall >= ?1 OR trusted > ?2) "
            "AND (?3 IS NULL OR account IN (?3, '')) AND (?4 IS NULL OR question IN (?4, ''))",
            *_fit(since),
            *(account, question),
        )
        return (int(high or 0) << 32) + int(low or 0)

    def forget(self, since: Since) -> None:
        """Delete the debits that no promise counts any more, except those without a known account."""
        self._file.run("DELETE FROM debits WHERE wall < ? AND trusted <= ? AND account <> ''", *_fit(since))

    def freeze(self, field: str, wall: int, value: int | bytes, begins: int) -> int | bytes:
        """Store a value unless the field has one since the step began; return the stored one. Earlier steps are
        deleted."""
        self._file.run("DELETE FROM frozen WHERE wall < ?", begins)
        self._file.run("INSERT INTO frozen VALUES (?, ?, ?) ON CONFLICT DO NOTHING", field, wall, value)
        frozen: list[tuple[int | bytes]] = self._file.run("SELECT value FROM frozen WHERE field = ?", field)
        return frozen[0][0]

    def frozen(self) -> list[str]:
        """The names of all frozen values."""
        return [field for (field,) in self._file.run("SELECT field FROM frozen")]

    def thaw(self, fields: Iterable[str]) -> None:
        """Delete frozen values by name."""
        for field in fields:
            self._file.run("DELETE FROM frozen WHERE field = ?", field)


def _fit(values: Iterable[object]) -> list[object]:
    """The same values, with integers clipped to the range of SQLite's."""
    return [max(-_MOST, min(value, _MOST)) if isinstance(value, int) else value for value in values]


class TooManyPromises(HubbubError):
    """More promises than a device keeps."""


class Book:
    """Promises and debits in the tables of a file. Every call is made inside a transaction of that file.

    A debit must fit into its account's part of every promise about the whole, and into every promise about its
    question. It counts toward a promise of `steps` steps until, on the grid of that promise, the step has advanced by
    `steps` and trusted time (see `DeviceClock`) by steps - 1 intervals. Only the present step of the clock is answered,
    and no step before the latest answered one.

    `file`: a file with the tables `hubbub.ledger.book.TABLES`. `clock`: the device's time, on the grid in force; it may
    be replaced by one on another grid.
    """

    def __init__(self, file: LedgerFile, clock: LedgerClock) -> None:
        self.rows, self.clock = LedgerStore(file), clock

    def promises(self) -> list[Promise]:
        """All promises that are kept, in the order in which they were made."""
        return list(self.rows.promises().values())

    def promise(self, promises: Iterable[Promise]) -> None:
        """Add promises, which are kept for good; a promise that another one implies is not stored."""
        stored = self.rows.promises()
        for promise in promises:
            if any(earlier.implies(promise) for earlier in stored.values()):
                continue
            replaced = [number for number, earlier in stored.items() if promise.replaces(earlier)]
            self.rows.drop_promises(replaced)
            stored = {number: earlier for number, earlier in stored.items() if number not in replaced}
            stored[self.rows.add_promise(promise)] = promise
        if len(stored) > MOST_PROMISES:
            raise TooManyPromises(f"a device keeps at most {MOST_PROMISES} promises")

    def now(self) -> Observation:
        """Read the clock; the reading is not stored."""
        return self.clock.observe(self.rows.times().observation)

    def observe(self) -> Observation:
        """Read the clock and store the reading. Trusted time is the more exact the more often the clock is read."""
        times = self.rows.times()
        now = self.clock.observe(times.observation)
        self._forget_old_debits(times, now)
        return now

    def spend(self, step: int, account: str, question: str, units: int, *, until: int | None = None) -> None:
        """Debit the cost of an answer in the present step; if a promise does not allow it, raise and change nothing.

        With `until`, in ticks of the wall clock, the debit pays for all answers up to then, and is dated then.
        """
        times, now = self._enter(step)
        for promise in self.rows.promises().values():
            limit = promise.limit_for(account, question)
            if limit is not None:
                spent = self._spent(promise, times, now, account, question)
                if spent + units > limit:
                    raise BudgetExceeded(promise.unit, spent, units, limit)
        used = _used(times, now)
        # A debit is dated at the latest time used: if the clock was set back within its step, the time that it shows
        # may be in an earlier step of another promise's grid. A debit with `until` is dated at its end in trusted time
        # too: setting the clock forward does not bring that end nearer.
        ends = max(used.latest or 0, now.wall if until is None else until)
        trusted = now.trusted + (0 if until is None else max(0, until - now.wall))
        self.rows.add_debit(Debit(account, question, units, ends, trusted))
        self._forget_old_debits(used, now)

    def freeze(self, field: str, step: int, value: int | bytes) -> int | bytes:
        """Store a value of a field unless the present step has one already; return the stored value."""
        times, now = self._enter(step)
        self._forget_old_debits(_used(times, now), now)
        begins = self.clock.origin + step * self.clock.interval
        return self.rows.freeze(field, now.wall, value, begins)

    def spending(self, promise: Promise) -> Spending:
        """What is spent of a promise now, all accounts together."""
        times = self.rows.times()
        now = self.clock.observe(times.observation)
        question = None if promise.scope == WHOLE else promise.scope.removeprefix(of_question(""))
        spent = min(self._spent(promise, times, now, None, question), promise.limit)
        return Spending(spent, max(0, promise.limit - spent), promise.limit)

    def _spent(
        self, promise: Promise, times: Times, now: Observation, account: str | None, question: str | None
    ) -> int:
        scope = {"account": account} if promise.scope == WHOLE else {"question": question}
        since = promise.since(max(now.wall, times.latest or now.wall), now.trusted)
        return self.rows.total(**scope) if since is None else self.rows.spent_since(since, **scope)

    def _enter(self, step: int) -> tuple[Times, Observation]:
        """Refuse a step that is not the present one. The clock is read inside the transaction, by one process at a
        time."""
        times = self.rows.times()
        now = self.clock.observe(times.observation)
        if step != now.step:
            raise StepRefused(step, f"the device is in step {now.step}, and answers no other")
        if times.latest is not None:
            latest = (times.latest - self.clock.origin) // self.clock.interval
            if step < latest:
                raise StepRefused(step, f"the device has answered step {latest}: its clock was set back")
        return times, now

    def _forget_old_debits(self, times: Times, now: Observation) -> None:
        """Store the reading of the clock, and forget the debits that no promise will count again."""
        self.rows.set_times(times._replace(observation=now))
        promises = self.rows.promises().values()
        if times.latest is None or not promises:
            return
        # By the latest time used, not by the clock's time: a clock set forward may be set back, and needs the debits
        # then.
        counted = [promise.since(times.latest, now.trusted) or Since(times.latest, now.trusted) for promise in promises]
        self.rows.forget(Since(min(since.wall for since in counted), min(since.trusted for since in counted)))


def _used(times: Times, now: Observation) -> Times:
    return times._replace(latest=now.wall if times.latest is None else max(times.latest, now.wall))
