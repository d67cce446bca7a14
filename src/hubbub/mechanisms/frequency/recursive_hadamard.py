"""Recursive Hadamard response: a report is a few random rows of a Hadamard matrix, and their signs with noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.reports import Array, Columns, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.hadamard import negative
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, unsigned
from hubbub.mechanisms.weights import Blanket, choice_rates, choose, search_power
from hubbub.random.source import Random

MOST_BITS = 12
"""The most signs of a report: it takes the server 2^signs operations."""


@dataclass(frozen=True, kw_only=True)
class RHR(FrequencyOracle):
    """Shares of a very large domain with the variance of local hashing, and a server that transforms instead of
    hashing.

    A report names k rows of a Hadamard matrix (`bits`), each drawn uniformly, and the signs of the matrix at these rows
    and the value: all of them true with probability p = e^eps/(e^eps + 2^k - 1), else any other signs. It supports the
    values with the same signs, so q = 2^-k, exactly. Variance of a share, at share 0: (e^eps + 2^k - 1)^2 /
    (n (e^eps - 1)^2 (2^k - 1)), that of local hashing with 2^k buckets; k = 1 is `Hadamard`.

    The paper draws one row and takes the others at fixed distances from it: k - 1 of the bits then say in which block
    of the domain the value is, the error of a share depends on its block's, and it is up to twice as large on average.
    That all rows are drawn is ours.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    bits, other
        How many rows and signs, and of 2^64 the share of each other choice of signs; 0 chooses those of the smallest
        variance.

    Example:
        >>> oracle = RHR(epsilon=2.0, domain=1000)
        >>> reports = oracle.randomize([7] * 6000 + [8] * 4000, Random(seed=1))
        >>> oracle.estimate(oracle.accumulate(reports)).top(2).tolist(), oracle.bits, oracle.report_bytes
        ([7, 8], 3, 7)

    References
    ----------
    Chen, Kairouz and Ozgur, 2020, section 4.
    """

    bits: int = 0
    other: int = 0
    server_work: ClassVar[str] = "2^k increments, then one transform of d log d"

    def _resolve(self) -> None:
        self._resolve_domain()
        if self.bits == 0:
            power = search_power(self.epsilon)
            self._set("bits", min(range(1, MOST_BITS + 1), key=lambda k: (power - 1 + 2**k) ** 2 / (2**k - 1)))
        self._integer("bits", 1, MOST_BITS)
        self._resolve_other(self.options)

    @property
    def options(self) -> int:
        """How many choices of signs there are."""
        return 1 << self.bits

    @property
    def rows(self) -> int:
        """The side of the matrix: the power of two that holds the domain."""
        return 1 << (self.size - 1).bit_length()

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        return choice_rates(self.other, self.options)[0], Fraction(1, self.options)

    def pair_covariance(self) -> tuple[float, float]:
        return 0.0, 0.0  # the signs at any three values are independent: modulo two, no two of their differences agree

    def ratio(self) -> Fraction:
        truth, other = choice_rates(self.other, self.options)
        return truth / other

    def blanket(self) -> Blanket:
        other = choice_rates(self.other, self.options)[1]
        return Blanket(self.options * other, self.ratio(), both=Fraction(1, self.options**2))

    def server_operations(self, n: int) -> float:
        return self.options + self.rows * math.log2(self.rows) / n

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "rows", unsigned(self.rows), (self.bits,), below=self.rows),
            ColumnSpec("private", "signs", unsigned(self.options), below=self.options),
        )

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, self.bits + 1)
        rows = draws[:, : self.bits] & np.uint64(self.rows - 1)
        truth = self._joined_signs(rows, codes[:, None])
        return {"rows": rows, "signs": choose(truth, draws[:, self.bits], self.other, self.options)}

    def _joined_signs(self, rows: Words, codes: Array) -> Ints:
        """The signs at the rows (last axis) as the bits of one number."""
        return np.asarray(negative(rows, codes) @ (1 << np.arange(self.bits)))

    def _cases(self, reports: Reports, values: Values) -> Cases:
        p, q = choice_rates(self.other, self.options)
        rows = reports.public["rows"].astype(np.uint64)[:, None, :]
        signs = self._joined_signs(rows, self.encode(values)[None, :, None])
        return (q, p), (signs == reports.private["signs"][:, None]).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports:
        return self._with_public(public, {"signs": np.arange(self.options)})

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.rows,)

    def _fold(self, reports: Reports) -> Ints:
        """The products of the signs of any of a report's rows, summed at the row that is the product of these rows."""
        return self._products(reports, np.ones(len(reports), dtype=np.int64))

    def _products(self, reports: Reports, weights: Ints) -> Ints:
        rows, signs = reports.public["rows"].astype(np.int64), reports.private["signs"].astype(np.uint64)
        sums = np.zeros(self.rows, dtype=np.int64)
        for chosen in range(self.options):
            product = np.bitwise_xor.reduce(rows[:, [j for j in range(self.bits) if chosen >> j & 1]], axis=1)
            np.add.at(sums, product, np.where(negative(signs, np.uint64(chosen)), -weights, weights))
        return sums

    def _support_counts(self, sketch: Sketch) -> Ints:
        return self._supports(sketch.counts)[: self.size]

    def _supports(self, sums: Ints) -> Ints:
        """A report's products add up to 2^k in the transform where it supports a value, and to 0 elsewhere."""
        from hubbub.kernels.estimators import walsh_hadamard

        return walsh_hadamard(sums) >> self.bits

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        return self._supports(self._fold(reports) if weights is None else self._products(reports, weights))[candidates]

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=2.0, domain=2)
        yield cls(epsilon=1.0, domain=["a", "b", "c", "d", "e"])
        yield cls(epsilon=1.0, domain=300)
