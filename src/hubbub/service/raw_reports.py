"""Single reports that a question keeps: packed at ingest, moved to files, read back, asked about."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hubbub.backends import LOCAL
from hubbub.core.errors import DecodeError
from hubbub.core.estimate import Estimate
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ReportFormat
from hubbub.mechanisms.frequency.support import SupportMechanism
from hubbub.service.archive import Archive, ReportsMissing
from hubbub.service.store.base import ArchiveRow, AskKey
from hubbub.service.store.sql import Store

_FAST = 1


def pack(reports: Reports) -> bytes:
    """A segment for the store.

    Example:
        >>> import numpy as np
        >>> reports = Reports("0" * 32, private={"value": np.uint8([1, 0])})
        >>> unpack(pack(reports)) == reports
        True
    """
    return zlib.compress(reports.to_bytes(), _FAST)


def unpack(segment: bytes) -> Reports:
    """The reports of a segment."""
    try:
        return Reports.from_bytes(zlib.decompress(segment))
    except (zlib.error, DecodeError) as error:
        raise ReportsMissing(f"reports in the store cannot be read: {error}") from error


def moved(store: Store, archive: Archive, key: AskKey, question: str, step: int) -> ArchiveRow:
    """Write the segments of a closed ask to a file; they stay in the store until this row is in it.

    Doing it twice makes the same file twice.
    """
    reports = Reports.concat(map(unpack, store.kept_segments(key)))
    name = archive.name(question, step, *key)
    archive.write(name, reports)
    return ArchiveRow(*key, name, len(reports))


def kept_reports(
    store: Store, archive: Archive | None, collection: str, question: str, *, first: int, last: int
) -> Iterator[tuple[int, Reports]]:
    """The single reports of a question's closed asks from one step to another, some at a time, with their steps.

    Each report is there once, wherever it is at the moment; `ReportsMissing` if some are not where they should be.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> one = example_collector()
        >>> themes = one.collections["themes"].collection_id
        >>> list(kept_reports(one.store, None, themes, "popular", first=0, last=99))
        []
    """
    for ask, step in store.closed_asks(collection, question, first, last):
        for reports in reports_to(store, archive, AskKey(collection, ask)):
            yield step, reports


def reports_to(store: Store, archive: Archive | None, key: AskKey) -> Iterator[Reports]:
    """The single reports that were kept of an ask, some at a time, wherever they are at the moment.

    `ReportsMissing` if some are not where they should be.
    """
    # They may be moved while this looks: from the store into a file, never back.
    segments = [] if store.archived(key) else store.kept_segments(key)
    row = None if segments else store.archived(key)
    yield from map(unpack, segments)
    if row is None:
        return
    n = 0
    try:
        if archive is None:
            raise ReportsMissing(f"{row.name} is missing: there is no folder of reports")
        for reports in archive.batches(row.name):
            n += len(reports)
            yield reports
        if n != row.n:
            raise ReportsMissing(f"{row.name} holds {n:,} reports instead of {row.n:,}")
    except ReportsMissing:
        if n or store.archived(key) is not None:  # else the retention has ended meanwhile
            raise


def estimate_candidates(
    mechanism: ReportFormat, batches: Iterable[Reports], candidates: Sequence[Any]
) -> Estimate | None:
    """The shares of some candidates among all of these reports; None if there are none.

    A frequency oracle counts the supports of the candidates alone; any other mechanism decodes its whole sketch.

    Example:
        >>> from hubbub import OLH, Random
        >>> olh = OLH(epsilon=3.0, domain=1000)
        >>> batches = [olh.randomize([7] * 600 + [8] * 400, Random(seed=seed)) for seed in range(3)]
        >>> [round(float(share), 1) for share in estimate_candidates(olh, batches, [7, 8]).value]
        [0.6, 0.4]
    """
    if isinstance(mechanism, SupportMechanism):
        sketch = LOCAL.support(batches, mechanism, candidates)
    else:
        sketch = LOCAL.fold(batches, mechanism)
    return mechanism.estimate(sketch, candidates) if sketch.n else None
