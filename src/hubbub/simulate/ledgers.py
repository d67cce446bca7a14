"""The ledgers of simulated devices, all at once and in memory, under the rules of the device's own (`Book`)."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.privacy.budget import BudgetExceeded
from hubbub.privacy.promise import WHOLE, Promise

ACCOUNT = "asks"
"""The account, and the question, of what is spent where nothing else is said."""

Units = int | NDArray[np.int64]
Rows = slice | NDArray[np.int64]


class Ledgers:
    """A ledger for each of n devices with the same promises. Their clocks agree, and never go back.

    Parameters
    ----------
    n
        How many devices there are.
    promises
        What each of them keeps; as with `Book`, those that others imply are left out.
    strict
        Whether a device that cannot pay stops it all with `BudgetExceeded`: for protocols that never ask too much.

    Example:
        >>> ledgers = Ledgers.of_window(3, epsilon=1.0, w=2)
        >>> ledgers.spend(1, 10**12, slice(0, 2)).tolist()
        [True, True]
        >>> ledgers.spend(2, 10**12, slice(0, 3)).tolist(), ledgers.most
        ([False, False, True], 1000000000000)
        >>> ledgers.spend(3, 10**12, np.array([0, 2])).tolist()
        [True, False]
    """

    def __init__(self, n: int, promises: Iterable[Promise], *, strict: bool = False) -> None:
        kept: list[Promise] = []
        for promise in promises:
            if not any(other.implies(promise) for other in kept):
                kept = [other for other in kept if not promise.replaces(other)] + [promise]
        self.n, self.promises, self.strict = n, tuple(kept), strict
        self._now: int | None = None
        self._tallies: dict[tuple[int, str], _Tally] = {}

    @classmethod
    def of_window(cls, n: int, *, epsilon: float, w: int, strict: bool = False) -> Self:
        """Ledgers that allow so much in any w consecutive steps, 0 steps meaning for life.

        Example:
            >>> Ledgers.of_window(3, epsilon=1.0, w=0).promises[0].unit
            'user'
        """
        limit = units_of(epsilon)
        return cls(n, [Promise(limit, w, min(w, 1), parts={ACCOUNT: limit})], strict=strict)

    @property
    def most(self) -> int:
        """What counts now of the device and the promise of which most does."""
        return max((int(tally.spent.max(initial=0)) for tally in self._tallies.values()), default=0)

    def spend(
        self,
        now: int,
        units: Units,
        who: Rows,
        *,
        account: str = ACCOUNT,
        question: str = ACCOUNT,
        until: int | None = None,
    ) -> NDArray[np.bool_]:
        """Debit the devices that can pay, and say which they are. The others' ledgers are not changed.

        Parameters
        ----------
        now
            The time, in the ticks of the promises' grids.
        units
            What it costs each of them, in units of 1e-12 epsilon: one number, or one a device.
        who
            The devices, as a slice or by their numbers, each once.
        account, question
            What is paid from, and for.
        until
            It pays for all answers up to this time, and counts as if spent then; now unless given.
        """
        if self._now is not None and now < self._now:
            raise InvalidValue("now", now, f"a time from {self._now} on: these clocks do not go back")
        self._now = now
        asked = np.asarray(units, dtype=np.int64)
        able = np.ones(len(range(self.n)[who]) if isinstance(who, slice) else who.size, dtype=bool)
        tallies = []
        for number, promise in enumerate(self.promises):
            limit = promise.limit_for(account, question)
            if limit is None:
                continue
            tally = self._tally(number, account)
            tallies.append(tally)
            tally.forget(now)
            spent = tally.spent[who]
            able &= spent + asked <= limit
            if self.strict and not able.all():
                raise BudgetExceeded(promise.unit, int(spent.max()), int(asked.max()), limit)
        if not able.all():
            who = (np.arange(self.n)[who] if isinstance(who, slice) else who)[able]
            asked = asked[able] if asked.ndim else asked
        for tally in tallies:
            tally.add(now if until is None else max(now, until), who, asked)
        return able

    def _tally(self, number: int, account: str) -> _Tally:
        """What counts toward a promise: of the whole, of each account by itself."""
        promise = self.promises[number]
        key = (number, account if promise.scope == WHOLE else "")
        if key not in self._tallies:
            self._tallies[key] = _Tally(self.n, promise)
        return self._tallies[key]


class _Tally:
    """What each device has spent as far as a promise counts it, and when each debit stops counting."""

    def __init__(self, n: int, promise: Promise) -> None:
        self.spent: NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        self._promise = promise
        self._debits: list[tuple[int, int, Rows, NDArray[np.int64]]] = []
        self._number = 0

    def forget(self, now: int) -> None:
        # Where clocks are honest, what has left the window by the wall clock has left it in trusted time too.
        since = self._promise.since(now, now)
        while since is not None and self._debits and self._debits[0][0] < since.wall:
            _, _, who, units = heappop(self._debits)
            self.spent[who] -= units

    def add(self, date: int, who: Rows, units: NDArray[np.int64]) -> None:
        self.spent[who] += units
        if self._promise.steps:
            self._number += 1
            heappush(self._debits, (date, self._number, who, units))


class StudyPayments:
    """How devices pay for one run of a study: all of it with the first answer, whatever they are asked then.

    Parameters
    ----------
    ledgers
        The devices' ledgers.
    limit
        What the run may cost a device, in units of 1e-12 epsilon: the asks that it answers declare no more together.
    ends
        The last tick of the run's last round: until then, and the window after, it counts.

    Example:
        >>> study = StudyPayments(ledgers := Ledgers.of_window(2, epsilon=3.0, w=2), limit=2 * 10**12, ends=5)
        >>> study.pay(1, 10**12, slice(0, 1)).tolist(), study.pay(2, 10**12, slice(0, 2)).tolist()
        ([True], [True, True])
        >>> study.pay(3, 10**12, slice(0, 2)).tolist(), ledgers.most  # the first has answered for its 2 epsilon
        ([False, True], 2000000000000)
        >>> [ledgers.spend(now, 2 * 10**12, slice(0, 2)).any().item() for now in (5, 6, 7)]
        [False, False, True]
    """

    def __init__(self, ledgers: Ledgers, *, limit: int, ends: int) -> None:
        self._ledgers, self._limit, self._ends = ledgers, limit, ends
        self._begun = np.zeros(ledgers.n, dtype=bool)
        self._declared = np.zeros(ledgers.n, dtype=np.int64)

    def pay(
        self, now: int, units: Units, who: Rows, *, account: str = ACCOUNT, question: str = ACCOUNT
    ) -> NDArray[np.bool_]:
        """Which devices go on with the study, or begin it, for an ask that declares so much."""
        rows = np.arange(self._ledgers.n)[who] if isinstance(who, slice) else who
        able = self._declared[rows] + units <= self._limit
        new = able & ~self._begun[rows]
        able[new] = self._ledgers.spend(
            now, self._limit, rows[new], account=account, question=question, until=self._ends
        )
        self._begun[rows[able]] = True
        self._declared[rows[able]] += units if isinstance(units, int) else units[able]
        return able
