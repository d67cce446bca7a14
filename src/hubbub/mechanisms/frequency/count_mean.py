"""Apple's count mean sketches: a report names one of a few hash functions, and tells of the bucket with noise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import Ordinal
from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.hashing import HASH, bucket, hash32, spread_seeds
from hubbub.core.reports import Array, Columns, Floats, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.function_list import FunctionList
from hubbub.mechanisms.frequency.hadamard import Hadamard
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.mechanisms.frequency.unary import SUE
from hubbub.mechanisms.weights import Blanket
from hubbub.random.source import Random

MOST_BUCKETS = 1 << 16
_BUCKETS = 256


@dataclass(frozen=True, kw_only=True)
class CountMean(FunctionList):
    """A report names one of `functions` hash functions, and an oracle over the buckets reports the value's bucket.

    With the oracle's rates p and q, a report supports a value that its sender does not hold with probability
    q' = p/m + (1 - 1/m) q over all lists of functions, m being the number of buckets.
    """

    hash: str = HASH
    fixed_block = False

    @property
    @abstractmethod
    def inner(self) -> FrequencyOracle:
        """The oracle over the buckets."""

    @abstractmethod
    def _table(self, reports: Reports, weights: Ints | None) -> Ints:
        """What the sketch has for every function and bucket, each report counted as its weight."""

    @abstractmethod
    def _supports(self, table: Ints, candidates: Words, total: int) -> Ints:
        """The support of candidates, from a table of this total weight."""

    def _resolve(self) -> None:
        self._one_of("hash", [HASH])
        self._resolve_domain()
        self._resolve_functions()
        if self.buckets == 0:
            self._set("buckets", _BUCKETS)
        self._integer("buckets", 2, MOST_BUCKETS)

    @cached_property
    def rates(self) -> tuple[Fraction, Fraction]:
        p, q = self.inner.rates
        return p, (p + (self.buckets - 1) * q) / self.buckets

    def pair_covariance(self) -> tuple[float, float] | None:
        return None  # the sketch tells it: `TableNoise`

    def ratio(self) -> Fraction:
        return self.inner.ratio()

    def blanket(self) -> Blanket | None:
        return self.inner.blanket()  # two values that collide prefer the same reports: more than any two buckets do

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (self._function_column, *self.inner.columns)

    def _randomize(self, codes: Array, rng: Random) -> dict[str, Array]:
        function = rng.uint64(codes.size) & np.uint64(self.functions - 1)
        return {"function": function, **self.inner._randomize(self._buckets(function, codes), rng)}

    def _buckets(self, functions: Words, codes: Array) -> Ints:
        return bucket(hash32(spread_seeds(functions.astype(np.uint64)), codes), self.buckets)

    def _inner_reports(self, reports: Reports) -> Reports:
        return self.inner._reports({**reports.public, **reports.private})

    def prob(self, reports: Reports, values: Values) -> NDArray[np.object_]:
        return self._of_buckets(self.inner.prob(self._inner_reports(reports), self._every_bucket), reports, values)

    def log_prob(self, reports: Reports, values: Values) -> Floats:
        return self._of_buckets(self.inner.log_prob(self._inner_reports(reports), self._every_bucket), reports, values)

    @property
    def _every_bucket(self) -> Ints:
        return np.arange(self.buckets)

    def _of_buckets(self, table: Array, reports: Reports, values: Values) -> Array:
        """From a number for every report and bucket, that of each report (row) and value's (column) bucket."""
        codes = self.encode(values).astype(np.uint64)
        own = self._buckets(reports.public["function"][:, None], codes[None, :])
        return np.take_along_axis(table, own, axis=1)

    def outputs(self, public: Columns | None = None) -> Reports | None:
        every = self.inner.outputs()
        return None if every is None else self._with_public(public, every.private)

    def _fold(self, reports: Reports) -> Ints:
        return self._table(reports, None)

    def _support_counts(self, sketch: Sketch) -> Ints:
        return self._supports(sketch.counts, np.arange(self.size, dtype=np.uint64), sketch.n)

    def _support(self, reports: Reports, candidates: Words, weights: Ints | None) -> Ints:
        total = len(reports) if weights is None else int(weights.sum())
        return self._supports(self._table(reports, weights), candidates, total)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=5, functions=64, buckets=8)
        yield cls(epsilon=2.0, domain=300)


@dataclass(frozen=True, kw_only=True)
class CMS(CountMean):
    """Shares of a large domain, by Apple's count mean sketch: a hash function, and a noisy bit for every bucket.

    The bits are a symmetric unary encoding of the bucket (`SUE`). Variance of a share, without confusion
    (`FunctionList`): (m/(m-1))^2 times that of `SUE`, and a little more for collisions; m is the number of buckets.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    functions, buckets
        How many hash functions, a power of two, and how many buckets; 0 chooses 256.
    width, one, zero
        Bits of the thresholds, and the thresholds, as in `SUE`; 0 chooses them.
    hash
        The name of the function that a number selects: "product32".

    Example:
        >>> cms = CMS(epsilon=4.0, domain=1024)
        >>> reports = cms.randomize([0] * 7000 + [2] * 3000, Random(seed=1))
        >>> cms.estimate(cms.accumulate(reports)).top(2).tolist(), cms.report_bytes
        ([0, 2], 34)

    References
    ----------
    Apple Differential Privacy Team, 2017.
    """

    width: int = 0
    one: int = 0
    zero: int = 0
    server_work: ClassVar[str] = "the bits of m/8 bytes added up, then d hashes once a function"

    def _resolve(self) -> None:
        super()._resolve()
        for field in ("width", "one", "zero"):
            self._set(field, getattr(self.inner, field))

    @cached_property
    def inner(self) -> SUE:
        shape = {"width": self.width, "one": self.one, "zero": self.zero}
        return SUE(epsilon=self.epsilon, domain=Ordinal(self.buckets), **shape)

    def server_operations(self, n: int) -> float:
        return self.inner.server_operations(n) + super().server_operations(n)

    def _table(self, reports: Reports, weights: Ints | None) -> Ints:
        table = np.zeros(self.sketch_shape, dtype=np.int64)
        order = np.argsort(reports.public["function"], kind="stable")
        functions, starts = np.unique(reports.public["function"][order], return_index=True)
        inner = self._inner_reports(reports)
        for function, rows in zip(functions, np.split(order, starts[1:]), strict=True):
            own = None if weights is None else weights[rows]
            table[function] = self.inner._support(inner[rows], self._every_bucket.astype(np.uint64), own)
        return table

    def _supports(self, table: Ints, candidates: Words, total: int) -> Ints:
        return self._table_supports(table, candidates)

    def _table_noise(self, sketch: Sketch) -> tuple[Floats, tuple[float, float], tuple[float, float]]:
        p, q = (float(rate) for rate in self.inner.rates)
        rest = 1 / self.buckets
        likely = (sketch.counts / sketch.n - q / self.functions) / (p - q)
        return likely, (1.0, rest), (q * (1 - q) / ((p - q) * (1 - rest)) ** 2, 0.0)


@dataclass(frozen=True, kw_only=True)
class HCMS(CountMean):
    """Shares of a large domain in one bit, by Apple's Hadamard count mean sketch: a hash function, a row and a sign.

    The sign is a Hadamard response (`Hadamard`) on the bucket. Variance of a share, without confusion
    (`FunctionList`): (m/(m-1))^2 times that of `Hadamard`; m is the number of buckets. The server keeps a table of
    functions by buckets, whatever the size of the domain.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    functions, buckets
        How many hash functions, and how many buckets: powers of two; 0 buckets are 256.
    other
        Of 2^64, the share of the false sign; 0 chooses the smallest that epsilon allows.
    hash
        The name of the function that a number selects: "product32".

    Example:
        >>> hcms = HCMS(epsilon=4.0, domain=1024)
        >>> reports = hcms.randomize([0] * 7000 + [2] * 3000, Random(seed=1))
        >>> hcms.estimate(hcms.accumulate(reports)).top(2).tolist(), hcms.report_bytes
        ([0, 2], 4)

    References
    ----------
    Apple Differential Privacy Team, 2017.
    """

    other: int = 0
    server_work: ClassVar[str] = "one increment, then a transform and d hashes once a function"

    def _resolve(self) -> None:
        super()._resolve()
        if self.buckets & (self.buckets - 1):
            raise InvalidValue("buckets", self.buckets, "a power of two")
        self._set("other", self.inner.other)

    @cached_property
    def inner(self) -> Hadamard:
        return Hadamard(epsilon=self.epsilon, domain=Ordinal(self.buckets), other=self.other)

    def server_operations(self, n: int) -> float:
        return self.functions * self.inner.server_operations(n) + super().server_operations(n) - self.functions

    def _table(self, reports: Reports, weights: Ints | None) -> Ints:
        """The sums of the signs of every function and row."""
        cell = reports.public["function"].astype(np.int64) * self.buckets + reports.public["row"]
        signs = 1 - 2 * reports.private["minus"].astype(np.int64)
        table = np.zeros(self.functions * self.buckets, dtype=np.int64)
        np.add.at(table, cell, signs if weights is None else signs * weights)
        return table.reshape(self.sketch_shape)

    def _supports(self, table: Ints, candidates: Words, total: int) -> Ints:
        return (self._table_supports(_transformed(table), candidates) + total) // 2

    def _table_noise(self, sketch: Sketch) -> tuple[Floats, tuple[float, float], tuple[float, float]]:
        gap, rest = float(self.inner.rates[0]) - 0.5, 1 / self.buckets
        likely = _transformed(sketch.counts) / (2 * gap * sketch.n)
        return likely, (1.0, rest), (1 / (2 * gap * (1 - rest)) ** 2, 1 / (1 - rest) ** 2)


def _transformed(table: Ints) -> Ints:
    """Each row's Walsh-Hadamard transform."""
    from hubbub.kernels.estimators import walsh_hadamard

    return np.array([walsh_hadamard(row) for row in table])
