"""Ternary mechanisms whose reports tell means and nothing of frequencies: what is missing looks like noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.ternary.rates import Quantity
from hubbub.mechanisms.ternary.ternary import TernaryMechanism


@dataclass(frozen=True, kw_only=True)
class MeanOnly(TernaryMechanism):
    """Every report gives a number for every position, of the same mean square everywhere.

    The variance of a mean is then (square - frequency)/n. No report tells the frequency, which is at least the size of
    the mean: that is what the stated variance uses, and it is a little too large where signs cancel.
    """

    answers: ClassVar[tuple[Quantity, ...]] = ("mean",)

    @property
    @abstractmethod
    def square(self) -> float:
        """The mean square of one report's number."""

    @abstractmethod
    def _means(self, sketch: Sketch) -> NDArray[np.float64]:
        """The means from a checked sketch."""

    @cached_property
    def _variances(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (self.square - 1, self.square), (math.inf, math.inf)

    def _estimate(self, sketch: Sketch, candidates: Any = None) -> Estimate:
        if candidates is not None:
            raise InvalidValue("candidates", candidates, "nothing: every position is estimated")
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        value = self._means(sketch)
        each = self.square - np.minimum(np.abs(value), 1.0)
        return Estimate(value, each / sketch.n, sketch.n, bias=self.bias, kind="quantity", bounds=(-1.0, 1.0))
