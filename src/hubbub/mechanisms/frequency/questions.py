"""Several questions at once: each person answers one of them with the whole budget, not all of them with a part."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Reports, Sketch
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.random.source import Random


@dataclass(frozen=True)
class Questions:
    """Questions by name, each with its oracle; every person answers one, drawn uniformly, with the whole budget.

    With Q questions the variance of a share is Q times that of asking one question of everyone, plus the sampling
    variance of a Q-th of the population; splitting epsilon in Q costs more, always.

    Parameters
    ----------
    oracles
        The oracle of each question.

    Example:
        >>> from hubbub import GRR
        >>> questions = Questions({"sex": GRR(epsilon=1.0, domain=2), "age": GRR(epsilon=1.0, domain=5)})
        >>> values = {"sex": [0, 1] * 500, "age": [0, 4] * 500}
        >>> reports = questions.randomize(values, Random(seed=1))
        >>> sketches = questions.accumulate(reports)
        >>> len(questions.estimate(sketches)["age"]), sum(sketch.n for sketch in sketches.values())
        (5, 1000)

    References
    ----------
    T. Wang, 2021, section 3.4.2.
    """

    oracles: Mapping[str, FrequencyOracle]

    def __post_init__(self) -> None:
        if len(self.oracles) < 2:
            raise InvalidValue("oracles", list(self.oracles), "at least two questions")
        object.__setattr__(self, "oracles", MappingProxyType(dict(self.oracles)))

    def randomize(self, values: Mapping[str, Any], rng: Random) -> dict[str, Reports]:
        """Each person's answer to one question; `values` holds everyone's value of every question."""
        if values.keys() != self.oracles.keys():
            raise InvalidValue("values", sorted(values), f"a column for each of {sorted(self.oracles)}")
        codes = {name: oracle.encode(values[name]) for name, oracle in self.oracles.items()}
        lengths = {len(column) for column in codes.values()}
        if len(lengths) != 1:
            raise InvalidValue("values", sorted(lengths), "columns of one length")
        question = rng.below(len(self.oracles), lengths.pop())
        return {
            name: oracle.randomize(np.asarray(values[name])[question == index], rng)
            for index, (name, oracle) in enumerate(self.oracles.items())
        }

    def accumulate(self, reports: Mapping[str, Reports]) -> dict[str, Sketch]:
        """One sketch per question."""
        return {name: oracle.accumulate(reports[name]) for name, oracle in self.oracles.items()}

    def estimate(self, sketches: Mapping[str, Sketch]) -> dict[str, Estimate]:
        """The shares in the whole population; their errors include that only a part of it answered each question."""
        everyone = sum(sketch.n for sketch in sketches.values())
        return {name: oracle.estimate(sketches[name]).of_population(everyone) for name, oracle in self.oracles.items()}

    def variance(self, n: int, share: float = 0.0) -> dict[str, float]:
        """The predicted variance of each question's shares, from n people in all."""
        part = n / len(self.oracles)
        sampling = share * (1 - share) / part * (1 - 1 / len(self.oracles))
        return {name: oracle.variance(1, share) / part + sampling for name, oracle in self.oracles.items()}
