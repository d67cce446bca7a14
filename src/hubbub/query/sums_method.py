"""What a way of reporting must offer for its tables to be asked: sums over people, predicted and measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from hubbub.query.formula import Formula
from hubbub.query.joint import JointEstimate
from hubbub.query.monomials import Floats
from hubbub.query.strata import Strata

Wanted = tuple[int, Formula]
"""The place of a stratum, and what must hold for its people."""


class SumsMethod(ABC):
    """Sums over people for whom formulas hold, by one way of reporting.

    `measure` and `predict` return something for each wanted sum that only the same method's `joint` reads.
    """

    @abstractmethod
    def measure(self, strata: Strata, wanted: Sequence[Wanted]) -> list[Any]:
        """Estimate, from the reports, the sums of `strata.weights` over the people of each stratum and formula."""

    @abstractmethod
    def predict(self, strata: Strata, wanted: Sequence[Wanted]) -> list[Any]:
        """The same without reading a report, as if people were spread evenly over all values."""

    @abstractmethod
    def joint(self, parts: Sequence[tuple[Any, Floats]]) -> JointEstimate:
        """Sums of several strata, each with the matrix that makes them (rows) of the weights (columns)."""

    @abstractmethod
    def describe(self, strata: Strata, wanted: Wanted) -> list[str]:
        """Lines that say how the sums of a stratum and a formula are made."""

    @property
    @abstractmethod
    def repeats(self) -> int:
        """How often the reports were read so far."""
