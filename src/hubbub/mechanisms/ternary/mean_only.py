"""Ternary mechanisms whose reports tell means but not frequencies: a position without a value looks like noise."""

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
    """Every report stands for a number at every position, with the same mean square everywhere.

    The variance of a mean is then (square - frequency)/n. Reports do not tell the frequency; the stated variance uses
    the smallest that it can be, the size of the mean. So it is a little too large where signs cancel.
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
        variance = (self.square - np.minimum(np.abs(value), 1.0)) / sketch.n
        return Estimate(value, variance, sketch.n, bias=self.bias, kind="quantity", bounds=(-1.0, 1.0))
