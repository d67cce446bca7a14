"""The distribution of a number as a statistic: its histogram, quantiles and mean, from one report of each device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.distribution import Distribution
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.release import MAIN
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.view import Clipped, View

QUANTILES, MEAN = "Quantiles", "Mean"
ARITHMETIC = 3
"""The version of what is released, its intervals included: it rises with every change, and a new era begins."""
MOST_CELLS = 1024
_PEOPLE = 100_000  # the forecast's error is computed for so many, and scaled to the actual number


@dataclass(frozen=True)
class Spread(Statistic):
    """The distribution of a number between low and high, by the square wave mechanism; the device clips other values.

    Parameters
    ----------
    low, high
        The range.
    cells
        How many cells of equal width the histogram has.
    quantiles
        The shares whose quantiles are released.

    Example:
        >>> spread = Spread(0.0, 10.0, cells=5)
        >>> type(spread.mechanism(10**12)).__name__, spread.size
        ('SquareWave', 5)
    """

    low: float
    high: float
    cells: int
    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75, 0.95)

    def __post_init__(self) -> None:
        if not 2 <= self.cells <= MOST_CELLS:
            raise InvalidValue("cells", self.cells, f"from 2 to {MOST_CELLS} cells, for a distribution")
        if not self.quantiles or not all(isinstance(p, float) and 0 < p < 1 for p in self.quantiles):
            raise InvalidValue("quantiles", self.quantiles, "at least one number between 0 and 1")

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many cells there are."""
        return self.cells

    @property
    def view(self) -> View:  # type: ignore[override]
        """Clip to the range."""
        return Clipped(self.low, self.high)

    def mechanism(self, units: int) -> SquareWave:
        return _wave(units, self.low, self.high, 255 if self.cells <= 256 else MOST_CELLS - 1)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        # The mean variance of a cell for uniform values: the noise depends little on the truth.
        return (
            float(np.mean(_of_uniform(self.mechanism(units)).coarser(self.cells, atoms=False).variance)) * _PEOPLE / n
        )

    def spread(self, like: NDArray[np.float64]) -> float:
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))

    def read(self, mechanism: ReportFormat, sketch: Sketch, candidates: Any = None) -> Estimate:
        return self.answers(mechanism, sketch)[MAIN]

    def answers(self, mechanism: ReportFormat, sketch: Sketch, candidates: Any = None) -> Mapping[str, Estimate]:
        estimate = mechanism.estimate(sketch)
        assert isinstance(estimate, Distribution)
        mean = replace(estimate.mean(), labels=("mean",))
        quantiles = replace(estimate.quantile(self.quantiles), labels=tuple(map(_name, self.quantiles)))
        return {MAIN: estimate.coarser(self.cells), QUANTILES: quantiles, MEAN: mean}


def _name(p: float) -> str:
    return "median" if p == 0.5 else f"{100 * p:g}% are below"


@lru_cache(maxsize=256)
def _wave(units: int, low: float, high: float, cells: int) -> SquareWave:
    return SquareWave(epsilon=epsilon_of(units), low=low, high=high, cells=cells)


@lru_cache(maxsize=16)
def _of_uniform(wave: SquareWave) -> Distribution:
    """The distribution estimated from the expected reports of uniform values, with the default resolution."""
    reports = wave.outputs()
    assert reports is not None
    chance = np.exp(wave.log_prob(reports, wave.points)).mean(axis=1)
    counts = np.rint(_PEOPLE * chance).astype(np.int64)
    distribution = wave.distribution(Sketch(wave.spec_id, int(counts.sum()), counts))
    return replace(distribution, resolution=wave.resolution(_PEOPLE))
