"""The kept reports of a table question as a table for SQL queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.frequency.measured import MEASURES, Measured
from hubbub.protocols.ranges.hierarchy import IntervalMechanism, LevelReports, RangeReports
from hubbub.protocols.steady import STEP
from hubbub.service.kept.archive import Archive
from hubbub.service.kept.raw_reports import reports_to
from hubbub.service.store.base import ClosedAsk
from hubbub.service.store.sql import Store

if TYPE_CHECKING:
    from hubbub.query.memory_table import MemoryTable

MOST_REPORTS = 4_000_000
"""The most reports that are read for one query; each takes some ten bytes of memory a column."""

Floats = NDArray[np.float64]


def asks_of_steps(asks: list[ClosedAsk], first: int | None, last: int | None) -> list[ClosedAsk]:
    """The asks of steps from `first` to `last`; of the latest step alone, if both are None."""
    if first is None and last is None:
        latest = max((ask.step for ask in asks), default=0)
        return [ask for ask in asks if ask.step == latest]
    low, high = first if first is not None else -1, last if last is not None else 1 << 62
    return [ask for ask in asks if low <= ask.step <= high]


def kept_table(
    store: Store, archive: Archive | None, collection: Collection, question: str, asks: list[ClosedAsk]
) -> MemoryTable:
    """A table of the reports to some closed asks, each with its step. Too many reports are refused.

    Example:
        >>> from hubbub.service.collector.example import example_collector
        >>> collector = example_collector()
        >>> kept_table(collector.store, None, collector.collections["themes"], "popular", [])
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: question: got 'popular'; allowed: a question of kind table
    """
    schema = collection.questions[question].table(collection.setting(question))
    if schema is None:
        raise InvalidValue("question", question, "a question of kind table")
    from hubbub.query.memory_table import MemoryTable
    from hubbub.query.sandbox import check_time

    mechanism = schema.mechanism
    assert isinstance(mechanism, IntervalMechanism)
    batches_of: dict[int, list[tuple[int, Reports]]] = {}
    steps: list[NDArray[np.int64]] = []
    numbers: list[Floats] = []
    n = 0
    for ask in asks:
        for reports in reports_to(store, archive, ask.key):
            check_time()
            batches_of.setdefault(ask.part, []).append((n, reports))
            steps.append(np.full(len(reports), ask.step))
            if MEASURES in reports.public:
                numbers.append(Measured.numbers(reports))
            n += len(reports)
            if n > MOST_REPORTS:
                raise InvalidValue("steps", f"more than {MOST_REPORTS:,} reports", "fewer steps")
    levels = {}
    for part, batches in batches_of.items():
        level = mechanism.levels[part]
        oracle = mechanism.oracle(level)
        rows = np.concatenate([np.arange(start, start + len(batch)) for start, batch in batches])
        # The table's oracle for the level has the same codes as the asked mechanism: reports change their spec id only.
        renamed = [Reports(oracle.spec_id, public=_own(batch), private=batch.private) for _, batch in batches]
        levels[level] = LevelReports(rows, Reports.concat(renamed))
    public: dict[str, Any] = {STEP: np.concatenate(steps) if steps else np.zeros(0, dtype=np.int64)}
    names = [column.name for column in schema.public if column.name != STEP]
    measures = np.concatenate(numbers) if numbers else np.zeros((0, len(names)))
    public |= {name: _or_null(measures[:, index]) for index, name in enumerate(names)}
    return MemoryTable(schema, RangeReports(n, levels), public)


def _own(reports: Reports) -> dict[str, Any]:
    """The public columns of the oracle, without the measures."""
    return {name: column for name, column in reports.public.items() if name != MEASURES}


def _or_null(numbers: Floats) -> Any:
    import pyarrow as pa

    return pa.array(numbers, mask=np.isnan(numbers))
