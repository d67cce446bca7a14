"""Ternary mechanisms whose reports hold a sign for every position."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.ternary.mean_only import MeanOnly
from hubbub.mechanisms.ternary.rates import Rates


@dataclass(frozen=True, kw_only=True)
class EverySign(MeanOnly):
    """A report holds a sign for every position: a fair coin where nothing is held, more often the true sign elsewhere.

    The vector is filled up to s entries with stubs. With gap = p_true - p_reverse, the error of a mean is
    (1/gap^2 - frequency)/n.
    """

    @property
    @abstractmethod
    def mean_trues(self) -> Fraction:
        """How many of the s entries' signs are true, on average, exactly."""

    @cached_property
    def rates(self) -> Rates:
        true = self.mean_trues / self.sparsity
        return Rates(true, Fraction(1, 2), 1 - true)

    @cached_property
    def square(self) -> float:
        return float(1 / self.rates.gap("mean") ** 2)

    def _means(self, sketch: Sketch) -> NDArray[np.float64]:
        counts = sketch.counts
        if counts.min() < 0 or (counts.sum(axis=0) != sketch.n).any():
            raise InvalidValue("counts", [int(counts.min()), int(counts.max())], f"{sketch.n} signs at every position")
        return np.asarray((counts[0] - counts[1]) / sketch.n / self.gap("mean"))
