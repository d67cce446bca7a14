"""Hadamard response: a report is a random row of a Hadamard matrix, and one noisy sign of that row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.reports import Array, Bools, Columns, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import FrequencyOracle, unsigned
from hubbub.mechanisms.weights import Blanket, choice_rates, truth_weight
from hubbub.random.source import Random


@dataclass(frozen=True, kw_only=True)
class Hadamard(FrequencyOracle):
    """Shares of a very large domain: a report of one bit, and a server that transforms once instead of hashing.

    A report names a row r, drawn uniformly, and the sign of the Hadamard matrix at (r, value), true with probability
    p = e^eps/(e^eps + 1). It supports the half of the values whose sign is the same, so q = 1/2. Variance of a share:
    (e^eps + 1)^2 / (n (e^eps - 1)^2), as BLH: good while epsilon is small, poor where it is large.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    other
        Of 2^64, the share of the false sign; 0 chooses the smallest that epsilon allows.

    Example:
        >>> oracle = Hadamard(epsilon=1.0, domain=1000)
        >>> reports = oracle.randomize([7] * 6000 + [8] * 4000, Random(seed=1))
        >>> oracle.estimate(oracle.accumulate(reports)).top(2).tolist()
        [7, 8]

    References
    ----------
    Acharya, Sun and Zhang, 2019; Bassily et al., 2017.
    """

    other: int = 0
    server_work: ClassVar[str] = "one increment, then one transform of d log d"

    def _resolve(self) -> None:
        self._resolve_domain()
        self._resolve_other(2)

    @property
    def rows(self) -> int:
        """The side of the matrix: the power of two that holds the domain."""
        return 1 << (self.size - 1).bit_length()

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        return choice_rates(self.other, 2)[0], Fraction(1, 2)

    def pair_covariance(self) -> tuple[float, float]:
        return 0.0, 0.0  # two rows of the matrix agree at half of the columns

    def ratio(self) -> Fraction:
        truth, other = choice_rates(self.other, 2)
        return truth / other

    def blanket(self) -> Blanket:
        # Two columns of the matrix agree at half of the rows.
        return Blanket(2 * choice_rates(self.other, 2)[1], self.ratio(), both=Fraction(1, 4))

    def server_operations(self, n: int) -> float:
        return 1 + self.rows * math.log2(self.rows) / n

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "row", unsigned(self.rows), below=self.rows),
            ColumnSpec("private", "minus", "u1", below=2),
        )

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        draws = rng.uint64(codes.size, 2)
        row = draws[:, 0] & np.uint64(self.rows - 1)
        flip = draws[:, 1] >= np.uint64(truth_weight(self.other, 2))
        return {"row": row, "minus": negative(row, codes) ^ flip}

    def _same(self, reports: Reports, values: Values) -> Bools:
        signs = negative(reports.public["row"].astype(np.uint64)[:, None], self.encode(values)[None, :])
        return np.asarray(signs == reports.private["minus"][:, None])

    def _cases(self, reports: Reports, values: Values) -> Cases:
        p, q = choice_rates(self.other, 2)
        return (q, p), self._same(reports, values).astype(np.int64)

    def outputs(self, public: Columns | None = None) -> Reports:
        return self._with_public(public, {"minus": np.arange(2)})

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.rows,)

    def _fold(self, reports: Reports) -> Ints:
        """The signs of each row, summed."""
        cell = reports.public["row"].astype(np.int64) * 2 + reports.private["minus"]
        plus, minus = np.bincount(cell, minlength=2 * self.rows).reshape(-1, 2).T
        return plus - minus

    def _support_counts(self, sketch: Sketch) -> Ints:
        return self._supports(sketch.counts, sketch.n)[: self.size]

    def _supports(self, signs: Ints, total: int) -> Ints:
        """Each report adds +1 to the transform where it supports a value, and -1 elsewhere."""
        from hubbub.kernels.estimators import walsh_hadamard

        return (walsh_hadamard(signs) + total) // 2

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        if weights is None:
            return self._supports(self._fold(reports), len(reports))[candidates]
        signs = np.zeros(self.rows, dtype=np.int64)
        np.add.at(signs, reports.public["row"], np.where(reports.private["minus"], -weights, weights))
        return self._supports(signs, int(weights.sum()))[candidates]

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=2.0, domain=["a", "b", "c", "d", "e"])
        yield cls(epsilon=0.5, domain=300)


def negative(row: Words, code: Array | np.uint64) -> Bools:
    """Whether the Hadamard matrix is -1 at a row and a column: the parity of the bits that both have."""
    return np.asarray(np.bitwise_count(row & code.astype(np.uint64)) & 1, dtype=bool)
