"""What Collision and CoCo share: a report is a hash seed and a bucket."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core.hashing import BEST_HASH, FIRST_HASH, HASHES
from hubbub.core.reports import Reports
from hubbub.core.spec import added
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.oracle import unsigned
from hubbub.mechanisms.ternary.ternary import TernaryMechanism
from hubbub.mechanisms.ternary.weights import chance

if TYPE_CHECKING:
    from hubbub.core.blanket import Blanket

MOST_BUCKETS = 1 << 16
_BLOCK = 1 << 18  # pairs of a report and a value looked at together


@dataclass(frozen=True, kw_only=True)
class BucketReports(TernaryMechanism):
    """A report is a random seed, which selects a hash function, and one of `buckets` buckets.

    The buckets that the vector's entries hash to are more likely than the others. So the device must know the whole
    vector before it reports.
    """

    whole_only: ClassVar[bool] = True
    key_value: ClassVar[Literal["no", "named", "chosen"]] = "named"
    buckets: int = 0
    hash: str = added(FIRST_HASH, BEST_HASH)

    @property
    @abstractmethod
    def _least_weight(self) -> int:
        """The smallest weight, of 2^64, that a bucket has under any vector."""

    @abstractmethod
    def _case(
        self, seeds: NDArray[np.uint64], buckets: NDArray[np.int64], symbols: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """A number for the probability of each row's report (its seed and bucket) given the row's symbols."""

    def _resolve_hash(self) -> None:
        self._one_of("hash", HASHES)
        self._resolve_shape()

    def blanket(self) -> Blanket:
        from hubbub.core.blanket import Blanket  # a device amplifies nothing

        return Blanket(chance(self.buckets * self._least_weight), self.ratio())

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return (
            ColumnSpec("public", "seed", "u8"),
            ColumnSpec("private", "bucket", unsigned(self.buckets), below=self.buckets),
        )

    def outputs(self, public: Mapping[str, NDArray[Any]] | None = None) -> Reports:
        return self._beside(public, {"bucket": np.arange(self.buckets)})

    def _case_table(self, reports: Reports, values: Any) -> NDArray[np.int64]:
        """`_case` of every report (row) and value (column), some values at a time: memory stays small."""
        symbols, n = self.symbols(values), len(reports)
        table = np.empty((n, len(symbols)), dtype=np.int64)
        step = max(1, _BLOCK // max(1, n))
        for start in range(0, len(symbols), step):
            block = symbols[start : start + step]
            seeds = np.repeat(reports.public["seed"], len(block))
            buckets = np.repeat(reports.private["bucket"].astype(np.int64), len(block))
            table[:, start : start + step] = self._case(seeds, buckets, np.tile(block, (n, 1))).reshape(n, -1)
        return table
