"""The methods that chapter 9 compares for histograms of shuffled reports."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue, check_integer
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.hadamard import Hadamard
from hubbub.mechanisms.frequency.local_hashing import OLH, SOLH
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.unary import SUE
from hubbub.planning.shuffled import MOST_BUCKET_BITS
from hubbub.privacy.amplify import local_epsilon
from hubbub.privacy.fakes import mean_variance
from hubbub.random.source import Random
from hubbub_papers.baselines.heavy_hitters.drawing import generator

_MOST_LOCAL = 40.0


def room(epsilon: float, n: int, delta: float) -> float:
    """M = epsilon^2 (n - 1) / (14 ln(2/delta)), which e^local + d - 1 may be (Theorem 9.3.2)."""
    return epsilon**2 * (n - 1) / (14 * math.log(2 / delta))


def printed_sh(epsilon: float, n: int, delta: float, domain: int) -> GRR:
    """SH: GRR with e^local = M - d + 1; if shuffling does not amplify, GRR with the central epsilon itself."""
    return GRR(epsilon=_amplified(room(epsilon, n, delta) - domain + 1, 1.0, epsilon), domain=domain)


def printed_solh(epsilon: float, n: int, delta: float, domain: int) -> OLH:
    """SOLH: (M + 2)/3 buckets, rounded, and e^local = M - d' + 1 (Eq 9.4)."""
    most = room(epsilon, n, delta)
    buckets = max(2, round((most + 2) / 3))
    return OLH(epsilon=_amplified(most - buckets + 1, 1.0, epsilon), domain=domain, buckets=buckets)


def printed_rap(epsilon: float, n: int, delta: float, domain: int) -> SUE:
    """RAP: symmetric unary encoding with e^(local/2) + 1 = epsilon^2 (n - 1) / (56 ln(4/delta)) (Theorem 9.3.1).

    That holds where the server sees sums of bits alone, and not for shuffled reports (`unary_claim`).
    """
    power = epsilon**2 * (n - 1) / (56 * math.log(4 / delta)) - 1
    return SUE(epsilon=_amplified(power, 2.0, epsilon), domain=domain)


def printed_rap_r(epsilon: float, n: int, delta: float, domain: int) -> SUE:
    """RAP_R: RAP under removal of a person instead of replacement, which is RAP with twice the central epsilon.

    A removal changes one of the two binomial counts, whose delta is not halved: e^(local/2) + 1 is M.
    """
    return SUE(epsilon=_amplified(room(epsilon, n, delta) - 1, 2.0, epsilon), domain=domain)


def _amplified(power: float, times: float, central: float) -> float:
    """times ln(power), at least the central epsilon, which is reached without a shuffle."""
    return min(max(central, times * math.log(power) if power > 1 else 0.0), _MOST_LOCAL)


_SCALE = 1 << 32


@dataclass(frozen=True)
class AUE:
    """Shares of a domain from shuffled reports, which are not private before the shuffle.

    A report is a number for each value: 1 for one's own and 0 for the others, to each of which 1 is added with
    probability p = 1 - 200 ln(4/delta) / (epsilon^2 n). It has no local epsilon: a 2 gives its sender away. The totals
    are (epsilon, delta)-private. Variance of a share: p (1 - p) / n.

    It needs at least 200 ln(4/delta) / epsilon^2 people.

    References
    ----------
    Balcer and Cheu, 2020; T. Wang, 2021, section 9.3.4.
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
    """Shares by AUE."""

    aue: AUE

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """Estimated from drawn totals."""
        return self.aue.estimate(self.aue.drawn_totals(counts, rng))

    def error(self, counts: NDArray[np.int64]) -> float:
        """p (1 - p) / n."""
        return self.aue.variance


@dataclass(frozen=True)
class ByLaplace:
    """Shares by a trusted curator: Laplace noise of scale 2/epsilon on every count."""

    epsilon: float

    def shares(self, counts: NDArray[np.int64], rng: Random) -> NDArray[np.float64]:
        """The noisy counts, as shares."""
        return np.asarray((counts + generator(rng).laplace(0.0, 2 / self.epsilon, len(counts))) / counts.sum())

    def error(self, counts: NDArray[np.int64]) -> float:
        """8 / (n epsilon)^2."""
        return float(8 / (counts.sum() * self.epsilon) ** 2)


class ByGuess:
    """Base: every value has the share 1/d."""

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


def numerical_sh(setting: HistogramSetting) -> HistogramMethod:
    """GRR with the largest local epsilon that a valid bound allows."""
    return ByOracle(_largest(lambda local: GRR(epsilon=local, domain=setting.domain), setting))


def numerical_rap(setting: HistogramSetting) -> HistogramMethod:
    """Symmetric unary encoding with the largest local epsilon that a valid bound allows."""
    return ByOracle(_largest(lambda local: SUE(epsilon=local, domain=setting.domain), setting))


def numerical_solh(setting: HistogramSetting) -> HistogramMethod:
    """The same of SOLH, with the number of buckets that gives the smallest variance."""

    def with_bits(bits: int, quick: bool) -> FrequencyOracle:
        return _largest(lambda local: SOLH(epsilon=local, domain=setting.domain, buckets=1 << bits), setting, quick)

    best = min(range(1, MOST_BUCKET_BITS + 1), key=lambda bits: mean_variance(with_bits(bits, True), setting.n))
    return ByOracle(with_bits(best, False))


def _largest(
    make: Callable[[float], FrequencyOracle], setting: HistogramSetting, quick: bool = False
) -> FrequencyOracle:
    oracle = local_epsilon(make, epsilon=setting.epsilon, n=setting.n, delta=setting.delta, quick=quick)
    assert isinstance(oracle, FrequencyOracle)
    return oracle


NUMERICAL: dict[str, Callable[[HistogramSetting], HistogramMethod]] = {
    "SH": cache(numerical_sh),
    "RAP": cache(numerical_rap),
    "SOLH": cache(numerical_solh),
}
"""The methods of the chapter that are mechanisms, by numerical bounds; each setting is searched once."""
