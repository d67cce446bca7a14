"""The questions of a collection: how each asks, at any epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Domain, Strings, as_domain
from hubbub.core.errors import InvalidValue
from hubbub.core.event import epsilon_of
from hubbub.core.exact import exp_floor
from hubbub.mechanisms import MECHANISMS
from hubbub.mechanisms.first_hash import with_first_hash
from hubbub.mechanisms.frequency.adaptive import adaptive
from hubbub.mechanisms.frequency.basic_rappor import BasicRappor
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.rappor import Rappor
from hubbub.mechanisms.memo.loloha import Loloha
from hubbub.mechanisms.memo.memo import Memoised
from hubbub.mechanisms.numeric.mean import MeanMechanism
from hubbub.protocols.statistic import Frequencies, Means, Statistic
from hubbub.protocols.view import View, Whole

__all__ = ["Averages", "Persistent", "Shares", "Words"]

MOST_BYTES = 512
"""The largest unary report: beyond, local hashing is as accurate in a few bytes."""

MOST_MEMO_BITS = 512
"""The largest domain of basic RAPPOR: beyond, LOLOHA bounds what a value that changes can cost."""


@dataclass(frozen=True)
class Shares(Frequencies):
    """The share of each value, by the best of GRR, OUE and OLH unless an oracle is named.

    Example:
        >>> type(Shares(4).mechanism(10**12)).__name__, type(Shares(4, oracle="OLH").mechanism(10**12)).__name__
        ('GRR', 'OLH')
    """

    oracle: str | None = None

    def mechanism(self, units: int) -> FrequencyOracle:
        return _oracle(self.oracle, units, as_domain("domain", self.domain))


@dataclass(frozen=True)
class Averages(Means):
    """The mean of a number, by the hybrid mechanism unless another is named.

    Example:
        >>> type(Averages(0.0, 1.0, mean="Piecewise").mechanism(10**12)).__name__
        'Piecewise'
    """

    mean: str | None = None

    def mechanism(self, units: int) -> Any:
        if self.mean is None:
            return super().mechanism(units)
        return _named(self.mean, MeanMechanism)(epsilon=epsilon_of(units), low=self.low, high=self.high)

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        return float(self.mechanism(units).variance(1, float(np.clip(like[0], self.low, self.high)))) / n


@dataclass(frozen=True)
class Persistent(Statistic):
    """The share of each value that persists: a permanent answer for good, randomised again for every report.

    `mechanism` spends at most so many units a report; what all reports of one value tell is at most `permanent`. Small
    domains are asked by basic RAPPOR, large ones by LOLOHA, unless either is named.

    Example:
        >>> rappor = Persistent(8, permanent=2.0).mechanism(10**12)
        >>> round(rappor.permanent_epsilon, 3), round(rappor.effective_epsilon, 3)
        (2.0, 1.0)
        >>> type(Persistent(5000, permanent=2.0).mechanism(10**12)).__name__
        'Loloha'
    """

    domain: Domain | int
    permanent: float
    memo: str | None = None
    view: View = Whole()  # noqa: RUF009 - frozen

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many values there are."""
        size = as_domain("domain", self.domain).size
        assert size is not None
        return size

    def mechanism(self, units: int) -> BasicRappor | Loloha:
        name = self.memo or ("BasicRappor" if self.size <= MOST_MEMO_BITS else "Loloha")
        return _memo(name, self.permanent, units, as_domain("domain", self.domain))

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        one = self.mechanism(units).noise(1)
        return (one.floor + one.slope / self.size) / n

    def spread(self, like: NDArray[np.float64]) -> float:
        share = np.clip(like, 0.0, 1.0)
        return float(np.mean(share * (1 - share)))


@dataclass(frozen=True)
class Words(Statistic):
    """The share of each candidate among any text, by RAPPOR's Bloom filters; its error has no formula.

    Example:
        >>> Words(Strings(16), candidates=("yes", "no")).mechanism(10**12).bits
        128
    """

    domain: Strings
    candidates: tuple[str, ...]
    view: View = Whole()  # noqa: RUF009 - frozen

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many candidates there are."""
        return len(self.candidates)

    def mechanism(self, units: int) -> Rappor:
        return with_first_hash(Rappor(epsilon=epsilon_of(units), domain=self.domain))

    def error(self, units: int, n: float, like: NDArray[np.float64]) -> float:
        return float("nan")

    def spread(self, like: NDArray[np.float64]) -> float:
        return float("nan")


def _named(name: str, wanted: type[Any]) -> type[Any]:
    """The mechanism of a name; those with a memory answer questions of kind memo alone."""
    known = {other: kind for other, kind in MECHANISMS.items() if issubclass(kind, wanted)}
    fitting = {other: kind for other, kind in known.items() if wanted is Memoised or not issubclass(kind, Memoised)}
    if name not in fitting:
        raise InvalidValue("mechanism", name, f"one of {', '.join(fitting)}")
    return fitting[name]


@lru_cache(maxsize=4096)
def _oracle(name: str | None, units: int, domain: Domain) -> FrequencyOracle:
    if name is None:
        return with_first_hash(adaptive(epsilon=epsilon_of(units), domain=domain, most_bytes=MOST_BYTES))
    oracle: FrequencyOracle = _named(name, FrequencyOracle)(epsilon=epsilon_of(units), domain=domain)
    return with_first_hash(oracle)


@lru_cache(maxsize=256)
def _memo(name: str, permanent: float, units: int, domain: Domain) -> BasicRappor | Loloha:
    report = epsilon_of(units)
    if not report < permanent:  # equal would mean bare permanent answers: fingerprints
        raise InvalidValue("permanent", permanent, f"an epsilon above that of one report, {report:g}")
    if _named(name, Memoised) is Loloha:
        return Loloha(epsilon=permanent, domain=domain, report_epsilon=report)
    return _rappor(permanent, report, domain)


def _rappor(permanent: float, report: float, domain: Domain) -> BasicRappor:
    """The symmetric second step that lets one report tell just so much.

    With a permanent bit right with probability a, a report's bit is right with probability s = a k + (1-a)(1-k), and
    one report spends 2 ln(s/(1-s)): so k = (s - (1-a)) / (2a - 1), rounded down.
    """
    full = BasicRappor(epsilon=permanent, domain=domain, width=32)
    right, wrong = full.permanent_rates
    most, root = exp_floor(report), exp_floor(Fraction(report) / 2)
    keep = int((root / (1 + root) - wrong) / (right - wrong) * (1 << 32))
    for tried in range(min(keep, (1 << 32) - 1), max(keep - 4, 1 << 31), -1):
        thresholds = {"one": full.one, "zero": full.zero, "keep": tried, "lift": (1 << 32) - tried}
        made = BasicRappor(epsilon=permanent, domain=domain, width=32, **thresholds)
        if made.ratio() <= most:
            return made
    raise InvalidValue("epsilon", report, "an epsilon that 32-bit probabilities can tell from 0")
