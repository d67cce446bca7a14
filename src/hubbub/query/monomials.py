"""The weights of people in a sum: 1, or a power of a public expression."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, order=True)
class Monomial:
    """A power of a public expression, and 0 where the expression is NULL. The power 0 is 1 where it is not NULL.

    Parameters
    ----------
    base
        The expression as SQL; the empty text is 1 for everybody.
    power
        From 0 on.
    """

    base: str
    power: int = 1

    def __mul__(self, other: Monomial) -> Monomial:
        if not self.base or not other.base:
            return other if not self.base else self
        if self.base == other.base:
            return Monomial(self.base, self.power + other.power)
        left, right = sorted((self, other))
        return Monomial(f"{left._factor()} * {right._factor()}")

    def _factor(self) -> str:
        if self.power == 0:
            return f"(CASE WHEN ({self.base}) IS NULL THEN NULL ELSE 1 END)"
        return " * ".join([f"CAST(({self.base}) AS DOUBLE)"] * self.power)

    def sql(self) -> str:
        """The monomial of a row as a DOUBLE, 0 for NULL."""
        if not self.base:
            return "1.0"
        if self.power == 0:
            return f"CASE WHEN ({self.base}) IS NULL THEN 0.0 ELSE 1.0 END"
        return f"COALESCE({' * '.join([f'CAST(({self.base}) AS DOUBLE)'] * self.power)}, 0.0)"

    def of(self, values: Floats) -> Floats:
        """The monomial of the values of its base, NaN being NULL."""
        present = ~np.isnan(values)
        return np.where(present, np.where(present, values, 1.0) ** self.power, 0.0)


EVERYBODY = Monomial("", 0)


def with_products(weights: Iterable[Monomial]) -> list[Monomial]:
    """The weights and all products of two weights: the sums, and what their covariances are computed from."""
    factors = list(weights)
    return sorted({*factors, *(a * b for a in factors for b in factors)})


def monomials_to_count(monomials: Iterable[Monomial]) -> list[Monomial]:
    """The monomials that must be counted: the count of a monomial also gives the count of its square."""
    every = sorted(set(monomials))
    chosen: list[Monomial] = []
    for monomial in every:
        root = Monomial(monomial.base, monomial.power // 2)
        if monomial.power < 2 or monomial.power % 2 or root not in every or root.power == 0:
            chosen.append(monomial)
    squares = {Monomial(monomial.base, 2 * monomial.power) for monomial in chosen}
    half = {Monomial(monomial.base, monomial.power // 2) for monomial in every if monomial not in {*chosen, *squares}}
    return sorted({*chosen, *half})
