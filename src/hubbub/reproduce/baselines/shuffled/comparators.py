"""The methods of Figures 9.3 and 9.4 by name: each makes, for a setting, something that estimates shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.core.random import Random
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.hadamard import Hadamard
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.reproduce.baselines.heavy_hitters.drawing import generator
from hubbub.reproduce.baselines.shuffled.aue import AUE, fewest_people
from hubbub.reproduce.baselines.shuffled.formulas import printed_rap, printed_rap_r, printed_sh, printed_solh


class HistogramSetting(NamedTuple):
    """A central epsilon and delta for n people and so many values.

    Example:
        >>> HistogramSetting(0.5, 1e-9, n=1000, domain=10).n
        1000
    """

    epsilon: float
    delta: float
    n: int
    domain: int


class HistogramMethod(Protocol):
    """What estimates the shares of all values of people of whom so many hold each."""

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """Estimated shares; what the reports add up to is drawn from its exact distribution."""
        ...

    def error(self, counts: NDArray[np.int64]) -> float:
        """The expected mean squared error, by formula."""
        ...


@dataclass(frozen=True)
class ByOracle:
    """Shares by a frequency oracle.

    Example:
        >>> method = ByOracle(GRR(epsilon=4.0, domain=3))
        >>> method.shares(np.array([7000, 2000, 1000]), Random(seed=1)).round(1).tolist()
        [0.7, 0.2, 0.1]
    """

    oracle: FrequencyOracle

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """Of GRR by those who tell the truth and those who draw any value, of the others value by value."""
        draw, n = generator(rng), int(counts.sum())
        p, q = (float(rate) for rate in self.oracle.rates)
        if isinstance(self.oracle, GRR):
            true = draw.binomial(counts, p - q)
            support = true + draw.multinomial(n - true.sum(), np.full(len(counts), 1 / len(counts)))
        else:
            support = draw.binomial(counts, p) + draw.binomial(n - counts, q)
        return np.asarray((support / n - q) / (p - q))

    def error(self, counts: NDArray[np.int64]) -> float:
        """The mean of Eq 3.2 over all values."""
        n = int(counts.sum())
        return float(self.oracle.noise(n).variance(counts / n).mean())


@dataclass(frozen=True)
class ByAppending:
    """Shares by AUE.

    Example:
        >>> method = ByAppending(AUE(epsilon=1.0, delta=1e-6, n=10_000, domain=2))
        >>> method.shares(np.array([7000, 3000]), Random(seed=1)).round(1).tolist()
        [0.7, 0.3]
    """

    aue: AUE

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """From totals that are drawn."""
        return self.aue.estimate(self.aue.drawn_totals(counts, rng))

    def error(self, counts: NDArray[np.int64]) -> float:
        """p (1 - p) / n."""
        return self.aue.variance


@dataclass(frozen=True)
class ByLaplace:
    """Shares by a curator who knows everything: Laplace noise of 2/epsilon on every count.

    Example:
        >>> ByLaplace(1.0).shares(np.array([7000, 3000]), Random(seed=1)).round(1).tolist()
        [0.7, 0.3]
    """

    epsilon: float

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """From noisy counts."""
        return np.asarray((counts + generator(rng).laplace(0.0, 2 / self.epsilon, len(counts))) / counts.sum())

    def error(self, counts: NDArray[np.int64]) -> float:
        """8 / (n epsilon)^2."""
        return float(8 / (counts.sum() * self.epsilon) ** 2)


class ByGuess:
    """Base: every value has the share 1/d.

    Example:
        >>> ByGuess().shares(np.array([7, 1]), Random(seed=1)).tolist()
        [0.5, 0.5]
    """

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """The guess."""
        return np.full(len(counts), 1 / len(counts))

    def error(self, counts: NDArray[np.int64]) -> float:
        """How far it is off."""
        return float(((counts / counts.sum() - 1 / len(counts)) ** 2).mean())


def _appended(setting: HistogramSetting) -> HistogramMethod | None:
    if setting.n < fewest_people(setting.epsilon, setting.delta):
        return None
    return ByAppending(AUE(setting.epsilon, setting.delta, setting.n, setting.domain))


COMPARATORS: dict[str, Callable[[HistogramSetting], HistogramMethod | None]] = {
    "SH": lambda given: ByOracle(printed_sh(given.epsilon, given.n, given.delta, given.domain)),
    "AUE": _appended,
    "RAP": lambda given: ByOracle(printed_rap(given.epsilon, given.n, given.delta, given.domain)),
    "RAP_R": lambda given: ByOracle(printed_rap_r(given.epsilon, given.n, given.delta, given.domain)),
    "SOLH": lambda given: ByOracle(printed_solh(given.epsilon, given.n, given.delta, given.domain)),
    "OLH": lambda given: ByOracle(OLH(epsilon=given.epsilon, domain=given.domain)),
    "Had": lambda given: ByOracle(Hadamard(epsilon=given.epsilon, domain=given.domain)),
    "Lap": lambda given: ByLaplace(given.epsilon),
    "Base": lambda given: ByGuess(),
}
"""Every method of chapter 9, by its formulas; None where it does not apply."""
