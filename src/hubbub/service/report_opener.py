"""Reads reports from their bytes, and refuses those that no client of the mechanism can have made.

All reports of a mechanism have the same size, with columns at the same offsets: many are read at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.relay_batch import Batch
from hubbub.core.errors import HubbubError
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ReportFormat


class ReportOpener:
    """Reads the reports of one mechanism."""

    def __init__(self, mechanism: ReportFormat) -> None:
        self._mechanism = mechanism
        self._size = mechanism.report_bytes
        self._places = {}
        at = 0
        for column in mechanism.columns:
            size = np.dtype(column.dtype).itemsize * math.prod(column.shape)
            self._places[column.name] = slice(at, at + size)
            at += size

    def open_batch(self, batch: Batch) -> Reports | None:
        """The reports of a batch; None if any of them cannot come from a client of the mechanism."""
        try:
            reports = batch.read(self._mechanism)
        except HubbubError:
            return None
        return reports if self._passes(reports) else None

    def open_each(self, reports: Sequence[bytes]) -> tuple[Reports, NDArray[np.bool_]]:
        """The reports that can come from a client of the mechanism, as one batch, and which of `reports` they are."""
        readable = np.fromiter((len(report) == self._size for report in reports), dtype=bool, count=len(reports))
        joined = b"".join(report for report in reports if len(report) == self._size)
        batch = self._batch(np.frombuffer(joined, dtype=np.uint8).reshape(-1, self._size))
        allowed = self._allowed(batch)
        readable[readable] = allowed
        return batch[allowed], readable

    def _batch(self, rows: NDArray[np.uint8]) -> Reports:
        parts: dict[str, dict[str, NDArray[Any]]] = {"public": {}, "private": {}}
        for column in self._mechanism.columns:
            data = np.ascontiguousarray(rows[:, self._places[column.name]])
            little = np.dtype(column.dtype).newbyteorder("<")
            array = data.view(little).reshape(len(rows), *column.shape)
            parts[column.part][column.name] = array.astype(column.dtype, copy=False)
        return Reports(self._mechanism.spec_id, public=parts["public"], private=parts["private"])

    def _allowed(self, batch: Reports) -> NDArray[np.bool_]:
        if self._passes(batch):
            return np.ones(len(batch), dtype=bool)
        return np.fromiter((self._passes(batch[row : row + 1]) for row in range(len(batch))), dtype=bool)

    def _passes(self, batch: Reports) -> bool:
        try:
            self._mechanism.check(batch)
        except HubbubError:
            return False
        return True
