"""Views of fields that hold sets, key-value pairs or on/off values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.protocols.view import View


@dataclass(frozen=True)
class Size(View):
    """How many items a set holds, at most `most`."""

    most: int

    def __call__(self, values: Any) -> NDArray[np.int64]:
        return np.array([min(len(members), self.most) for members in values], dtype=np.int64)


@dataclass(frozen=True)
class Held(View):
    """The keys that a person holds, with their numbers scaled to -1..1; NaN counts as the lower end."""

    keys: int
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InvalidValue("high", self.high, f"a finite number above low = {self.low}")

    def __call__(self, values: Any) -> list[dict[int, float]]:
        return [{key: self._scaled(number) for key, number in pairs if 0 <= key < self.keys} for pairs in values]

    def _scaled(self, number: float) -> float:
        if math.isnan(number):
            return -1.0
        inside = min(max(number, self.low), self.high)
        return min(max((inside - self.low) / (self.high - self.low) * 2 - 1, -1.0), 1.0)


@dataclass(frozen=True)
class Members(View):
    """A row of 0 and 1 for each set: which of the items it holds."""

    items: int

    def __call__(self, values: Any) -> NDArray[np.int8]:
        rows = np.zeros((len(values), self.items), dtype=np.int8)
        for row, members in zip(rows, values, strict=True):
            row[[item for item in members if 0 <= item < self.items]] = 1
        return rows


@dataclass(frozen=True)
class On(View):
    """Whether a code is 1; nothing recorded counts as 0."""

    def __call__(self, values: Any) -> NDArray[np.int8]:
        on: NDArray[np.bool_] = np.atleast_1d(np.asarray(values)) == 1
        return on.astype(np.int8)[:, None]
