"""The privacy blanket of a mechanism: the part of every report that does not depend on the value."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Blanket(NamedTuple):
    """The privacy blanket of a mechanism, in three numbers.

    There is a measure over reports of total `mass`, the same for all values, such that the probability of every report
    under every value is between 1 and `ratio` times its measure. So with probability `mass` a report is a draw from
    that measure, which does not depend on the value. These draws hide one report among many that are shuffled.

    Parameters
    ----------
    mass
        The total of the measure.
    ratio
        The largest probability of a report under a value, over its measure.
    both
        The smallest part of draws from the measure that both of any two values make `ratio` times as likely; None where
        it is not known, and the smallest possible part is used.
    """

    mass: Fraction
    ratio: Fraction
    both: Fraction | None = None

    @property
    def preferred(self) -> Fraction:
        """The part of draws that a value makes `ratio` times as likely, if it leaves all others as they are."""
        return (1 / self.mass - 1) / (self.ratio - 1)

    @property
    def shared(self) -> Fraction:
        """The least part that both of two values prefer."""
        return max(Fraction(0), 2 * self.preferred - 1) if self.both is None else self.both
