"""Counts among kept reports: made where the reports are, stored, and read back in place of them."""

from __future__ import annotations

import json

import numpy as np

from hubbub.backends import LOCAL
from hubbub.protocols.ask import Count, Counted
from hubbub.service.archive import Archive
from hubbub.service.raw_reports import reports_to
from hubbub.service.store.base import AskKey, CountRow, EraRow, Store

__all__ = ["make_count", "read_count", "same_count"]


def make_count(
    store: Store, archive: Archive | None, count: Count, key: AskKey, era: EraRow, *, step: int, number: int
) -> CountRow:
    """Count the supports of the candidates among the reports to an ask, some reports at a time."""
    sketch = LOCAL.support(reports_to(store, archive, key), count.oracle, count.candidates)
    support = json.dumps(sketch.counts.tolist())
    return CountRow(*era.key, step, number, key.ask, json.dumps(count.candidates), sketch.n, support)


def read_count(row: CountRow) -> Counted:
    """What a stored count says.

    Example:
        >>> read_count(CountRow("0" * 32, "q", 0, 3, 0, "1" * 32, "[7, 8]", 10, "[4, 6]")).support.tolist()
        [4, 6]
    """
    return Counted(row.n, np.array(json.loads(row.support), dtype=np.int64))


def same_count(row: CountRow, count: Count) -> bool:
    """Whether a stored count is of these candidates."""
    return bool(json.loads(row.candidates) == list(count.candidates))
