"""Unary encodings: a bit for every value, each flipped at random. SUE, OUE and THE differ in the probabilities."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Words
from hubbub.mechanisms.base import ColumnSpec, fractions
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, SupportMechanism
from hubbub.random.integers import ceil_div, every_row, exp_floor, log_fraction, unpack
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.mechanisms.weights import Blanket


_ENUMERABLE = 12  # bits: 4,096 outputs


@dataclass(frozen=True, kw_only=True)
class PackedBits(SupportMechanism):
    """A report is d packed bits; it supports the values whose bit is 1. Any d bits are a report, unless overridden."""

    server_work: ClassVar[str] = "the bits of d/8 bytes added up"

    def server_operations(self, n: int) -> float:
        return float(-(-self.size // 8))

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec.packed("bits", self.size),)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        return None if self.size > _ENUMERABLE else self._with_public(public, {"bits": every_row(self.size)})

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        from hubbub.kernels.estimators import column_sums

        return column_sums(reports.private["bits"], weights)[: self.size][candidates]


_CHUNK = 1 << 20  # bytes drawn at a time: the cost of the calls is spread, and they stay in the cache
_LOSS = 1e-3  # of epsilon, the most that 16-bit probabilities may waste before 32 bits are used


@dataclass(frozen=True, kw_only=True)
class Unary(PackedBits, FrequencyOracle):
    """A report is d bits: that of the sender's value is 1 with probability p, every other with probability q.

    Epsilon is ln(p (1-q) / ((1-p) q)), Eq 3.6. A bit is 1 where a random integer of `width` bits is below a stored
    threshold: `one` for the sender's value, `zero` for the others.
    """

    width: int = 0
    one: int = 0
    zero: int = 0

    @abstractmethod
    def _thresholds(self, width: int) -> tuple[int, int]:
        """The thresholds of the two bits, rounded toward privacy."""

    def _resolve(self) -> None:
        self._resolve_domain()
        if not (self.one or self.zero):
            if self.width == 0:
                self._set("width", self._choose_width())
            if self.width in (16, 32):
                for field, threshold in zip(("one", "zero"), self._thresholds(self.width), strict=True):
                    self._set(field, threshold)
        if self.width not in (16, 32):
            raise InvalidValue("width", self.width, "16 or 32 bits")
        top = (1 << self.width) - 1
        self._integer("one", 1, top)
        self._integer("zero", 1, top)
        if self.one <= self.zero:
            raise InvalidValue(
                "epsilon", self.epsilon, f"an epsilon that {self.width}-bit probabilities can tell from 0"
            )

    def _choose_width(self) -> int:
        one, zero = self._thresholds(16)
        full = odds(*(Fraction(threshold, 1 << 32) for threshold in self._thresholds(32)))
        if not (0 < zero < one < 1 << 16):
            return 32
        short = odds(Fraction(one, 1 << 16), Fraction(zero, 1 << 16))
        return 16 if log_fraction(short) >= (1 - _LOSS) * log_fraction(full) else 32

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.one, 1 << self.width), Fraction(self.zero, 1 << self.width)

    def pair_covariance(self) -> tuple[float, float]:
        return 0.0, 0.0  # bits are drawn one by one

    def ratio(self) -> Fraction:
        return odds(*self.rates)

    def blanket(self) -> Blanket:
        from hubbub.mechanisms.weights import Blanket  # a device amplifies nothing

        p, q = self.rates  # under any value, bits have at least (1-p)/(1-q) of their chance under noise alone
        return Blanket((1 - p) / (1 - q), self.ratio(), both=q * q)

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        return {"bits": flip_bits(codes[:, None], self.size, self.width, self.one, self.zero, rng)}

    def _counts_of_bits(self, reports: Reports, values: Values) -> tuple[Array, Array]:
        bits = unpack(reports.private["bits"], self.size)
        return bits.sum(axis=1, dtype=np.int64)[:, None], bits[:, self.encode(values)].astype(np.int64)

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        (p, q), d = self.rates, self.size
        ones, own = self._counts_of_bits(reports, values)
        others = [q**rest * (1 - q) ** (d - 1 - rest) for rest in range(d)]
        return np.asarray(fractions([1 - p, p], own) * fractions(others, ones - own))

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        p, q = self.rates
        ones, own = self._counts_of_bits(reports, values)
        rest = ones - own
        others = rest * log_fraction(q) + (self.size - 1 - rest) * log_fraction(1 - q)
        return np.asarray(np.where(own == 1, log_fraction(p), log_fraction(1 - p)) + others)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d", "e"])
        yield cls(epsilon=1.0, domain=131)


class SUE(Unary):
    """Shares of a domain of moderate size, by symmetric unary encoding: basic RAPPOR, reporting once.

    p = e^(eps/2)/(e^(eps/2)+1), q = 1-p. Variance of a share: e^(eps/2) / (n (e^(eps/2)-1)^2), at any share.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    width, one, zero
        Bits of the thresholds, and the thresholds; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> sue = SUE(epsilon=2.0, domain=4)
        >>> reports = sue.randomize([0] * 700 + [2] * 300, Random(seed=1))
        >>> sue.estimate(sue.accumulate(reports)).value.round(2).tolist()
        [0.64, -0.02, 0.36, 0.01]

    References
    ----------
    T. Wang, Blocki et al., 2017; T. Wang, 2021, section 3.3.3.
    """

    def _thresholds(self, width: int) -> tuple[int, int]:
        zero = ceil_div(1 << width, exp_floor(Fraction(self.epsilon) / 2) + 1)
        return (1 << width) - zero, zero


class OUE(Unary):
    """Shares of a domain of moderate size, by optimised unary encoding.

    p = 1/2, q = 1/(e^eps + 1). Variance of a share, at share 0: 4 e^eps / (n (e^eps - 1)^2), the best there is.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    width, one, zero
        Bits of the thresholds, and the thresholds; 0 chooses them.

    Example:
        >>> from hubbub import Random
        >>> oue = OUE(epsilon=2.0, domain=4)
        >>> reports = oue.randomize([0] * 700 + [2] * 300, Random(seed=1))
        >>> oue.estimate(oue.accumulate(reports)).value.round(2).tolist()
        [0.6, 0.01, 0.37, 0.02]

    References
    ----------
    T. Wang, Blocki et al., 2017; T. Wang, 2021, section 3.3.3.
    """

    def _thresholds(self, width: int) -> tuple[int, int]:
        return 1 << (width - 1), ceil_div(1 << width, exp_floor(self.epsilon) + 1)


def flip_bits(ones: Array, size: int, width: int, one: int, zero: int, rng: Random) -> NDArray[np.uint8]:
    """Packed random bits: 1 below `one` at each row's positions `ones`, below `zero` elsewhere.

    Each row takes one block from `rng`, whatever its positions: an integer of `width` bits for each of `size` bits, and
    for the bits that fill up the last byte, which stay 0. A position of -1 means none.
    """
    n, octets = len(ones), -(-size // 8)
    packed = np.empty((n, octets), dtype=np.uint8)
    step = min(n, max(1, _CHUNK // (octets * width))) or 1
    draws = np.empty((step, 8 * octets), dtype=f"<u{width // 8}")  # kept: fresh memory costs as much as filling it
    bits = np.empty(draws.shape, dtype=bool)
    rows = np.arange(step)[:, None] * (8 * octets)
    gaps = bool((ones < 0).any())
    for start in range(0, n, step):
        own = ones[start : start + step]
        drawn, ups, row = draws[: len(own)], bits[: len(own)], rows[: len(own)]
        rng.fill(drawn)
        np.less(drawn, draws.dtype.type(zero), out=ups)
        at = (row + own)[own >= 0] if gaps else row + own
        ups.reshape(-1)[at] = drawn.reshape(-1)[at] < draws.dtype.type(one)
        packed[start : start + step] = np.packbits(ups, bitorder="little").reshape(-1, octets)
    if size % 8:
        packed[:, -1] &= (1 << size % 8) - 1
    return packed


def odds(p: Fraction, q: Fraction) -> Fraction:
    """The worst ratio of two reports' probabilities, e^epsilon of Eq 3.6."""
    return p * (1 - q) / ((1 - p) * q)


@dataclass(frozen=True, kw_only=True)
class THE(Unary):
    """Shares of a domain of moderate size, by Laplace noise on a histogram, cut at a threshold.

    A count passes theta with probability p = 1 - e^(eps (theta-1)/2)/2 where the value is held and
    q = e^(-eps theta/2)/2 where it is not. The device applies the threshold. So its report is a unary encoding with
    these rates, and spends less than the noisy histogram would: `effective_epsilon` says how much.

    Parameters
    ----------
    epsilon
        What the noisy histogram may spend.
    domain
        A size, a list of names, or a Domain.
    theta
        The threshold, between 0 and 1; 0 chooses the one of smallest variance.
    width, one, zero
        Bits of the probabilities, and the probabilities; 0 chooses them.

    Example:
        >>> the = THE(epsilon=1.0, domain=4)
        >>> round(the.theta, 4), round(the.variance(1), 3), round(the.effective_epsilon, 3)
        (0.6186, 4.807, 0.896)

    References
    ----------
    T. Wang, Blocki et al., 2017; T. Wang, 2021, section 3.3.2.
    """

    theta: float = 0.0

    def _resolve(self) -> None:
        if self.theta == 0:
            self._set("theta", best_theta(self.epsilon))
        if isinstance(self.theta, bool) or not isinstance(self.theta, int | float) or not 0 < self.theta <= 1:
            raise InvalidValue("theta", self.theta, "a number above 0, at most 1")
        self._set("theta", float(self.theta))
        super()._resolve()

    def _thresholds(self, width: int) -> tuple[int, int]:
        p, q = pass_rates(self.epsilon, self.theta)
        return round(p * (1 << width)), math.ceil(q * (1 << width))


def pass_rates(epsilon: float, theta: float) -> tuple[float, float]:
    """The chance that a noisy 1, and a noisy 0, passes theta."""
    return 1 - math.exp(epsilon * (theta - 1) / 2) / 2, math.exp(-epsilon * theta / 2) / 2


def best_theta(epsilon: float) -> float:
    """The threshold of smallest variance at share 0 (golden-section search of Eq 3.3 on 1/2 to 1)."""

    def variance(theta: float) -> float:
        p, q = pass_rates(epsilon, theta)
        return q * (1 - q) / (p - q) ** 2

    low, high, golden = 0.5, 1.0, (math.sqrt(5) - 1) / 2
    while high - low > 1e-12:
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if variance(left) < variance(right) else (left, high)
    return round((low + high) / 2, 9)
