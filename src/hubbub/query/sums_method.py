"""The interface that a reporting method implements so that its tables can be queried: sums over people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from hubbub.query.formula import Formula
from hubbub.query.joint import JointEstimate
from hubbub.query.monomials import Floats
from hubbub.query.strata import Strata

GroupPart = tuple[int, Formula]
"""The index of a stratum, and the formula over private columns that selects its people."""


class SumsMethod(ABC):
    """Estimates sums of public weights over the people for whom a formula holds, for one reporting method.

    `measure` and `predict` return one object for each part. Its type belongs to the method; only `joint` reads it.
    """

    @abstractmethod
    def measure(self, strata: Strata, parts: Sequence[GroupPart]) -> list[Any]:
        """Estimate, from the reports, the sums of `strata.weights` over the people of each stratum and formula."""

    @abstractmethod
    def predict(self, strata: Strata, parts: Sequence[GroupPart]) -> list[Any]:
        """Predict the same without reading a report, as if people were spread evenly over all values."""

    @abstractmethod
    def joint(self, parts: Sequence[tuple[Any, Floats]]) -> JointEstimate:
        """Add up measured parts. Each comes with the matrix that maps its weights (columns) to the sums (rows)."""

    def step(self, part: Any) -> float:
        """What one report of a person of weight 1 typically adds to the sums of a part; 0 where no report is used."""
        return 0.0

    @abstractmethod
    def describe(self, strata: Strata, part: GroupPart) -> list[str]:
        """Lines of EXPLAIN: how the sums of one part are estimated."""

    @property
    @abstractmethod
    def passes(self) -> int:
        """How many times the reports were read so far."""
