"""The piecewise mechanism: a report is a random cell, more often one in a band around the true number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Self

from hubbub.mechanisms.numeric.banded_mean import BandedMean

MOST_CELLS = 1 << 14


class Piecewise(BandedMean):
    """The mean of a bounded number, by a band around it (PM, on a grid).

    Variance: (half the range)^2 (u^2/(e^(eps/2)-1) + (e^(eps/2)+3)/(3 (e^(eps/2)-1)^2)) / n for a value at u on
    the scale -1 to 1: smallest in the middle.

    Parameters
    ----------
    epsilon
        What one report may spend.
    low, high
        The range of the number.
    cells, band, other
        Cells of the range, cells of the band, and of 2^64 the share of each cell outside it; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> pm = Piecewise(epsilon=2.0, low=0.0, high=10.0)
        >>> reports = pm.randomize([4.0] * 20000, Random(seed=1))
        >>> float(pm.estimate(pm.accumulate(reports)).value[0].round(1))
        4.0

    References
    ----------
    LDP-IDS, section 6.1.1; Wang et al., "Collecting and analyzing multidimensional data with LDP", 2019.
    """

    def _shape(self) -> tuple[int, int]:
        half = math.exp(min(self.epsilon, 16.0) / 2)
        band = 1 << int(math.log2(MOST_CELLS / (1 + half)))
        return round(band * half), band

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, cells=6, band=4)
        yield cls(epsilon=1.0, low=0.0, high=10.0)
