"""Budgets and promises: what a collection may cost one device, and limits in any window of consecutive steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
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

    `event`: the most that one step may cost, all asks about it together. `window`: the most that any w consecutive
    steps may cost: (limit, w). `user`: the most that the device may ever spend.
    """

    event: int | None = None
    window: Window | None = None
    user: int | None = None

    def __post_init__(self) -> None:
        if self.event is None and self.window is None and self.user is None:
            raise InvalidValue("budget", None, "at least one of event, window and user")
        for unit, limit in (("event", self.event), ("user", self.user)):
            if limit is not None:
                check_integer(unit, limit, 1, MOST_UNITS)
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


WHOLE = ""
"""The scope of a promise about all spending of a device; `parts` divides it between accounts."""

MOST_PROMISES = 512
"""How many promises a device keeps: a version that would add more is refused."""

_MOST_TIME = 1 << 62
_FIELDS = {"limit", "steps", "interval", "origin"}


def of_question(name: str) -> str:
    """The scope of a promise about one question."""
    return f"question:{name}"


class Spending(NamedTuple):
    """How much of a promise is spent and how much remains, in units of 1e-12 epsilon."""

    spent: int
    remaining: int
    limit: int


class Since(NamedTuple):
    """Which debits count toward a promise: those at this wall time or later, and those after this trusted time."""

    wall: int
    trusted: int


@dataclass(frozen=True)
class Promise:
    """At most `limit` units in any `steps` consecutive steps of a grid, whatever the clocks do in between.

    Parameters
    ----------
    limit
        In units of 1e-12 epsilon; 0 allows nothing.
    steps
        How many consecutive steps; 0 for life, which has no grid.
    interval, origin
        The grid: step t begins at origin + t interval.
    scope
        `WHOLE`, or `of_question(name)`.
    parts
        Where the scope is `WHOLE`: what each account may spend. An account that is missing may spend nothing.
    """

    limit: int
    steps: int
    interval: int = 0
    origin: int = 0
    scope: str = WHOLE
    parts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_integer("limit", self.limit, 0, MOST_UNITS)
        check_integer("steps", self.steps, 0, MOST_STEPS)
        if self.steps == 0 and (self.interval, self.origin) != (0, 0):
            raise InvalidValue("interval, origin", (self.interval, self.origin), "0 and 0, for life")
        check_integer("interval", self.interval, min(1, self.steps), _MOST_TIME)
        check_integer("origin", self.origin, -_MOST_TIME, _MOST_TIME)
        for account, units in self.parts.items():
            check_integer(f"parts.{account}", units, 0, self.limit)
        if sum(self.parts.values()) > self.limit:
            raise InvalidValue("parts", dict(self.parts), f"at most {self.limit} in all")
        object.__setattr__(self, "parts", MappingProxyType(dict(sorted(self.parts.items()))))

    @property
    def unit(self) -> str:
        """What the promise limits: "event", "window" or "user", or the scope of a question."""
        if self.scope != WHOLE:
            return self.scope
        return {0: "user", 1: "event"}.get(self.steps, "window")

    def limit_for(self, account: str, question: str) -> int | None:
        """What an account may spend on a question; None where the promise is about another question."""
        if self.scope == WHOLE:
            return self.parts.get(account, 0)
        return self.limit if self.scope == of_question(question) else None

    def since(self, latest: int, trusted: int) -> Since | None:
        """Which debits count at a wall time `latest` and a trusted time; None where all count.

        A debit stops counting once the step has advanced by `steps` and trusted time by steps - 1 intervals.
        """
        if self.steps == 0:
            return None
        step = (latest - self.origin) // self.interval
        return Since(self.origin + (step - self.steps + 1) * self.interval, trusted - (self.steps - 1) * self.interval)

    def implies(self, other: Promise) -> bool:
        """Whether keeping this promise implies keeping the other one, apart from its parts.

        Several short windows do not imply a long one where clocks jump, so that only direct implications are used.
        """
        if self.scope != other.scope or self.limit > other.limit:
            return False
        if self.steps == 0 or other.steps == 0:
            return self.steps == 0
        same_grid = (self.interval, self.origin) == (other.interval, other.origin)
        longer = (self.steps - 1) * self.interval >= other.steps * other.interval
        return longer or (same_grid and self.steps >= other.steps)

    def replaces(self, other: Promise) -> bool:
        """Whether this promise implies the other one for every account, so that the other can be forgotten."""
        fits = all(units <= other.parts.get(account, 0) for account, units in self.parts.items())
        return self.implies(other) and fits

    def scaled(self, ticks: int) -> Promise:
        """The same promise on a clock whose ticks are `ticks` times as short."""
        return replace(self, interval=self.interval * ticks, origin=self.origin * ticks)

    def spec(self) -> dict[str, Json]:
        """The promise as JSON. Its place in the document gives the scope; `parts` is there for `WHOLE` only."""
        grid: dict[str, Json] = {name: getattr(self, name) for name in ("limit", "steps", "interval", "origin")}
        return {**grid, "parts": dict(self.parts)} if self.scope == WHOLE else grid

    @staticmethod
    def from_spec(spec: Mapping[str, Any], scope: str = WHOLE) -> Promise:
        """Read a promise back; every field must be there, and no other."""
        expected = _FIELDS | ({"parts"} if scope == WHOLE else set())
        if not isinstance(spec, Mapping) or spec.keys() != expected or not isinstance(spec.get("parts", {}), Mapping):
            raise InvalidValue("promise", spec, f"exactly the fields {', '.join(sorted(expected))}")
        parts = {account: integer(f"parts.{account}", units) for account, units in spec.get("parts", {}).items()}
        return Promise(**{name: integer(name, spec[name]) for name in _FIELDS}, scope=scope, parts=parts)
