"""Stochastic rounding: a report is one noisy bit, the end of the range that the number was rounded to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.numeric.banded_mean import BandedMean


class StochasticRounding(BandedMean):
    """The mean of a bounded number, in one bit (SR).

    The number is rounded without bias to one end of its range, and the end is flipped with probability 1/(e^eps + 1).
    Variance: (half the range)^2 (((e^eps+1)/(e^eps-1))^2 - u^2) / n for a value at u on the scale -1 to 1.

    Parameters
    ----------
    epsilon
        What one report may spend.
    low, high
        The range of the number.
    cells, band, other
        1 and 1, and of 2^64 how often the end is flipped; 0 chooses it.

    Example:
        >>> from hubbub import Random
        >>> sr = StochasticRounding(epsilon=1.0, low=0.0, high=10.0)
        >>> reports = sr.randomize([4.0] * 20000, Random(seed=1))
        >>> float(sr.estimate(sr.accumulate(reports)).value[0].round(1))
        4.1

    References
    ----------
    LDP-IDS, section 6.1.1; Duchi, Jordan and Wainwright, 2018.
    """

    def _shape(self) -> tuple[int, int]:
        return 1, 1

    def _resolve(self) -> None:
        if (self.cells or 1, self.band or 1) != (1, 1):
            raise InvalidValue("cells", (self.cells, self.band), "1 cell and a band of 1")
        super()._resolve()

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0)
        yield cls(epsilon=0.5, low=0.0, high=10.0)
