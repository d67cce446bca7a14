"""The rates of a ternary mechanism, and all that follows from them: variances, and what one report stands for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, NamedTuple

Quantity = Literal["mean", "frequency", "conditional"]


class Rates(NamedTuple):
    """The chance that a report supports a sign at a position, given what its sender holds there.

    Parameters
    ----------
    true, false, reverse
        The chance where the sender holds that sign, where the sender holds nothing, and where the sender holds the
        opposite sign.
    both_held, both_missing
        The chance that the report supports both signs at once, where the sender holds one of them and where the sender
        holds nothing.
    """

    true: Fraction
    false: Fraction
    reverse: Fraction
    both_held: Fraction = Fraction(0)
    both_missing: Fraction = Fraction(0)

    def gap(self, of: Quantity) -> Fraction:
        """The denominator of the estimator: how far supports differ between the values that it has to tell apart."""
        return self.true - self.reverse if of == "mean" else self.true + self.reverse - 2 * self.false

    def supports(self) -> tuple[tuple[int, int], ...]:
        """The pairs that a report's supports of +1 and of -1 at one position can be."""
        neither = 2 * self.false - self.both_missing < 1
        both = self.both_missing > 0
        return (*([(0, 0)] if neither else []), (1, 0), (0, 1), *([(1, 1)] if both else []))

    def stands_for(self, plus: int, minus: int, of: Quantity) -> Fraction:
        """The number that a report with these supports contributes; the estimate is the mean of these numbers."""
        return (plus - minus if of == "mean" else plus + minus - 2 * self.false) / self.gap(of)

    def variances(self, of: Quantity) -> tuple[float, float]:
        """The variance of one report's number at a position where something is held, and where nothing is held.

        Infinite where a position is supported equally often whether something is held there or not.
        """
        gap, supported = self.gap(of), self.true + self.reverse
        if not gap:
            return math.inf, math.inf
        if of == "mean":
            held, missing = supported - 2 * self.both_held - gap**2, 2 * self.false - 2 * self.both_missing
        else:
            held = supported + 2 * self.both_held - supported**2
            missing = 2 * self.false + 2 * self.both_missing - 4 * self.false**2
        return float(held / gap**2), float(missing / gap**2)
