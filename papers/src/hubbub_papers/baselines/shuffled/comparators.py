"""The methods of Figures 9.3 and 9.4 by name: functions from a setting to a method that estimates shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.hadamard import Hadamard
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator
from hubbub_papers.baselines.shuffled.aue import AUE, fewest_people
from hubbub_papers.baselines.shuffled.formulas import printed_rap, printed_rap_r, printed_sh, printed_solh


class HistogramSetting(NamedTuple):
    """A central epsilon and delta, the number of people and the number of values."""

    epsilon: float
    delta: float
    n: int
    domain: int


class HistogramMethod(Protocol):
    """Estimates the shares of all values, for a population given by the count of each value."""

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """Estimated shares; the sums of reports are drawn from their exact distribution."""
        ...

    def error(self, counts: NDArray[np.int64]) -> float:
        """The expected mean squared error, by formula."""
        ...


@dataclass(frozen=True)
class ByOracle:
    """Shares by a frequency oracle."""

    oracle: FrequencyOracle

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """GRR's supports come from true reports and uniform ones; those of other oracles are independent by value."""
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
        """Estimated from drawn totals."""
        return self.aue.estimate(self.aue.drawn_totals(counts, rng))

    def error(self, counts: NDArray[np.int64]) -> float:
        """p (1 - p) / n."""
        return self.aue.variance


@dataclass(frozen=True)
class ByLaplace:
    """Shares by a trusted curator: Laplace noise of scale 2/epsilon on every count.

    Example:
        >>> ByLaplace(1.0).shares(np.array([7000, 3000]), Random(seed=1)).round(1).tolist()
        [0.7, 0.3]
    """

    epsilon: float

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """The noisy counts, as shares."""
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
        """The mean squared error of the guess."""
        return float(((counts / counts.sum() - 1 / len(counts)) ** 2).mean())


def _appended(setting: HistogramSetting) -> HistogramMethod | None:
    if setting.n < fewest_people(setting.epsilon, setting.delta):
        return None
    return ByAppending(AUE(setting.epsilon, setting.delta, setting.n, setting.domain))


COMPARATORS: dict[str, Callable[[HistogramSetting], HistogramMethod | None]] = {
    "SH": lambda setting: ByOracle(printed_sh(setting.epsilon, setting.n, setting.delta, setting.domain)),
    "AUE": _appended,
    "RAP": lambda setting: ByOracle(printed_rap(setting.epsilon, setting.n, setting.delta, setting.domain)),
    "RAP_R": lambda setting: ByOracle(printed_rap_r(setting.epsilon, setting.n, setting.delta, setting.domain)),
    "SOLH": lambda setting: ByOracle(printed_solh(setting.epsilon, setting.n, setting.delta, setting.domain)),
    "OLH": lambda setting: ByOracle(OLH(epsilon=setting.epsilon, domain=setting.domain)),
    "Had": lambda setting: ByOracle(Hadamard(epsilon=setting.epsilon, domain=setting.domain)),
    "Lap": lambda setting: ByLaplace(setting.epsilon),
    "Base": lambda setting: ByGuess(),
}
"""Every method of chapter 9, by the chapter's formulas; None if it does not apply."""
