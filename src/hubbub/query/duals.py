"""Functions of several estimates with their gradients, for the delta method."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.query.monomials import Floats


@dataclass(frozen=True, eq=False)
class Dual:
    """A number and its gradient."""

    value: float
    gradient: Floats

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.gradient + other.gradient)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.value - other.value, self.gradient - other.gradient)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, self.value * other.gradient + other.value * self.gradient)

    def __truediv__(self, other: Dual) -> Dual:
        if other.value == 0:
            return Dual(math.nan, np.full_like(self.gradient, np.nan))
        quotient = self.value / other.value
        return Dual(quotient, (self.gradient - quotient * other.gradient) / other.value)

    def root(self) -> Dual:
        """The square root; of what is not above 0, nothing is known."""
        if not self.value > 0:
            return Dual(math.nan, np.full_like(self.gradient, np.nan))
        root = math.sqrt(self.value)
        return Dual(root, self.gradient / (2 * root))

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.gradient)
