"""Questions about values that change rarely: a standing stream over a horizon, for one epsilon in all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.views import Members, On
from hubbub.core.domain import Categorical, Domain, Ordinal, Sets
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.protocols.change_stream import MOST_STEPS, ChangeStream
from hubbub.protocols.sao2.portions import squares
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.view import View, Whole

__all__ = ["MOST_ENTRIES", "Moves"]

MOST_ENTRIES = 1 << 10
"""How many shares a stream of changes may follow: a report has as many bytes."""


@dataclass(frozen=True)
class Moves(Statistic):
    """The share of people at each value, at every step, of values that change at most a few times a horizon.

    A field of two ordinal values is one bit, whose share of 1 is told; a categorical or ordinal field is the value last
    recorded (of those who recorded none, nothing is told); of sets, every item is a bit.

    Parameters
    ----------
    domain
        The field's values.
    steps, changes
        The horizon, and how many changes of bits a device may tell of in it; a move from one category to another
        changes two, the first value one.

    Example:
        >>> asked = Moves(Categorical(["at home", "at work", "away"]), steps=24, changes=5)
        >>> asked.size, type(asked.mechanism(10**12)).__name__
        (3, 'ChangeStream')
    """

    domain: Domain
    steps: int
    changes: int

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Categorical | Ordinal | Sets):
            kind = type(self.domain).__name__.lower()
            raise InvalidValue("domain", kind, "a categorical or ordinal field, or one of sets")
        for name, low, high in (("steps", 2, MOST_STEPS), ("changes", 1, 1 << 10)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidValue(name, value, f"an integer from {low} to {high}")
        if self.size > MOST_ENTRIES:
            raise InvalidValue("domain", self.size, f"at most {MOST_ENTRIES} values or items")

    @property
    def _bit(self) -> bool:
        return isinstance(self.domain, Ordinal) and self.domain.size == 2

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many shares are told."""
        if self._bit:
            return 1
        size = self.domain.items.size if isinstance(self.domain, Sets) else self.domain.size
        assert size is not None
        return size

    @property
    def view(self) -> View:  # type: ignore[override]
        """What `Changes.bits` reads."""
        if self._bit:
            return On()
        return Members(self.size) if isinstance(self.domain, Sets) else Whole()

    def labels(self, field: str) -> tuple[str, ...]:
        """A name for each share.

        Example:
            >>> Moves(Ordinal(2), steps=24, changes=5).labels("awake")
            ('awake',)
        """
        if self._bit:
            return (field,)
        items = self.domain.items if isinstance(self.domain, Sets) else self.domain
        return items.labels or tuple(map(str, range(self.size)))

    def mechanism(self, units: int) -> ChangeStream:
        one = not (self._bit or isinstance(self.domain, Sets))
        return _symbols(units, self.size, self.steps, self.changes, one)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        """The mean over the steps of a horizon, if all devices enrol at its start and use all their changes."""
        plan = self.mechanism(units).plan
        parts = plan.portions * n
        coefficients = squares(plan.reading(np.maximum(parts, 1e-9)), plan.tree, "mean")
        used = coefficients > 0
        return float((coefficients * plan.variances)[used] @ (1 / np.maximum(parts, 1e-9))[used]) / plan.steps

    def spread(self, like: NDArray[np.float64]) -> float:
        return 0.0  # everyone is asked


@lru_cache(maxsize=64)
def _symbols(units: int, dimension: int, steps: int, changes: int, one: bool) -> ChangeStream:
    return ChangeStream(epsilon=epsilon_of(units), dimension=dimension, steps=steps, changes=changes, one=one)
