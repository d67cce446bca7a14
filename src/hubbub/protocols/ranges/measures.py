"""Public measures of the people of a table, as integers that supports can be weighed with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.core.errors import InvalidValue

_MOST_EXPONENT = 500  # of a scale of 2: its square is a float


@dataclass(frozen=True, eq=False)
class Measure:
    """A number for each person, that the server knows: integers, and how many of them make 1.

    Example:
        >>> Measure.of("price", [3.0, 4.0]).scale, Measure.of("price", [0.5, 0.25]).total
        (1.0, 0.75)
        >>> Measure.of("price", [1.0, float("nan")])
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: price: got array([ 1., nan]); allowed: finite numbers, one a person
    """

    weights: NDArray[np.int64]
    scale: float

    @staticmethod
    def of(name: str, values: ArrayLike) -> Measure:
        """Integers stay what they are; other numbers are rounded to steps so fine that their squares still add up.

        Example:
            >>> Measure.of("price", [1e-300, 0.0]).total
            0.0
        """
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
