"""Events: what one report spends, in integer units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.errors import InvalidValue

UNITS_PER_EPSILON = 10**12
"""Budgets are counted in units of 1e-12 epsilon: rounded sums of floats could overspend, or refuse too early."""


@dataclass(frozen=True)
class Event:
    """One use of a mechanism, as the ledger will charge it.

    `spent`: its effective epsilon in units of 1e-12, rounded up. `step`: when, in the collection's own steps; None
    where time does not matter.
    """

    mechanism: str
    spec_id: str
    spent: int
    step: int | None = None

    @staticmethod
    def of(mechanism: str, spec_id: str, epsilon: float | Fraction, step: int | None = None) -> Event:
        """Round an epsilon up to whole units."""
        return Event(mechanism, spec_id, math.ceil(Fraction(epsilon) * UNITS_PER_EPSILON), step)


def units_of(epsilon: float | Fraction) -> int:
    """An allowance in whole units, rounded down."""
    if not 0 < epsilon < math.inf:
        raise InvalidValue("epsilon", epsilon, "a finite number above 0")
    return math.floor(Fraction(epsilon) * UNITS_PER_EPSILON)


def epsilon_of(units: int) -> float:
    """The largest float of at most `units` units: a mechanism built with this epsilon never costs more."""
    epsilon = units / UNITS_PER_EPSILON
    exact = Fraction(units, UNITS_PER_EPSILON)
    return epsilon if Fraction(epsilon) <= exact else math.nextafter(epsilon, 0.0)
