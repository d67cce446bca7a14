"""Statistics: the shares of a domain's values, the mean of a number, its distribution."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from hubbub.core.domain import Domain, Values, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of
from hubbub.core.reports import Floats, Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.mechanisms.numeric.square_wave import SquareWave
from hubbub.protocols.driver import MAIN
from hubbub.protocols.views.basic import Clipped, View, Whole
from hubbub.statistics.distribution import Distribution


class Statistic(ABC):
    """Something that can be estimated from reports at any epsilon."""

    size: int
    """How many numbers its estimate has."""
    view: View
    """What devices look at of their value."""
    kind: ClassVar[Literal["share", "quantity"]] = "share"
    """Whether the numbers are shares of the population or quantities."""

    @abstractmethod
    def mechanism(self, units: int) -> ReportFormat:
        """The mechanism that spends at most a given number of units of 1e-12 epsilon."""

    @abstractmethod
    def error(self, units: int, n: float, like: Floats) -> float:
        """The mean variance of an estimate from n reports, if the truth is near `like` (Eq 4 of LDP-IDS)."""

    def spread(self, like: Floats) -> float:
        """The mean variance of the values themselves: divided by n, the sampling variance of a random sample of n."""
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))

    def read(self, mechanism: ReportFormat, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        """The estimate from a sketch of the mechanism's reports; `candidates` are needed for open domains.

        The fake reports that shufflers added are subtracted, and their variance is part of the estimate's.
        """
        if sketch.fakes and candidates is None:
            from hubbub.privacy.fakes import estimate_without_fakes

            if isinstance(mechanism, FrequencyOracle):
                return estimate_without_fakes(mechanism, sketch.with_fakes(0), sketch.fakes)
        return mechanism.estimate(sketch, candidates)

    def answers(
        self, mechanism: ReportFormat, sketch: Sketch, candidates: Values | None = None, groups: int = 1
    ) -> Mapping[str, Estimate]:
        """All estimates from a sketch, by name, the main one first.

        If one of several equal `groups` of people was asked, variances include that of the sample.
        """
        return {MAIN: self.read(mechanism, sketch, candidates).of_groups(groups)}


@dataclass(frozen=True)
class Frequencies(Statistic):
    """The share of each value, by GRR or OUE, whichever is better (the paper's Ada)."""

    domain: DomainLike
    view: View = Whole()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        domain = as_domain("domain", self.domain)
        if domain.size is None:
            raise InvalidValue("domain", domain, "a domain with a size")
        object.__setattr__(self, "domain", domain)

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many values there are."""
        size = as_domain("domain", self.domain).size
        assert size is not None
        return size

    def mechanism(self, units: int) -> FrequencyOracle:
        return _oracle(units, as_domain("domain", self.domain))

    def error(self, units: int, n: float, like: Floats) -> float:
        # Shares sum to 1, so the mean of the frequency term needs no guess: it carries 1/d.
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope / self.size) / n


@dataclass(frozen=True)
class Means(Statistic):
    """The mean of a number between low and high, by the hybrid mechanism; the device clips other values."""

    low: float
    high: float
    size = 1
    kind = "quantity"

    @property
    def view(self) -> View:  # type: ignore[override]
        """Clip to the range."""
        return Clipped(self.low, self.high)

    def mechanism(self, units: int) -> Hybrid:
        return _hybrid(units, self.low, self.high)

    def error(self, units: int, n: float, like: Floats) -> float:
        return self.mechanism(units).variance(1, float(np.clip(like[0], self.low, self.high))) / n

    def spread(self, like: Floats) -> float:
        return 0.0  # the variance of the mechanism at the mean already includes it


@lru_cache(maxsize=4096)
def _oracle(units: int, domain: Domain) -> FrequencyOracle:
    return adaptive(epsilon=epsilon_of(units), domain=domain, most_bytes=1 << 16)


@lru_cache(maxsize=4096)
def _hybrid(units: int, low: float, high: float) -> Hybrid:
    return Hybrid(epsilon=epsilon_of(units), low=low, high=high)


QUANTILES, MEAN = "Quantiles", "Mean"
SPREAD_ARITHMETIC = 1
"""The version of what a distribution releases, with its intervals: it rises with every change, and a new era begins."""
MOST_CELLS = 1024
_PEOPLE = 100_000  # the forecast's error is computed for this number of people, and scaled to the actual number


@dataclass(frozen=True)
class Spread(Statistic):
    """The distribution of a number between low and high, by the square wave mechanism; the device clips other values.

    `cells`: how many cells of equal width the histogram has. `quantiles`: the shares whose quantiles are released.
    """

    low: float
    high: float
    cells: int
    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75, 0.95)

    def __post_init__(self) -> None:
        if not 2 <= self.cells <= MOST_CELLS:
            raise InvalidValue("cells", self.cells, f"from 2 to {MOST_CELLS} cells, for a distribution")
        if not self.quantiles or not all(isinstance(p, float) and 0 < p < 1 for p in self.quantiles):
            raise InvalidValue("quantiles", self.quantiles, "at least one number between 0 and 1")

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many cells there are."""
        return self.cells

    @property
    def view(self) -> View:  # type: ignore[override]
        """Clip to the range."""
        return Clipped(self.low, self.high)

    def mechanism(self, units: int) -> SquareWave:
        return _wave(units, self.low, self.high, 255 if self.cells <= 256 else MOST_CELLS - 1)

    def error(self, units: int, n: float, like: Floats) -> float:
        # The mean variance of a cell for uniform values: the noise depends little on the truth.
        return (
            float(np.mean(_of_uniform(self.mechanism(units)).coarser(self.cells, atoms=False).variance)) * _PEOPLE / n
        )

    def read(self, mechanism: ReportFormat, sketch: Sketch, candidates: Values | None = None) -> Estimate:
        return self.answers(mechanism, sketch)[MAIN]

    def answers(
        self, mechanism: ReportFormat, sketch: Sketch, candidates: Values | None = None, groups: int = 1
    ) -> Mapping[str, Estimate]:
        estimate = mechanism.estimate(sketch).of_groups(groups)
        assert isinstance(estimate, Distribution)
        mean = replace(estimate.mean(), labels=("mean",))
        quantiles = replace(estimate.quantile(self.quantiles), labels=tuple(map(_name, self.quantiles)))
        return {MAIN: estimate.coarser(self.cells), QUANTILES: quantiles, MEAN: mean}


def _name(p: float) -> str:
    return "median" if p == 0.5 else f"{100 * p:g}% are below"


@lru_cache(maxsize=256)
def _wave(units: int, low: float, high: float, cells: int) -> SquareWave:
    return SquareWave(epsilon=epsilon_of(units), low=low, high=high, cells=cells)


@lru_cache(maxsize=16)
def _of_uniform(wave: SquareWave) -> Distribution:
    """The distribution estimated from the expected reports of uniform values, with the default resolution."""
    reports = wave.outputs()
    assert reports is not None
    chance = np.exp(wave.log_prob(reports, wave.points)).mean(axis=1)
    counts = np.rint(_PEOPLE * chance).astype(np.int64)
    distribution = wave.distribution(Sketch(wave.spec_id, int(counts.sum()), counts))
    return replace(distribution, resolution=wave.resolution(_PEOPLE))
