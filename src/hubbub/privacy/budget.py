"""Budgets: what a collection may cost one device, in whole units of 1e-12 epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from hubbub.core.errors import HubbubError, InvalidValue, check_integer
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.spec import Json, check_fields, integer

MOST_UNITS = 10**18
"""A million epsilon: past any use, and small enough that no sum of debits overflows 63 bits."""

MOST_STEPS = 10**9


class Window(NamedTuple):
    """At most `limit` units in any `steps` consecutive steps."""

    limit: int
    steps: int


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of one collection on one device. Every debit is charged to every unit that is declared.

    Parameters
    ----------
    event
        The most that one step may cost, all asks about it together.
    window
        The most that any w consecutive steps may cost: (limit, w).
    user
        The most that the device may ever spend.
    """

    event: int | None = None
    window: Window | None = None
    user: int | None = None

    def __post_init__(self) -> None:
        if self.event is None and self.window is None and self.user is None:
            raise InvalidValue("budget", None, "at least one of event, window and user")
        for field, limit in (("event", self.event), ("user", self.user)):
            if limit is not None:
                check_integer(field, limit, 1, MOST_UNITS)
        if self.window is not None:
            limit, steps = _pair(self.window)
            check_integer("window limit", limit, 1, MOST_UNITS)
            check_integer("window steps", steps, 1, MOST_STEPS)
            object.__setattr__(self, "window", Window(limit, steps))

    @staticmethod
    def of(
        *,
        event: float | Fraction | None = None,
        window: tuple[float | Fraction, int] | None = None,
        user: float | Fraction | None = None,
    ) -> Budget:
        """Limits in epsilon, rounded down to whole units. A float means the decimal that it is written as."""
        limit, steps = (None, 0) if window is None else _pair(window)
        return Budget(
            event=None if event is None else _units("event", event),
            window=None if limit is None else Window(_units("window limit", limit), steps),
            user=None if user is None else _units("user", user),
        )

    def spec(self) -> dict[str, Json]:
        """The limits, as JSON."""
        window = self.window
        return {
            "event": self.event,
            "window": None if window is None else {"limit": window.limit, "steps": window.steps},
            "user": self.user,
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Budget:
        """The budget that a spec describes; every field must be there, and no other."""
        check_fields("budget", spec, {"event", "window", "user"})
        event, window, user = spec["event"], spec["window"], spec["user"]
        if window is not None:
            check_fields("window", window, {"limit", "steps"})
            window = Window(integer("window limit", window["limit"]), integer("window steps", window["steps"]))
        return cls(
            event=None if event is None else integer("event", event),
            window=window,
            user=None if user is None else integer("user", user),
        )


class BudgetExceeded(HubbubError):
    """A promise does not allow a debit; nothing was spent."""

    def __init__(self, unit: str, spent: int, requested: int, limit: int) -> None:
        self.unit = unit
        self.spent = spent
        self.requested = requested
        self.limit = limit
        super().__init__(f"{unit}: {_text(spent)} epsilon spent, {_text(requested)} asked, limit {_text(limit)}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.unit, self.spent, self.requested, self.limit)


def _units(field: str, epsilon: object) -> int:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | Fraction) or not math.isfinite(epsilon):
        raise InvalidValue(field, epsilon, "a finite number of epsilon")
    # The float 0.3 is just below 3/10: rounded down exactly, it would not pay for an ask of epsilon 0.3.
    exact = Fraction(repr(float(epsilon))) if isinstance(epsilon, float) else Fraction(epsilon)
    units = math.floor(exact * UNITS_PER_EPSILON)
    if not 1 <= units <= MOST_UNITS:
        raise InvalidValue(field, epsilon, "from 1e-12 to 1000000 epsilon")
    return units


def _pair(window: object) -> tuple[Any, Any]:
    if not isinstance(window, tuple) or len(window) != 2:
        raise InvalidValue("window", window, "(limit, steps)")
    return window[0], window[1]


def _text(units: int) -> str:
    epsilons, fraction = divmod(units, UNITS_PER_EPSILON)
    return f"{epsilons}.{fraction:012d}".rstrip("0").rstrip(".")
