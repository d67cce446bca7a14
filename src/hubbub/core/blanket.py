"""The privacy blanket of a mechanism: the part of every report that does not depend on the value."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Blanket(NamedTuple):
    """What all values have in common, in three numbers.

    There is a measure over reports of this mass, the same for all values, such that the probability of every report
    under every value is from 1 to `ratio` times its measure. With probability `mass` a report is then a draw from the
    measure, which says nothing, and that is what hides one report among many that were shuffled.

    Parameters
    ----------
    mass
        The total of the measure.
    ratio
        The largest probability of a report under a value, over its measure.
    both
        The least part of draws from the measure that two values make `ratio` times as likely, whichever two; None
        where it is not known, and the least that is possible is taken.

    Example:
        >>> Blanket(mass=Fraction(1, 2), ratio=Fraction(3)).preferred
        Fraction(1, 2)
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
        """The least part that both of two values prefer.

        Example:
            >>> Blanket(mass=Fraction(1, 2), ratio=Fraction(2)).shared
            Fraction(1, 1)
        """
        return max(Fraction(0), 2 * self.preferred - 1) if self.both is None else self.both
