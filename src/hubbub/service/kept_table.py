"""A table question's kept reports as a table that SQL can be asked of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.measured import MEASURES, Measured
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, LevelReports, RangeReports
from hubbub.protocols.table_stream import STEP
from hubbub.service.archive import Archive
from hubbub.service.raw_reports import reports_to
from hubbub.service.store.base import AskKey
from hubbub.service.store.sql import Store

if TYPE_CHECKING:
    from hubbub.query.memory_table import MemoryTable

MOST_REPORTS = 4_000_000
"""So many reports are read for one query: their columns are some ten bytes each."""

Floats = NDArray[np.float64]
Part = tuple[str, int, int]
"""An ask, its step and its part."""


def closed_steps(parts: list[Part], first: int | None, last: int | None) -> list[Part]:
    """The asks of some steps; of the latest alone, where none are named.

    Example:
        >>> closed_steps([("a", 7, 0), ("b", 8, 0)], None, None), closed_steps([("a", 7, 0), ("b", 8, 0)], 7, None)
        ([('b', 8, 0)], [('a', 7, 0), ('b', 8, 0)])
    """
    if first is None and last is None:
        newest = max((step for _, step, _ in parts), default=0)
        return [part for part in parts if part[1] == newest]
    low, high = first if first is not None else -1, last if last is not None else 1 << 62
    return [part for part in parts if low <= part[1] <= high]


def kept_table(
    store: Store, archive: Archive | None, collection: Collection, question: str, parts: list[Part]
) -> MemoryTable:
    """The reports of some closed asks, each with its step; refused where they are too many.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> one = example_collector()
        >>> kept_table(one.store, None, one.collections["themes"], "popular", [])
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: question: got 'popular'; allowed: a question of kind table
    """
    schema = collection.questions[question].table(collection.setting(question))
    if schema is None:
        raise InvalidValue("question", question, "a question of kind table")
    from hubbub.query.memory_table import MemoryTable
    from hubbub.query.time_limit import check_time

    mechanism = schema.mechanism
    assert isinstance(mechanism, IntervalMechanism)
    found: dict[int, list[tuple[int, Reports]]] = {}
    steps: list[NDArray[np.int64]] = []
    numbers: list[Floats] = []
    n = 0
    for ask, step, part in parts:
        for reports in reports_to(store, archive, AskKey(collection.collection_id, ask)):
            check_time()
            found.setdefault(part, []).append((n, reports))
            steps.append(np.full(len(reports), step))
            if MEASURES in reports.public:
                numbers.append(Measured.numbers(reports))
            n += len(reports)
            if n > MOST_REPORTS:
                raise InvalidValue("steps", f"more than {MOST_REPORTS:,} reports", "fewer steps")
    levels = {}
    for part, batches in found.items():
        level = mechanism.levels[part]
        oracle = mechanism.oracle(level)
        rows = np.concatenate([np.arange(start, start + len(batch)) for start, batch in batches])
        # The same report under the id of the oracle that the table has for the level, whose codes are the same.
        same = [Reports(oracle.spec_id, public=_own(batch), private=batch.private) for _, batch in batches]
        levels[level] = LevelReports(rows, Reports.concat(same))
    public: dict[str, Any] = {STEP: np.concatenate(steps) if steps else np.zeros(0, dtype=np.int64)}
    names = [column.name for column in schema.public if column.name != STEP]
    beside = np.concatenate(numbers) if numbers else np.zeros((0, len(names)))
    public |= {name: _or_null(beside[:, place]) for place, name in enumerate(names)}
    return MemoryTable(schema, RangeReports(n, levels), public)


def _own(reports: Reports) -> dict[str, Any]:
    """The public columns of the oracle itself."""
    return {name: column for name, column in reports.public.items() if name != MEASURES}


def _or_null(numbers: Floats) -> Any:
    import pyarrow as pa

    return pa.array(numbers, mask=np.isnan(numbers))
