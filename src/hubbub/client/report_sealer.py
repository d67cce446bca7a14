"""The one place where a report becomes the bytes that are sent: as it is, or encrypted to whoever may open it."""

from __future__ import annotations

from typing import Protocol

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
