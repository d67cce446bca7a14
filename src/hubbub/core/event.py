"""Events: what was spent, said in integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["UNITS_PER_EPSILON", "Event"]

UNITS_PER_EPSILON = 10**12
"""Budgets are counted in units of 1e-12 epsilon: sums of floats would refuse or overspend."""


@dataclass(frozen=True)
class Event:
    """One use of a mechanism, as the ledger will charge it.

    Parameters
    ----------
    mechanism, spec_id
        What was used.
    spent
        Its effective epsilon in units of 1e-12, rounded up.
    step
        When, in the collection's own steps; None where time does not matter.

    Example:
        >>> Event.of("GRR", "0" * 32, 1.0).spent
        1000000000000
    """

    mechanism: str
    spec_id: str
    spent: int
    step: int | None = None

    @staticmethod
    def of(mechanism: str, spec_id: str, epsilon: float, step: int | None = None) -> Event:
        """Round an epsilon up to whole units.

        Example:
            >>> Event.of("GRR", "0" * 32, 1e-13).spent
            1
        """
        return Event(mechanism, spec_id, math.ceil(Fraction(epsilon) * UNITS_PER_EPSILON), step)
