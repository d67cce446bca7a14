"""The shares of the cells of one marginal, of which a part of the devices is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, get_args

from hubbub.core.domain import Ordinal
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of
from hubbub.core.reports import Floats, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.marginals.calm import OracleChoice, marginal_oracle
from hubbub.protocols.statistic import Statistic
from hubbub.protocols.views.basic import View
from hubbub.protocols.views.records import Axis, Joint
from hubbub.questions.statistic import named_mechanism


@dataclass(frozen=True)
class MarginalShares(Statistic):
    """The shares of the cells of one marginal, of which a part of the devices is asked.

    `oracle`: "adaptive", "best", or a frequency oracle by name. `parts`: into how many parts the devices are divided:
    sampling one of them adds to the error.
    """

    axes: tuple[Axis, ...]
    labels: tuple[str, ...]
    oracle: str
    parts: int

    @property
    def name(self) -> str:
        """What a release calls it."""
        return ", ".join(axis.field for axis in self.axes)

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many cells there are."""
        return len(self.labels)

    @property
    def view(self) -> View:  # type: ignore[override]
        """The cell of a record."""
        return Joint(self.axes)

    def mechanism(self, units: int) -> FrequencyOracle:
        return _oracle(self.oracle, units, self.size)

    def error(self, units: int, n: float, like: Floats) -> float:
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope / self.size + (1 - 1 / self.parts) * self.spread(like)) / n

    def answers(
        self, mechanism: ReportFormat, sketch: Sketch, candidates: Any = None, groups: int = 1
    ) -> Mapping[str, Estimate]:
        shares = self.read(mechanism, sketch).of_population(sketch.people * self.parts * groups)
        return {self.name: replace(shares, labels=self.labels)}


@lru_cache(maxsize=4096)
def _oracle(name: str, units: int, cells: int) -> FrequencyOracle:
    if name in get_args(OracleChoice):
        return marginal_oracle(epsilon_of(units), cells, "best" if name == "best" else "adaptive")
    oracle: FrequencyOracle = named_mechanism(name, FrequencyOracle)(epsilon=epsilon_of(units), domain=Ordinal(cells))
    return oracle
