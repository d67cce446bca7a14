"""The one place where a report becomes the bytes that are sent: as it is, or encrypted to whoever may open it."""

from __future__ import annotations

from typing import Protocol

from hubbub.collection import Collection
from hubbub.collection.wire import AnswerName


class ReportSealer(Protocol):
    """Seals each report once, before it is queued: what is sent again is the same bytes."""

    def seal(self, name: AnswerName, report_id: bytes, report: bytes) -> bytes:
        """What is sent of a report; never empty, and of one length for reports of one length."""
        ...


class PlainReports:
    """Reports as they are: the server that collects them opens them.

    Example:
        >>> PlainReports().seal(AnswerName("popular", 0, 7, 1, 0), b"i" * 16, b"report")
        b'report'
    """

    def seal(self, name: AnswerName, report_id: bytes, report: bytes) -> bytes:
        """The report."""
        return report


def sealer_for(collection: Collection) -> ReportSealer:
    """How the reports of a collection are sealed: as they are, or in layers where they are shuffled.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> type(sealer_for(load_collection(EXAMPLE))).__name__
        'PlainReports'
    """
    if collection.shuffle is None:
        return PlainReports()
    from hubbub.client.onion_sealer import OnionReports  # which other devices need not load

    return OnionReports(collection)
