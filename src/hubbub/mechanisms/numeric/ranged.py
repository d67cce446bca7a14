"""Mechanisms that read a number of a range: which ranges are allowed, and how a value is placed in one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.grid import to_units
from hubbub.mechanisms.base import Mechanism

LARGEST = 1e150
"""The largest end of a range: its square is still a number."""
NARROWEST = 1e-9
"""The narrowest range, in parts of its larger end: floats still tell its points apart. In itself at least 1/LARGEST."""


@dataclass(frozen=True, kw_only=True)
class Ranged(Mechanism):
    """A mechanism for numbers from low to high."""

    linkable = "never"
    low: float = -1.0
    high: float = 1.0

    @property
    @abstractmethod
    def cells_in(self) -> int:
        """How many cells the range is cut into before a value is rounded to their borders."""

    def _resolve_range(self) -> None:
        for field in ("low", "high"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
                raise InvalidValue(field, value, f"a number from -{LARGEST:g} to {LARGEST:g}")
            self._set(field, float(value))
        if not self.low < self.high:
            raise InvalidValue("high", self.high, f"a number above low = {self.low:g}")
        least = max(1 / LARGEST, NARROWEST * max(abs(self.low), abs(self.high)))
        if self.high - self.low < least:
            raise InvalidValue("high", self.high, f"a number at least {least:.3g} above low = {self.low:g}")

    def encode(self, values: Any) -> NDArray[np.int64]:
        return to_units(values, self.low, self.high, self.cells_in)

    def example_values(self, most: int) -> list[Any]:
        return [float(number) for number in np.linspace(self.low, self.high, min(most, 65))]
