"""Reports to a table question as a table for SQL queries, wherever they were kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Floats, Ints, Reports
from hubbub.mechanisms.frequency.bundle import bundled
from hubbub.mechanisms.frequency.measured import MEASURES, Measured
from hubbub.protocols.ranges.hierarchy import LevelReports
from hubbub.protocols.steady import STEP
from hubbub.questions.collection import Collection

if TYPE_CHECKING:
    from hubbub.query.memory_table import MemoryTable

MOST_REPORTS = 4_000_000
"""The most reports that are read for one query; each takes some ten bytes of memory a column."""


def table_of_reports(collection: Collection, question: str, batches: Iterable[tuple[int, int, Reports]]) -> MemoryTable:
    """A table of reports, each batch with the step and part that it answers. Too many reports are refused."""
    schema = collection.questions[question].table()
    if schema is None:
        raise InvalidValue("question", question, "a question of kind table")
    from hubbub.query.memory_table import MemoryTable
    from hubbub.query.schema import TableReports

    batches_of: dict[int, list[tuple[int, Reports]]] = {}
    steps: list[Ints] = []
    numbers: list[Floats] = []
    n = 0
    for step, part, reports in batches:
        batches_of.setdefault(part, []).append((n, reports))
        steps.append(np.full(len(reports), step))
        if MEASURES in reports.public:
            numbers.append(Measured.numbers(reports))
        n += len(reports)
        if n > MOST_REPORTS:
            raise InvalidValue("steps", f"more than {MOST_REPORTS:,} reports", "fewer steps")
    groups = {}
    for part, numbered in batches_of.items():
        rows = np.concatenate([np.arange(start, start + len(batch)) for start, batch in numbered])
        levels = schema.parts[part]
        for place, level in enumerate(levels):
            # The table's oracle has the same codes as the asked mechanism: reports change their spec id only.
            name = schema.oracle(level).spec_id
            own = [_own(batch, place if len(levels) > 1 else None, name) for _, batch in numbered]
            groups[level] = LevelReports(rows, Reports.concat(own))
    public: dict[str, Any] = {STEP: np.concatenate(steps) if steps else np.zeros(0, dtype=np.int64)}
    names = [column.name for column in schema.public if column.name != STEP]
    measures = np.concatenate(numbers) if numbers else np.zeros((0, len(names)))
    public |= {name: _or_null(measures[:, index]) for index, name in enumerate(names)}
    return MemoryTable(schema, TableReports(n, groups), public)


def _own(reports: Reports, place: int | None, spec_id: str) -> Reports:
    """The reports of a bundle on one of its levels, or those on the only level, without the measures."""
    if place is not None:
        return bundled(reports, place, spec_id)
    public = {name: column for name, column in reports.public.items() if name != MEASURES}
    return Reports(spec_id, public=public, private=reports.private)


def _or_null(numbers: Floats) -> Any:
    import pyarrow as pa

    return pa.array(numbers, mask=np.isnan(numbers))
