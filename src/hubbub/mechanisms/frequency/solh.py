"""Shuffler-optimal local hashing: many buckets, and a report that is one number below 2^64."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.local_hashing import LocalHashing, best_buckets
from hubbub.mechanisms.frequency.oracle import unsigned


@dataclass(frozen=True, kw_only=True)
class SOLH(LocalHashing):
    """Shares of a large domain, for reports that are shuffled.

    Local hashing with more buckets than `OLH` would take: once reports are shuffled, a larger local epsilon costs
    little, and then more buckets serve better (`choose_shuffled` finds how many). A report has 64 bits, of which the
    bucket takes as many as it needs and the seed the rest. So every number below 2^64 is a report: a fake report is a
    uniform number, and so is each secret share of a report.

    Parameters
    ----------
    epsilon
        What one report may spend, of whoever sees it before it is shuffled.
    domain
        A size, a list of names, or a Domain.
    buckets, other
        How many buckets, a power of two, and of 2^64 the share of each false one; 0 chooses them.
    hash
        The name of the function that a seed selects; "product32", or "mix32", which a spec without one means.

    Example:
        >>> from hubbub import Random
        >>> solh = SOLH(epsilon=3.0, domain=1024, buckets=64)
        >>> reports = solh.randomize([0] * 7000 + [2] * 3000, Random(seed=1))
        >>> solh.estimate(solh.accumulate(reports)).top(2).tolist()
        [0, 2]
        >>> numbers = solh.numbers(reports)
        >>> numbers.dtype, solh.accumulate(solh.reports(numbers)) == solh.accumulate(reports)
        (dtype('uint64'), True)

    References
    ----------
    Dissertation, section 9.3.2. That all 2^64 numbers are reports is ours: else shares of fakes would not be uniform.
    """

    def _default_buckets(self) -> int:
        return 1 << round(math.log2(best_buckets(self.epsilon)))

    def _resolve(self) -> None:
        super()._resolve()
        if self.buckets & (self.buckets - 1):
            raise InvalidValue("buckets", self.buckets, "a power of two")

    @property
    def bucket_bits(self) -> int:
        """How many bits of a report say the bucket."""
        return self.buckets.bit_length() - 1

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "seed", "u8", below=1 << 64 - self.bucket_bits),
            ColumnSpec("private", "bucket", unsigned(self.buckets), below=self.buckets),
        )

    def _drawn_seeds(self, draws: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return draws >> np.uint64(self.bucket_bits)

    def numbers(self, reports: Reports) -> NDArray[np.uint64]:
        """Each report as a number below 2^64."""
        self.check(reports)
        return reports.public["seed"] << np.uint64(self.bucket_bits) | reports.private["bucket"].astype(np.uint64)

    def reports(self, numbers: NDArray[Any]) -> Reports:
        """The reports of numbers; every number is one."""
        if numbers.dtype != np.uint64 or numbers.ndim != 1:
            raise DecodeError("numbers", f"{numbers.dtype}{list(numbers.shape)}", "a row of unsigned 64-bit numbers")
        seed, bucket = numbers >> np.uint64(self.bucket_bits), numbers & np.uint64(self.buckets - 1)
        return self._reports({"seed": seed, "bucket": bucket})

    @classmethod
    def examples(cls) -> Iterator[Self]:
        yield cls(epsilon=1.0, domain=2)
        yield cls(epsilon=3.0, domain=["a", "b", "c", "d", "e"], buckets=16)
        yield cls(epsilon=1.0, domain=300)
