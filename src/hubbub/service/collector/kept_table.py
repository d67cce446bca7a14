"""The kept reports of a table question as a table for SQL queries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.questions.collection import Collection
from hubbub.questions.table_reports import table_of_reports
from hubbub.service.kept.archive import Archive, reports_to, unpack
from hubbub.service.store.base import ClosedAsk
from hubbub.service.store.sql import Store

if TYPE_CHECKING:
    from hubbub.query.memory_table import MemoryTable


def step_of(
    collection: Collection, question: str, when: int | str | None, *, last: bool = False, field: str = ""
) -> int | None:
    """The number of a step that is given by it, or by a date or time (UTC) at or after which it begins.

    The last step is the one that begins at or before a time, or on a date. `field` is what an error names.
    """
    if not isinstance(when, str):
        return when
    name = field or ("to" if last else "from")
    try:
        time = datetime.fromisoformat(when)
    except ValueError:
        raise InvalidValue(name, when, "a step, a date such as 2026-01-31, or a time") from None
    seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    study = collection.terms[question].study
    origin, length = (collection.origin, collection.step_seconds) if study is None else (study.start, study.every)
    if not length:  # a study that runs once
        return 0
    if last and len(when) == len("2026-01-31"):
        return math.ceil((seconds + 86400 - origin) / length) - 1
    return (math.floor if last else math.ceil)((seconds - origin) / length)


def asks_of_steps(store: Store, asks: list[ClosedAsk], first: int | None, last: int | None) -> list[ClosedAsk]:
    """The asks of steps from `first` to `last`; if both are None, of the latest step to which there are reports."""
    if first is None and last is None:
        for latest in sorted({ask.step for ask in asks}, reverse=True):
            chosen = [ask for ask in asks if ask.step == latest]
            if any(_has_reports(store, ask) for ask in chosen):
                return chosen
        return []
    low, high = first if first is not None else -1, last if last is not None else 1 << 62
    return [ask for ask in asks if low <= ask.step <= high]


def _has_reports(store: Store, ask: ClosedAsk) -> bool:
    row = store.archive_of(ask.key)
    return row.n > 0 if row is not None else any(len(unpack(segment)) for segment in store.kept_segments(ask.key))


def kept_table(
    store: Store, archive: Archive | None, collection: Collection, question: str, asks: list[ClosedAsk]
) -> MemoryTable:
    """A table of the reports to some closed asks, each with its step. Too many reports are refused.

    Example:
        >>> from hubbub.service.collector.collector import example_collector
        >>> collector = example_collector()
        >>> kept_table(collector.store, None, collector.collections["themes"], "popular", [])
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: question: got 'popular'; allowed: a question of kind table
    """
    from hubbub.query.sandbox import check_time

    def reports() -> Iterator[tuple[int, int, Reports]]:
        for ask in asks:
            for batch in reports_to(store, archive, ask.key):
                check_time()
                yield ask.step, ask.part, batch

    return table_of_reports(collection, question, reports())
