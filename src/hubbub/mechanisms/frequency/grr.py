"""Generalised randomised response: a report is the true value, or one of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.reports import Array, Bools, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, unsigned
from hubbub.mechanisms.weights import Blanket, choice_rates, choose
from hubbub.random.source import Random

_ENUMERABLE = 1 << 16


@dataclass(frozen=True, kw_only=True)
class GRR(FrequencyOracle):
    """Shares of a small domain, by direct encoding (DE).

    A report is the true value with probability p = e^eps/(e^eps + d - 1), else one of the others, each with
    q = 1/(e^eps + d - 1). Variance of a share, at share 0: (d - 2 + e^eps) / (n (e^eps - 1)^2). The best oracle while
    d < 3 e^eps + 2.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    other
        Of 2^64, the share of each false value; 0 chooses the smallest that epsilon allows.

    Example:
        >>> from hubbub import Random
        >>> grr = GRR(epsilon=1.0, domain=["yes", "no", "maybe"])
        >>> reports = grr.randomize(["yes"] * 600 + ["no"] * 400, Random(seed=1))
        >>> grr.estimate(grr.accumulate(reports)).value.round(2).tolist()
        [0.62, 0.46, -0.08]

    References
    ----------
    Warner, 1965; Kairouz, Oh and Viswanath, 2016; T. Wang, 2021, section 3.3.1.
    """

    other: int = 0
    server_work: ClassVar[str] = "one increment"

    def _resolve(self) -> None:
        self._resolve_domain()
        self._resolve_other(self.size)

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        return choice_rates(self.other, self.size)

    def ratio(self) -> Fraction:
        p, q = self.rates
        return p / q

    def blanket(self) -> Blanket:
        return Blanket(self.size * self.rates[1], self.ratio(), both=Fraction(0))

    def server_operations(self, n: int) -> float:
        return 1.0

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (ColumnSpec("private", "value", unsigned(self.size), below=self.size),)

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        return {"value": choose(codes, rng.uint64(codes.size), self.other, self.size)}

    def _same(self, reports: Reports, values: Values) -> Bools:
        return np.asarray(reports.private["value"][:, None] == self.encode(values)[None, :])

    def _cases(self, reports: Reports, values: Values) -> Cases:
        p, q = self.rates
        return (q, p), self._same(reports, values).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        return self._with_public(public, {"value": np.arange(self.size)}) if self.size <= _ENUMERABLE else None

    def _fold(self, reports: Reports) -> Ints:
        return np.bincount(reports.private["value"], minlength=self.size)

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        dense = np.zeros(self.size, dtype=np.int64)
        np.add.at(dense, reports.private["value"], 1 if weights is None else weights)
        return dense[candidates]

    def _supported(self, values: int) -> tuple[int, int]:
        return int(values == self.size), 1

    def pair_covariance(self) -> tuple[float, float]:
        p, q = (float(rate) for rate in self.rates)
        return -p * q, -q * q  # a report supports one value alone

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d", "e"])
        yield cls(epsilon=0.5, domain=300)
