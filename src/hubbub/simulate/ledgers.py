"""The ledgers of a simulated population, all at once: what each device spent in the last w steps."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.event import Event, units_of
from hubbub.privacy.ledger import BudgetExceeded

__all__ = ["Ledgers"]


class Ledgers:
    """A window budget a device, charged by runs of devices; a device that cannot pay refuses, and the run stops.

    Parameters
    ----------
    n
        How many devices there are.
    epsilon, w
        What any w consecutive steps may cost a device.

    Example:
        >>> ledgers = Ledgers(3, epsilon=1.0, w=2)
        >>> ledgers.charge(Event("GRR", "0" * 32, 10**12, step=1), 0, 2)
        >>> ledgers.charge(Event("GRR", "0" * 32, 10**12, step=2), 1, 3)
        Traceback (most recent call last):
            ...
        hubbub.privacy.budget.BudgetExceeded: ...
    """

    def __init__(self, n: int, *, epsilon: float, w: int) -> None:
        self.limit, self.w, self.step = units_of(epsilon), w, 0
        self.spent: NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        self.log: list[tuple[int, int, int, int]] = []
        self._window: deque[list[tuple[int, int, int]]] = deque()

    def charge(self, event: Event, start: int, stop: int) -> None:
        """Charge the devices start to stop-1."""
        if event.step is None or event.step < self.step:
            raise InvalidValue("step", event.step, f"a step of at least {self.step}")
        while self.step < event.step:
            self.step += 1
            self._window.append([])
            if len(self._window) > self.w:
                for first, last, units in self._window.popleft():
                    self.spent[first:last] -= units
        account = self.spent[start:stop]
        if account.size and int(account.max()) + event.spent > self.limit:
            raise BudgetExceeded("window", int(account.max()), event.spent, self.limit)
        account += event.spent
        self._window[-1].append((start, stop, event.spent))
        self.log.append((event.step, start, stop, event.spent))
