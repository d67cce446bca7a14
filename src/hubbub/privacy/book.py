"""The rules of a ledger: every promise ever made is kept, and a debit must fit into all of them."""

from __future__ import annotations

from collections.abc import Iterable

from hubbub.core.errors import HubbubError
from hubbub.privacy.budget import BudgetExceeded
from hubbub.privacy.device_clock import LedgerClock, Observation, StepRefused
from hubbub.privacy.ledger_file import LedgerFile
from hubbub.privacy.ledger_store import Debit, LedgerStore, Times
from hubbub.privacy.promise import MOST_PROMISES, WHOLE, Promise, Since, Spending, of_question


class TooManyPromises(HubbubError):
    """More promises than a device keeps."""


class Book:
    """Promises and debits in the tables of a file. Every call is made inside a transaction of that file.

    A debit must fit into its account's part of every promise about the whole, and into every promise about its
    question. It counts toward a promise of `steps` steps until, on the grid of that promise, the step has advanced by
    `steps` and trusted time (see `DeviceClock`) by steps - 1 intervals. Only the present step of the clock is answered,
    and no step before the latest answered one.

    Parameters
    ----------
    file
        A file with the tables `hubbub.privacy.ledger_store.TABLES`.
    clock
        The device's time, on the grid in force; it may be replaced by one on another grid.
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
        self._settle(times, now)
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
        self._settle(used, now)

    def freeze(self, field: str, step: int, value: int | bytes) -> int | bytes:
        """Store a value of a field unless the present step has one already; return the stored value."""
        times, now = self._enter(step)
        self._settle(_used(times, now), now)
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

    def _settle(self, times: Times, now: Observation) -> None:
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
