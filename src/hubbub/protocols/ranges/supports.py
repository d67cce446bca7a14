"""A cache of the supports of cells: counted when a query first needs them, then kept for later queries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Codes

Ints = NDArray[np.int64]
_NO_CELLS: Codes = np.zeros(0, dtype=np.int64)
MOST_KEPT = 1 << 24
"""How many cells the cache holds, at 24 bytes each."""
KEY_CELLS = 32
"""A key and its arrays take as much memory as the supports of so many cells."""


class Supports:
    """The supports of cells by level and measure. The least recently used are dropped first."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._cache: OrderedDict[object, tuple[Codes, NDArray[Any], NDArray[Any]]] = OrderedDict()
        self._size = 0
        self.counted = 0
        """How many cells were counted so far."""

    def of(
        self,
        level: object,
        measure: str | None,
        cells: Codes,
        oracle: FrequencyOracle,
        reports: Reports,
        weights: Callable[[], Ints] | None = None,
    ) -> tuple[Ints, Ints]:
        """The sums of the weights and squared weights of the reports that support each cell, and of all reports."""
        key = level, measure
        missing = self.missing(key, cells)
        if missing.size:
            self.keep(key, missing, *_count(oracle, reports, missing, None if weights is None else weights()))
        result = self.find(key, cells)
        self.forget()
        return result

    def missing(self, key: object, cells: Codes) -> Codes:
        """The cells that are not counted yet, each once."""
        return np.setdiff1d(cells, self._cache[key][0]) if key in self._cache else np.unique(cells)

    def keep(self, key: object, cells: Codes, counts: NDArray[Any], totals: NDArray[Any]) -> None:
        """Add the supports of cells that were missing, a row for each sum, and the totals of all reports."""
        known, before, _ = self._cache.pop(key, (_NO_CELLS, counts[:, :0], totals))
        self.counted += cells.size
        self._size += cells.size + (0 if known.size else KEY_CELLS)
        order = np.argsort(np.concatenate([known, cells]), kind="stable")
        merged = np.concatenate([before, counts], axis=1)[:, order]
        self._cache[key] = np.concatenate([known, cells])[order], merged, totals

    def find(self, key: object, cells: Codes) -> tuple[NDArray[Any], NDArray[Any]]:
        """The supports of cells that were counted, and the totals of all reports."""
        known, counts, totals = self._cache[key]
        self._cache.move_to_end(key)
        return counts[:, np.searchsorted(known, cells)], totals

    def forget(self) -> None:
        """Drop the least recently used supports until the cache is no larger than it may be."""
        while self._size > self._most:
            _, (known, _, _) = self._cache.popitem(last=False)
            self._size -= known.size + KEY_CELLS

    def drop(self, measure: str) -> None:
        """Drop all supports that were counted for a measure."""
        for key in [key for key in self._cache if isinstance(key, tuple) and key[1] == measure]:
            self._size -= self._cache.pop(key)[0].size + KEY_CELLS


def _count(oracle: FrequencyOracle, reports: Reports, cells: Codes, weights: Ints | None) -> tuple[Ints, Ints]:
    if weights is None:
        counts = oracle.supports(reports, cells.astype(np.uint64))
        return np.array([counts, counts]), np.full(2, len(reports))
    counts = oracle.weighted_supports(reports, cells.astype(np.uint64), weights)
    return counts[:, :-1], counts[:, -1]
