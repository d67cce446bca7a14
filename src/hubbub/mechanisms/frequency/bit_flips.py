"""Bit flips: a report is a few values drawn at random, and for each of them one noisy bit: whether it is held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Array, Columns, Ints, Reports, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, Moments, unsigned
from hubbub.mechanisms.weights import Blanket, choice_rates, other_weight, truth_weight
from hubbub.random.integers import distinct, every_row, pack, unpack
from hubbub.random.source import Random

_ENUMERABLE = 12  # bits: 4,096 outputs
_MOST = 256  # values a report is about: the work of drawing them grows with the square


@dataclass(frozen=True, kw_only=True)
class BitFlips(FrequencyOracle):
    """Shares of a domain of moderate size by dBitFlipPM: `asked` of its d values are drawn, and a bit is told for each.

    A bit is true with probability p = t/(t + 1), where t = e^(eps/2), as two bits differ between two values; with one
    bit, t = e^eps. Variance of a rare share: d/asked times that of symmetric unary encoding. So reports are short, and
    a device that is asked about few values tells nothing of the others.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    asked
        How many values a report is about, at most 256; 0 chooses 16, or all of a smaller domain.
    other
        Of 2^64, the share of a false bit; 0 chooses the smallest that epsilon allows.

    Example:
        >>> oracle = BitFlips(epsilon=2.0, domain=10, asked=4)
        >>> reports = oracle.randomize([3] * 6000 + [4] * 4000, Random(seed=1))
        >>> oracle.estimate(oracle.accumulate(reports)).top(2).tolist(), oracle.report_bytes
        ([3, 4], 5)

    References
    ----------
    Ding, Kulkarni and Yekhanin, 2017.
    """

    asked: int = 0
    other: int = 0
    support_range: ClassVar[tuple[int, int]] = (-1, 1)
    server_work: ClassVar[str] = "one increment for each value asked about"

    def _resolve(self) -> None:
        self._resolve_domain()
        if self.asked == 0:
            self._set("asked", min(16, self.size))
        self._integer("asked", 1, min(self.size, _MOST))
        if self.other == 0:
            self._set("other", other_weight(self.epsilon / min(2, self.asked), 2))
        self._resolve_other(2)

    @cached_property
    def _gap(self) -> Fraction:
        """The mean support of a value from a holder; from anyone else it is the negative of this."""
        p, q = choice_rates(self.other, 2)
        return (p - q) * Fraction(self.asked, self.size)

    def _support_means(self) -> tuple[Fraction, Fraction]:
        return self._gap, -self._gap

    def moments(self) -> Moments:
        gap = float(self._gap)
        variance = self.asked / self.size - gap * gap
        return Moments(gap, -gap, variance, variance)

    def pair_covariance(self) -> tuple[float, float]:
        p, q = choice_rates(self.other, 2)
        both = Fraction(self.asked * (self.asked - 1), self.size * (self.size - 1)) * (p - q) ** 2
        return float(self._gap**2 - both), float(both - self._gap**2)

    def ratio(self) -> Fraction:
        p, q = choice_rates(self.other, 2)
        return Fraction((p / q) ** min(2, self.asked))

    def blanket(self) -> Blanket | None:
        p, q = choice_rates(self.other, 2)
        if self.asked == 1:
            return Blanket(2 * q, p / q)
        pairs = Fraction(self.asked * (self.asked - 1), self.size * (self.size - 1))
        return Blanket(q / p, self.ratio(), both=pairs * q * q)

    def server_operations(self, n: int) -> float:
        return float(self.asked)

    def _supported(self, values: int) -> tuple[int, int]:
        return -min(values, self.asked), min(values, self.asked)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "values", unsigned(self.size), (self.asked,), below=self.size),
            ColumnSpec.packed("bits", self.asked),
        )

    def check(self, reports: Reports) -> None:
        super().check(reports)
        values = reports.public["values"].astype(np.int64)
        if (np.diff(values, axis=1) <= 0).any():
            raise InvalidValue("values", "a value twice, or out of order", f"{self.asked} values in increasing order")

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 2 * self.asked)
        drawn = distinct(draws[:, : self.asked], self.size, rng)
        flips = draws[:, self.asked :] >= np.uint64(truth_weight(self.other, 2))
        return {"values": drawn, "bits": pack((drawn == codes[:, None]) ^ flips)}

    def _false_bits(self, reports: Reports, values: Values) -> Ints:
        """How many bits of each report (row) are false if its sender holds each value (column)."""
        bits = unpack(reports.private["bits"], self.asked)[:, None, :].astype(bool)
        held = reports.public["values"].astype(np.int64)[:, None, :] == self.encode(values)[None, :, None]
        return np.asarray((held ^ bits).sum(axis=2))

    def _cases(self, reports: Reports, values: Values) -> Cases:
        p, q = choice_rates(self.other, 2)
        chances = [q**false * p ** (self.asked - false) for false in range(self.asked + 1)]
        return chances, self._false_bits(reports, values)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        if self.asked > _ENUMERABLE:
            return None
        first = {"values": np.arange(self.asked)[None, :]} if public is None else public
        return self._with_public(first, {"bits": every_row(self.asked)})

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        signs = unpack(reports.private["bits"], self.asked).astype(np.int64) * 2 - 1
        sums = np.zeros(self.size, dtype=np.int64)
        np.add.at(sums, reports.public["values"], signs if weights is None else signs * weights[:, None])
        return sums[candidates]

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d", "e"], asked=3)
        yield cls(epsilon=1.0, domain=131, asked=1)
