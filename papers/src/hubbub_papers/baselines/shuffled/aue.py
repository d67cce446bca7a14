"""AUE, appended unary encoding: everyone adds 1 to the total of their value, and 1 to every total at random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator

_SCALE = 1 << 32


@dataclass(frozen=True)
class AUE:
    """Shares of a domain from shuffled reports, which are not private before the shuffle.

    A report is a number for each value: 1 for one's own and 0 for the others, to each of which 1 is added with
    probability p = 1 - 200 ln(4/delta) / (epsilon^2 n). It has no local epsilon: a 2 gives its sender away. The totals
    are (epsilon, delta)-private. Variance of a share: p (1 - p) / n.

    Parameters
    ----------
    epsilon, delta
        The guarantee of the shuffled batch.
    n
        The number of people: at least 200 ln(4/delta) / epsilon^2.
    domain
        The number of values.

    References
    ----------
    Dissertation, section 9.3.4; Balcer and Cheu, "Separating local and shuffled differential privacy via histograms".
    """

    epsilon: float
    delta: float
    n: int
    domain: int

    def __post_init__(self) -> None:
        check_integer("domain", self.domain, 2)
        for name in ("epsilon", "delta"):
            if not getattr(self, name) > 0:
                raise InvalidValue(name, getattr(self, name), "above 0")
        check_integer("n", self.n, math.ceil(fewest_people(self.epsilon, self.delta)))

    @property
    def chance(self) -> float:
        """The probability that 1 is added to a number."""
        return 1 - fewest_people(self.epsilon, self.delta) / self.n

    @property
    def variance(self) -> float:
        """The variance of a share, the same for all."""
        return self.chance * (1 - self.chance) / self.n

    def randomize(self, values: NDArray[np.int64], rng: Random) -> NDArray[np.uint8]:
        """The reports of people: a row of numbers from 0 to 2 each."""
        added = rng.uint32(len(values) * self.domain) < np.uint32(min(round(self.chance * _SCALE), _SCALE - 1))
        reports = added.reshape(len(values), self.domain).astype(np.uint8)
        reports[np.arange(len(values)), values] += 1
        return reports

    def drawn_totals(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.int64]:
        """The totals of a population with these counts of values, drawn from their exact distribution."""
        return np.asarray(counts + generator(rng).binomial(self.n, self.chance, len(counts)))

    def estimate(self, totals: NDArray[np.integer]) -> NDArray[np.float64]:
        """The shares."""
        return np.asarray(totals / self.n - self.chance)


def fewest_people(epsilon: float, delta: float) -> float:
    """200 ln(4/delta) / epsilon^2."""
    return 200 * math.log(4 / delta) / epsilon**2
