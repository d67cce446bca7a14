"""The releases of a stream beside the truth, and their errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.confidence import normal_reach

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """The released values and variances of a stream, and the truth: a row for each step."""

    values: Floats
    variances: Floats
    truth: Floats

    @property
    def tve(self) -> float:
        """The total variation error: the sum of absolute errors over steps and entries (sao2-exsub, section 7.1)."""
        return float(np.abs(self.values - self.truth).sum())

    @property
    def mae(self) -> float:
        """The maximum absolute error."""
        return float(np.abs(self.values - self.truth).max())

    @property
    def mse(self) -> float:
        """The mean squared error over steps and entries."""
        return float(np.mean((self.values - self.truth) ** 2))

    def mre(self, floor: float = 1e-3) -> float:
        """The mean relative error, with truths below `floor` counted as `floor`."""
        return float(np.mean(np.abs(self.values - self.truth) / np.maximum(np.abs(self.truth), floor)))

    def coverage(self, level: float = 0.95) -> float:
        """The share of the intervals that hold the truth."""
        reach = normal_reach(level) * np.sqrt(self.variances)
        return float(np.mean(np.abs(self.values - self.truth) <= reach))
