"""What is spent of a promise."""

from __future__ import annotations

from typing import NamedTuple


class Spending(NamedTuple):
    """One promise: spent, remaining and limit, in units of 1e-12 epsilon."""

    spent: int
    remaining: int
    limit: int
