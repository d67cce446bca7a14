"""Statistics that protocols estimate: the shares of a domain's values, or the mean of a number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Domain, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.event import epsilon_of
from hubbub.core.hashing import BEST_HASH
from hubbub.core.sketch import Sketch
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.first_hash import with_hash
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle
from hubbub.mechanisms.numeric.hybrid import Hybrid
from hubbub.protocols.release import MAIN
from hubbub.protocols.view import Clipped, View, Whole


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
        """The mechanism that spends at most so many units of 1e-12 epsilon."""

    @abstractmethod
    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        """The mean variance of an estimate from n reports, if the truth is near `like` (Eq 4 of LDP-IDS)."""

    @abstractmethod
    def spread(self, like: NDArray[np.float64]) -> float:
        """The mean variance of the values themselves: divided by n, the sampling variance of a random sample of n."""

    def read(self, mechanism: ReportFormat, sketch: Sketch, candidates: Any = None) -> Estimate:
        """The estimate from a sketch of the mechanism's reports; `candidates` are needed for open domains.

        The fake reports that shufflers added are subtracted, and their variance is part of the estimate's.
        """
        if sketch.fakes and candidates is None:
            from hubbub.privacy.amplification.fakes import estimate_without_fakes

            if isinstance(mechanism, FrequencyOracle):
                return estimate_without_fakes(mechanism, sketch.with_fakes(0), sketch.fakes)
        return mechanism.estimate(sketch, candidates)

    def answers(self, mechanism: ReportFormat, sketch: Sketch, candidates: Any = None) -> Mapping[str, Estimate]:
        """All estimates from a sketch, by name, the main one first."""
        return {MAIN: self.read(mechanism, sketch, candidates)}


@dataclass(frozen=True)
class Frequencies(Statistic):
    """The share of each value, by GRR or OUE, whichever is better (the paper's Ada)."""

    domain: DomainLike
    view: View = Whole()  # noqa: RUF009 - frozen
    hash: str = BEST_HASH

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
        return _oracle(units, as_domain("domain", self.domain), self.hash)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        # Shares sum to 1, so the mean of the frequency term needs no guess: it carries 1/d.
        noise = self.mechanism(units).noise(1)
        return (noise.floor + noise.slope / self.size) / n

    def spread(self, like: NDArray[np.float64]) -> float:
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))


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

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        return self.mechanism(units).variance(1, float(np.clip(like[0], self.low, self.high))) / n

    def spread(self, like: NDArray[np.float64]) -> float:
        return 0.0  # the variance of the mechanism at the mean already includes it


@lru_cache(maxsize=4096)
def _oracle(units: int, domain: Domain, hash: str) -> FrequencyOracle:
    return with_hash(adaptive(epsilon=epsilon_of(units), domain=domain, most_bytes=1 << 16), hash)


@lru_cache(maxsize=4096)
def _hybrid(units: int, low: float, high: float) -> Hybrid:
    return Hybrid(epsilon=epsilon_of(units), low=low, high=high)
