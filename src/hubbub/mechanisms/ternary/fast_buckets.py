"""Collision and CoCo with a public list of few hash functions: the server hashes once a function, not once a report."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np

from hubbub.core.domain.base import Values
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.core.hashing import bucket, hash32, spread_seeds
from hubbub.core.reports import Array, Columns, Ints, Reports, Sketch, Words
from hubbub.mechanisms.base import Cases, ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.ternary.coco import CoCo
from hubbub.mechanisms.ternary.collision import BucketReports, Collision
from hubbub.mechanisms.ternary.ternary import Quantity
from hubbub.random.source import Random

_CHUNK = 1 << 20  # hashes at once


@dataclass(frozen=True, kw_only=True)
class FastBuckets(BucketReports):
    """Bucket reports whose hash function is one of `functions`, drawn anew for each report.

    The server keeps how often each (function, bucket) was reported, t numbers a function, and hashes the 2 d symbols
    once a function: n + 2 d `functions` operations instead of 2 d n. Privacy is that of the mechanism itself: the
    function is drawn without looking at the value.

    Two symbols that share a bucket under more functions than expected are confused, a bias that no number of reports
    removes. Over all lists of functions its mean square at a position is at most, with g how much likelier a bucket is
    that a symbol of the vector falls in, in units of p_true - p_reverse, and f_j the share of people who hold
    something at position j,

        2 g^2 (sum of f_j^2) / (functions t)

    and attains it where all who hold something at a position hold the same sign. The stated variance includes that,
    with the sum estimated from the same reports. So 95% of all entries lie in their intervals; but one entry may lie
    outside again and again.
    """

    functions: int = 1024
    bias: ClassVar[Literal["none", "heuristic"]] = "heuristic"

    @property
    @abstractmethod
    def plain(self) -> BucketReports:
        """The same mechanism with a hash function for each report."""

    @property
    @abstractmethod
    def _difference(self) -> float:
        """How much likelier a bucket is that a symbol of the vector falls in, in units of p_true - p_reverse."""

    def _resolve_functions(self) -> None:
        self._integer("functions", 2, 1 << 20)
        if self.functions & (self.functions - 1):
            raise InvalidValue("functions", self.functions, "a power of two")

    def _without_list(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "functions"}

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "function", unsigned(self.functions), below=self.functions),
            ColumnSpec("private", "bucket", unsigned(self.buckets), below=self.buckets),
        )

    def _respond(self, symbols: Ints, draws: Words, rng: Random) -> dict[str, Array]:
        function = draws[:, 0] & np.uint64(self.functions - 1)
        seeded = np.column_stack([spread_seeds(function), draws[:, 1:]])
        return {"function": function, "bucket": self.plain._respond(symbols, seeded, rng)["bucket"]}

    def _with_seeds(self, reports: Reports) -> Reports:
        """The reports as those of the plain mechanism."""
        seed = spread_seeds(reports.public["function"].astype(np.uint64))
        return self.plain._reports({"seed": seed, "bucket": reports.private["bucket"]})

    def _cases(self, reports: Reports, values: Values) -> Cases:
        return self.plain._cases(self._with_seeds(reports), values)

    def outputs(self, public: Columns | None = None) -> Reports:
        return self._with_public(public, {"bucket": np.arange(self.buckets)})

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        return (self.functions, self.buckets)

    def _fold(self, reports: Reports) -> Ints:
        cell = reports.public["function"].astype(np.int64) * self.buckets + reports.private["bucket"]
        return np.bincount(cell, minlength=self.functions * self.buckets).reshape(self.sketch_shape)

    def supports(self, sketch: Sketch) -> Ints:
        """How many reports support +1 (first row) and -1 (second row) at every position."""
        counts = np.zeros((2, self.dimension), dtype=np.int64)
        seeds = spread_seeds(np.arange(self.functions, dtype=np.uint64))[:, None]
        step = max(1, _CHUNK // self.dimension)
        for start in range(0, self.functions, step):
            block = sketch.counts[start : start + step]
            for sign, cells in enumerate(self._cells(seeds[start : start + step])):
                counts[sign] += np.take_along_axis(block, cells, axis=1).sum(axis=0)
        return counts

    @abstractmethod
    def _cells(self, seeds: Words) -> tuple[Ints, Ints]:
        """The buckets of +1 and of -1 at every position (column), under each function (row)."""

    def estimate(
        self, sketch: Sketch, candidates: Values | None = None, *, of: Quantity = "mean", signs: bool = False
    ) -> Estimate:
        self._check_sketch(sketch, self.spec_id, self.sketch_shape)
        counts = self.supports(sketch)
        if not (counts.min() >= 0 and int(sketch.counts.sum()) == sketch.n and sketch.counts.min(initial=0) >= 0):
            raise InvalidValue("counts", sketch.n, f"{sketch.n} reports in all")
        plain = Sketch(self.plain.spec_id, sketch.n, counts, sketch.fakes)
        estimate = self.plain.estimate(plain, candidates, of=of, signs=signs)
        if of == "conditional":
            return replace(estimate, bias="heuristic")
        share = self.plain.estimate(plain, of="frequency")
        squares = float(np.clip((share.value**2 - share.variance).sum(), 0.0, self.sparsity))
        variance = estimate.variance + self.confusion * squares
        return replace(estimate, variance=variance, bias="heuristic", noise=None)

    @property
    def confusion(self) -> float:
        """The mean square of the bias, divided by the sum of the squared shares of all symbols."""
        return 2 * self._difference**2 / (self.functions * self.buckets)


@dataclass(frozen=True, kw_only=True)
class FastCollision(FastBuckets, Collision):
    """Collision with a public list of hash functions (`FastBuckets`), for servers with many reports.

    Example:
        >>> fast = FastCollision(epsilon=2.0, dimension=16, sparsity=2)
        >>> reports = fast.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> fast.estimate(fast.accumulate(reports)).value.round(1)[[3, 5]].tolist()
        [1.0, -1.0]

    References
    ----------
    S. Wang, Li, Li et al., 2023, section 5, for the reports; that functions are from a list is ours.
    """

    def _resolve(self) -> None:
        self._resolve_functions()
        Collision._resolve(self)

    @cached_property
    def plain(self) -> Collision:
        return Collision(**self._without_list())  # type: ignore[arg-type]

    @property
    def _difference(self) -> float:
        true = float(self.rates.true)
        rest = (1 - self.sparsity * true) / (self.buckets - self.sparsity)
        return (true - rest) / self.gap("mean")

    def _cells(self, seeds: Words) -> tuple[Ints, Ints]:
        symbols = 2 * np.arange(self.dimension, dtype=np.uint64)
        plus, minus = (bucket(hash32(seeds, symbols + np.uint64(sign)), self.buckets) for sign in (0, 1))
        return plus, minus

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2, functions=64)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)


@dataclass(frozen=True, kw_only=True)
class FastCoCo(FastBuckets, CoCo):
    """CoCo with a public list of hash functions (`FastBuckets`), for servers with many reports.

    Example:
        >>> fast = FastCoCo(epsilon=2.0, dimension=16, sparsity=2)
        >>> reports = fast.randomize([{3: 1, 5: -1}] * 20_000, Random(seed=1))
        >>> fast.estimate(fast.accumulate(reports)).value.round(1)[[3, 5]].tolist()
        [1.0, -1.0]

    References
    ----------
    S. Wang, Li, Li et al., 2023, section 7, for the reports; that functions are from a list is ours.
    """

    def _resolve(self) -> None:
        self._resolve_functions()
        CoCo._resolve(self)

    @cached_property
    def plain(self) -> CoCo:
        return CoCo(**self._without_list())  # type: ignore[arg-type]

    @property
    def _difference(self) -> float:
        return (self.high - self.low) / 2**64 / self.gap("mean")

    def _cells(self, seeds: Words) -> tuple[Ints, Ints]:
        plus = bucket(hash32(seeds, np.arange(self.dimension, dtype=np.uint64)), self.buckets)
        return plus, plus ^ 1

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, dimension=3, sparsity=2, functions=64)
        yield cls(epsilon=1.0, dimension=40, sparsity=4)
