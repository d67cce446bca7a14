"""Which debits count toward which unit of privacy, and which can be forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hubbub.privacy.budget import Budget
from hubbub.privacy.clock import Observation
from hubbub.privacy.ledger_store import Account, LedgerStore

__all__ = ["Spending", "Status", "settle", "spendings"]


class Spending(NamedTuple):
    """One unit of privacy: spent, remaining and limit, in units of 1e-12 epsilon."""

    spent: int
    remaining: int
    limit: int


@dataclass(frozen=True)
class Status:
    """Where a ledger stands: the units that are declared, all that was ever spent, and what waits to be sent."""

    step: int
    event: Spending | None
    window: Spending | None
    user: Spending | None
    lifetime: int
    pending: int


def spendings(
    store: LedgerStore, account: Account, now: Observation, budget: Budget, interval: int
) -> dict[str, Spending]:
    """What is spent of every unit that is declared.

    A debit counts toward the window until the step has moved on by w and trusted time by w - 1 intervals.

    Example:
        >>> from hubbub.privacy.ledger import Budget, Ledger, StepClock
        >>> with Ledger(":memory:", Budget.of(window=(1, 5)), clock=StepClock()) as ledger:
        ...     ledger.status().window.remaining
        1000000000000
    """
    found = {}
    if budget.event is not None:
        found["event"] = _spending(store.spent_in(max(now.step, account.latest)), budget.event)
    if budget.window is not None:
        spent = store.spent_since(now.step - budget.window.steps, _trusted_bound(now, budget, interval))
        found["window"] = _spending(spent, budget.window.limit)
    if budget.user is not None:
        found["user"] = _spending(account.lifetime, budget.user)
    return found


def settle(store: LedgerStore, account: Account, now: Observation, budget: Budget, interval: int) -> None:
    """Store the totals and the time, and forget what no unit will need again.

    Example:
        >>> from hubbub.privacy.ledger import Budget, Ledger, StepClock
        >>> with Ledger(":memory:", Budget.of(window=(1, 5)), clock=StepClock(3)) as ledger:
        ...     ledger.observe()
        3
    """
    store.set_account(account._replace(seen=now))
    # By the latest step used, not by the clock's: a clock set forward may come back, and needs the debits then.
    store.fold(account.latest - _width(budget), _trusted_bound(now, budget, interval), account.latest)


def _spending(spent: int, limit: int) -> Spending:
    return Spending(spent, max(0, limit - spent), limit)


def _trusted_bound(now: Observation, budget: Budget, interval: int) -> int:
    """The trusted time up to which debits may leave the window; -1 while there is none."""
    return max(-1, now.trusted - (_width(budget) - 1) * interval)


def _width(budget: Budget) -> int:
    return 1 if budget.window is None else budget.window.steps
