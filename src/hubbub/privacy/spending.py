"""What is spent of a promise, and where a ledger stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Spending", "Status"]


class Spending(NamedTuple):
    """One promise: spent, remaining and limit, in units of 1e-12 epsilon."""

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
