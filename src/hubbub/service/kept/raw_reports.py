"""Single reports that a question keeps: packed at ingest, moved to files, read back, and estimated from."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hubbub.backends import LOCAL
from hubbub.core.errors import DecodeError
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.oracle import SupportMechanism
from hubbub.service.kept.archive import Archive, ReportsMissing
from hubbub.service.store.base import ArchiveRow, AskKey
from hubbub.service.store.sql import Store

_FAST = 1


def pack(reports: Reports) -> bytes:
    """Pack reports into a segment of the store."""
    return zlib.compress(reports.to_bytes(), _FAST)


def unpack(segment: bytes) -> Reports:
    """Read the reports of a segment."""
    try:
        return Reports.from_bytes(zlib.decompress(segment))
    except (zlib.error, DecodeError) as error:
        raise ReportsMissing(f"reports in the store cannot be read: {error}") from error


def move_reports(store: Store, archive: Archive, key: AskKey, question: str, step: int) -> ArchiveRow:
    """Write the segments of a closed ask to a file. The commit of the returned row deletes them from the store.

    Called again, it writes the same file again.
    """
    reports = Reports.concat(map(unpack, store.kept_segments(key)))
    name = archive.name(question, step, *key)
    return ArchiveRow(*key, name, len(reports), archive.write(name, reports))


def kept_reports(
    store: Store, archive: Archive | None, collection: str, question: str, *, first: int, last: int
) -> Iterator[tuple[int, Reports]]:
    """The single reports to a question's closed asks from step `first` to `last`, in chunks, each with its step.

    Every report is read once, whether it is in the store or in a file; `ReportsMissing` if some are lost.
    """
    for ask in store.closed_asks(collection, question, first, last):
        for reports in reports_to(store, archive, ask.key):
            yield ask.step, reports


def reports_to(store: Store, archive: Archive | None, key: AskKey) -> Iterator[Reports]:
    """The single reports that were kept of an ask, in chunks, from the store or from their file.

    `ReportsMissing` if some are lost.
    """
    # Another thread may move them meanwhile, but only from the store into a file.
    segments = [] if store.archive_of(key) else store.kept_segments(key)
    row = None if segments else store.archive_of(key)
    yield from map(unpack, segments)
    if row is None:
        return
    n = 0
    try:
        if archive is None:
            raise ReportsMissing(f"{row.name} is missing: there is no folder of reports")
        archive.check(row)
        for reports in archive.batches(row.name):
            n += len(reports)
            yield reports
        if n != row.n:
            raise ReportsMissing(f"{row.name} holds {n:,} reports instead of {row.n:,}")
    except ReportsMissing:
        if n or store.archive_of(key) is not None:  # else retention has deleted them meanwhile
            raise


def estimate_candidates(
    mechanism: ReportFormat, batches: Iterable[Reports], candidates: Sequence[Any]
) -> Estimate | None:
    """Estimate the shares of some candidates from single reports; None if there are no reports.

    A mechanism with supports counts those of the candidates alone; any other decodes its whole sketch.
    """
    if isinstance(mechanism, SupportMechanism):
        sketch = LOCAL.support(batches, mechanism, candidates)
    else:
        sketch = LOCAL.fold(batches, mechanism)
    return mechanism.estimate(sketch, candidates) if sketch.n else None
