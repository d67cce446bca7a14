"""How many reports support a cell: counted when a query first needs it, then kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.protocols.ranges.dimension import Codes

Ints = NDArray[np.int64]
_NO_CELLS: Codes = np.zeros(0, dtype=np.int64)
MOST_KEPT = 1 << 24
"""How many cells' supports are kept: with their numbers, 24 bytes each."""


class Supports:
    """The supports of cells by level and measure; those that were not used for longest are forgotten first.

    Example:
        >>> from hubbub import GRR, Random
        >>> grr = GRR(epsilon=30.0, domain=4)
        >>> reports = grr.randomize([0, 1, 1, 3], Random(seed=1))
        >>> supports = Supports()
        >>> supports.of((1,), None, np.array([3, 1]), grr, reports)[0].tolist(), supports.counted
        ([[1, 2], [1, 2]], 2)
        >>> supports.of((1,), None, np.array([1, 2]), grr, reports)[0].tolist(), supports.counted
        ([[2, 0], [2, 0]], 3)
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[object, tuple[Codes, Ints, Ints]] = OrderedDict()
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
        """The weight, and the squared weight, of the reports of a level that support each of some cells; and of all."""
        key = level, measure
        known, counts, totals = self._kept.pop(key, (_NO_CELLS, np.zeros((2, 0), dtype=np.int64), _NO_CELLS))
        missing = np.setdiff1d(cells, known)
        if missing.size:
            counted, totals = _count(oracle, reports, missing, None if weights is None else weights())
            self.counted += missing.size
            order = np.argsort(np.concatenate([known, missing]), kind="stable")
            known = np.concatenate([known, missing])[order]
            counts = np.concatenate([counts, counted], axis=1)[:, order]
        self._kept[key] = known, counts, totals
        result = counts[:, np.searchsorted(known, cells)]
        self._forget()
        return result, totals

    def drop(self, measure: str) -> None:
        """Forget what was counted of a measure."""
        for key in [key for key in self._kept if isinstance(key, tuple) and key[1] == measure]:
            del self._kept[key]

    def _forget(self) -> None:
        size = sum(known.size for known, _, _ in self._kept.values())
        while size > self._most:
            _, (known, _, _) = self._kept.popitem(last=False)
            size -= known.size


def _count(oracle: FrequencyOracle, reports: Reports, cells: Codes, weights: Ints | None) -> tuple[Ints, Ints]:
    if weights is None:
        counts = oracle.supports(reports, cells.astype(np.uint64))
        return np.array([counts, counts]), np.full(2, len(reports))
    counts = oracle.weighted_supports(reports, cells.astype(np.uint64), weights)
    return counts[:, :-1], counts[:, -1]
