"""Reports that are one bit for every value of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.bits import every_row
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.support import SupportMechanism

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

    def outputs(self, public: Mapping[str, NDArray[Any]] | None = None) -> Reports | None:
        return None if self.size > _ENUMERABLE else self._beside(public, {"bits": every_row(self.size)})

    def _support(
        self, reports: Reports, candidates: NDArray[np.uint64], weights: NDArray[np.int64] | None
    ) -> NDArray[np.int64]:
        from hubbub.kernels.columns import column_sums

        return column_sums(reports.private["bits"], weights)[: self.size][candidates]
