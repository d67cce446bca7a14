"""The domain of the numbers of a range."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Domain, as_array
from hubbub.core.errors import InvalidValue, check_integer

MOST_CELLS = 1 << 20
_MOST_NUMBER = 1e300  # the width of a range must be a float too


def check_range(low: object, high: object) -> tuple[float, float]:
    """The two ends of a range as floats; refused unless they are finite numbers and low is below high."""
    ends = []
    for field, number in (("low", low), ("high", high)):
        if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= _MOST_NUMBER:
            raise InvalidValue(field, number, f"a number of at most {_MOST_NUMBER:g}")
        ends.append(float(number))  # JSON does not tell 1e17 from an integer, and the spec's id would
    if not ends[0] < ends[1]:
        raise InvalidValue("high", ends[1], f"a number above low = {ends[0]}")
    return ends[0], ends[1]


@dataclass(frozen=True)
class Numeric(Domain):
    """Numbers from low to high, divided into cells of equal width. The code of a number is its cell.

    Example:
        >>> Numeric(0.0, 10.0, cells=5).encode([0.0, 1.9, 2.0, 10.0]).tolist()
        [0, 0, 1, 4]
    """

    kind: ClassVar[str] = "numeric"
    low: float
    high: float
    cells: int

    def __post_init__(self) -> None:
        low, high = check_range(self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        check_integer("cells", self.cells, 2, MOST_CELLS)

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many cells there are."""
        return self.cells

    @property
    def edges(self) -> NDArray[np.float64]:
        """The borders of the cells.

        Example:
            >>> Numeric(0, 1, cells=4).edges.tolist()
            [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        return np.linspace(self.low, self.high, self.cells + 1)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(f"{low:g} to {high:g}" for low, high in pairwise(self.edges))

    def symbol_labels(self) -> tuple[str, ...]:
        return self.labels  # a device that recorded no number reports the lower end

    def describe(self) -> str:
        return f"{self.low:g} to {self.high:g}, in {self.cells:,} cells"

    def code(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise InvalidValue("value", value, "a finite number")
        return float(value)

    def missing(self) -> float:
        return self.low

    def absent(self) -> None:
        return None

    def _value(self, code: int) -> float:
        width = (self.high - self.low) / self.cells
        return self.low + (code + 0.5) * width

    def encode(self, values: Any) -> NDArray[np.int64]:
        numbers = as_array(values)
        if numbers.size == 0:
            return np.empty(0, dtype=np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
            raise InvalidValue("values", values, "a one-dimensional batch of numbers")
        outside = ~((numbers >= self.low) & (numbers <= self.high))
        if outside.any():
            raise InvalidValue("values", numbers[outside][0].item(), f"numbers from {self.low} to {self.high}")
        cells = np.searchsorted(self.edges, numbers, side="right") - 1
        return np.minimum(cells, self.cells - 1).astype(np.int64)
