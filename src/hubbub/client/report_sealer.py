"""The one place where a report becomes the bytes that are sent: unchanged, or encrypted for shufflers and collector."""

from __future__ import annotations

from typing import Protocol

from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.protocols.ask import Ask


class ReportSealer(Protocol):
    """Seals each report once, before it is queued, so that a retry sends the same bytes."""

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The bytes to send: never empty, and of the same length for reports of the same length."""
        ...


class PlainReports:
    """Sends reports unchanged: the collector reads them directly."""

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """The report."""
        return report


def sealer_for(collection: Collection) -> ReportSealer:
    """The sealer of a collection's reports: plain, or in layers where reports are shuffled."""
    if collection.shuffle is None:
        return PlainReports()
    from hubbub.client.onion_sealer import OnionReports  # other devices need not load it

    return OnionReports(collection)
