"""The domain of vectors: an update of a model that many devices train together, for example."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hubbub.core.domain.base import Domain, Values, as_list
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.reports import Floats

MOST_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Vector(Domain):
    """Vectors of `dimension` finite numbers. A device stores the entries that are not 0, in order of position.

    Example:
        >>> Vector(4).code([0.0, 0.5, 0.0, -2.0])
        ((1, 0.5), (3, -2.0))
    """

    kind: ClassVar[str] = "vector"
    dimension: int
    size = None
    in_order = False

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 1, MOST_ENTRIES)

    def describe(self) -> str:
        return f"vectors of {self.dimension:,} numbers"

    def code(self, value: Any) -> tuple[tuple[int, float], ...]:
        (numbers,) = self.encode([value])
        return tuple((int(place), float(numbers[place])) for place in np.flatnonzero(numbers))

    def missing(self) -> tuple[tuple[int, float], ...]:
        return ()

    def encode(self, values: Values) -> Floats:
        rows = np.zeros((len(values), self.dimension))
        for row, value in zip(rows, as_list(values), strict=True):
            try:
                numbers = np.asarray(value)
            except ValueError:  # lists of different lengths
                numbers = np.empty(0, dtype=object)
            if numbers.dtype.kind not in "iuf" or numbers.shape != row.shape or not np.isfinite(numbers).all():
                raise InvalidValue("values", value, f"{self.dimension:,} finite numbers")
            row[:] = numbers
        return rows

    def examples(self, most: int) -> list[list[float]]:
        """Vectors with one entry of 1 or -1 each, and one that is nowhere 0."""
        signs = (1.0, -1.0)
        few = range(min(most - 1, 2 * self.dimension))
        rows = [[signs[k % 2] * (place == k // 2) for place in range(self.dimension)] for k in few]
        return [*rows, [signs[place % 2] / (place + 1) for place in range(self.dimension)]]
