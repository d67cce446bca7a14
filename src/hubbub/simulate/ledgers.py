"""The ledgers of all simulated devices, vectorised and in memory, with the rules of a device's own ledger (`Book`)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Self

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.reports import Bools, Ints
from hubbub.ledger.promise import WHOLE, BudgetExceeded, Promise

ACCOUNT = "asks"
"""The default account and question of a debit."""

Units = int | Ints
Rows = slice | Ints


class Ledgers:
    """A ledger for each of n devices with the same promises. All devices have the same clock, which never goes back.

    `promises`: the promises that each device keeps; as in `Book`, promises that others imply are left out. `strict`:
    whether to raise `BudgetExceeded` if a device cannot pay: for protocols that never ask too much.
    """

    def __init__(self, n: int, promises: Iterable[Promise], *, strict: bool = False) -> None:
        in_force: list[Promise] = []
        for promise in promises:
            if not any(other.implies(promise) for other in in_force):
                in_force = [other for other in in_force if not promise.replaces(other)] + [promise]
        self.n, self.promises, self.strict = n, tuple(in_force), strict
        self._now: int | None = None
        self._tallies: dict[tuple[int, str], Tally] = {}

    @classmethod
    def of_window(cls, n: int, *, epsilon: float, w: int, strict: bool = False) -> Self:
        """Ledgers that allow epsilon in any w consecutive steps; if w is 0, for life."""
        limit = units_of(epsilon)
        return cls(n, [Promise(limit, w, min(w, 1), parts={ACCOUNT: limit})], strict=strict)

    @property
    def most(self) -> int:
        """The largest amount that counts now for any device and promise."""
        return max((int(tally.spent.max(initial=0)) for tally in self._tallies.values()), default=0)

    def spend(
        self,
        now: int,
        units: Units,
        devices: Rows,
        *,
        account: str = ACCOUNT,
        question: str = ACCOUNT,
        until: int | None = None,
    ) -> Bools:
        """Debit the devices that can pay, and return which can. The ledgers of the others are not changed.

        Parameters
        ----------
        now
            The time, in the ticks of the promises' grids.
        units
            The cost for each device, in units of 1e-12 epsilon: one number for all, or one for each.
        devices
            The devices, as a slice or by their numbers, each once.
        account, question
            The account that pays, and the question that is paid for.
        until
            The time up to which the debit pays for answers: it counts as spent then; `now` unless given.
        """
        if self._now is not None and now < self._now:
            raise InvalidValue("now", now, f"a time from {self._now} on: the clock does not go back")
        self._now = now
        cost = np.asarray(units, dtype=np.int64)
        able = np.ones(len(range(self.n)[devices]) if isinstance(devices, slice) else devices.size, dtype=bool)
        tallies = []
        for number, promise in enumerate(self.promises):
            limit = promise.limit_for(account, question)
            if limit is None:
                continue
            tally = self._tally(number, account)
            tallies.append(tally)
            tally.forget(now)
            spent = tally.spent[devices]
            able &= spent + cost <= limit
            if self.strict and not able.all():
                raise BudgetExceeded(promise.unit, int(spent.max()), int(cost.max()), limit)
        if not able.all():
            devices = (np.arange(self.n)[devices] if isinstance(devices, slice) else devices)[able]
            cost = cost[able] if cost.ndim else cost
        for tally in tallies:
            tally.add(now if until is None else max(now, until), devices, cost)
        return able

    def _tally(self, number: int, account: str) -> Tally:
        """The tally of a promise; a promise about the whole has one for each account."""
        promise = self.promises[number]
        key = (number, account if promise.scope == WHOLE else "")
        if key not in self._tallies:
            self._tallies[key] = Tally(self.n, promise)
        return self._tallies[key]


class Tally:
    """What each device has spent that still counts for a promise, and the debits by date."""

    def __init__(self, n: int, promise: Promise) -> None:
        self.spent: Ints = np.zeros(n, dtype=np.int64)
        self._promise = promise
        self._debits: list[tuple[int, int, Rows, Ints]] = []
        self._number = 0

    def forget(self, now: int) -> None:
        # Where clocks are honest, what has left the window by the wall clock has left it in trusted time too.
        since = self._promise.since(now, now)
        while since is not None and self._debits and self._debits[0][0] < since.wall:
            _, _, devices, units = heappop(self._debits)
            self.spent[devices] -= units

    def add(self, date: int, devices: Rows, units: Ints) -> None:
        self.spent[devices] += units
        if self._promise.steps:
            self._number += 1
            heappush(self._debits, (date, self._number, devices, units))


class StudyPayments:
    """How devices pay for one run of a study: the whole cost with the first answer, whatever is asked later.

    `limit`: the cost of the run for a device, in units of 1e-12 epsilon; the asks that it answers may sum to no more.
    `ends`: the last tick of the run's last round: the debit counts until then, and for the window after it.
    """

    def __init__(self, ledgers: Ledgers, *, limit: int, ends: int) -> None:
        self._ledgers, self._limit, self._ends = ledgers, limit, ends
        self._begun = np.zeros(ledgers.n, dtype=bool)
        self._declared = np.zeros(ledgers.n, dtype=np.int64)

    def pay(self, now: int, units: Units, devices: Rows, *, account: str = ACCOUNT, question: str = ACCOUNT) -> Bools:
        """Whether each device answers an ask of this cost: it begins the study and pays for it, or goes on with it."""
        rows = np.arange(self._ledgers.n)[devices] if isinstance(devices, slice) else devices
        able = self._declared[rows] + units <= self._limit
        new = able & ~self._begun[rows]
        able[new] = self._ledgers.spend(
            now, self._limit, rows[new], account=account, question=question, until=self._ends
        )
        self._begun[rows[able]] = True
        self._declared[rows[able]] += units if isinstance(units, int) else units[able]
        return able
