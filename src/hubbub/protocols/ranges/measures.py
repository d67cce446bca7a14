"""Public measures of the people of a table, as integers by which supports can be weighted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue

_MOST_EXPONENT = 500  # of a scale of 2: its square is a float


@dataclass(frozen=True, eq=False)
class Measure:
    """A number for each person that the server knows, as an integer: the number times `scale`."""

    weights: NDArray[np.int64]
    scale: float

    @staticmethod
    def of(name: str, values: ArrayLike) -> Measure:
        """Integers stay as they are; other numbers are rounded, as finely as the sum of their squares allows."""
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise InvalidValue(name, array, "finite numbers, one a person")
        numbers = array.astype(np.float64)
        largest = float(np.abs(numbers).max(initial=0.0))
        most = math.isqrt((1 << 62) // max(numbers.size, 1))  # squares are added up in 64 bits
        if largest <= most and (numbers == np.rint(numbers)).all():
            return Measure(np.rint(numbers).astype(np.int64), 1.0)
        exponent = math.floor(math.log2(most) - math.log2(largest))
        if exponent < -_MOST_EXPONENT:
            raise InvalidValue(name, largest, "numbers whose squares are finite")
        scale = 2.0 ** min(exponent, _MOST_EXPONENT)
        return Measure(np.rint(numbers * scale).astype(np.int64), scale)

    @cached_property
    def total(self) -> float:
        """The sum over all people."""
        return int(self.weights.sum()) / self.scale

    @cached_property
    def squares(self) -> float:
        """The sum of the squares over all people."""
        return int(self.weights @ self.weights) / self.scale**2


def read_measures(values_by_name: Mapping[str, ArrayLike] | None, n: int) -> dict[str, Measure]:
    """The measures of n people, by name."""
    measures = {name: Measure.of(name, values) for name, values in (values_by_name or {}).items()}
    for name, measure in measures.items():
        if measure.weights.size != n:
            raise InvalidValue(name, measure.weights.size, f"{n} numbers, one a person")
    return measures


def find_measure(measures: Mapping[str, Measure], name: str | None) -> Measure | None:
    """The measure that a query names; None if it counts people."""
    if name is not None and name not in measures:
        raise InvalidValue("measure", name, f"one of {', '.join(measures) or 'no measures'}")
    return None if name is None else measures[name]
