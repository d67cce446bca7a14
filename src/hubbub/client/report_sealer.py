"""The one place where a report becomes the bytes that are sent: as it is, or encrypted to whoever may open it."""

from __future__ import annotations

from typing import Protocol

from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.protocols.ask import Ask


class ReportSealer(Protocol):
    """Seals each report once, before it is queued: what is sent again is the same bytes."""

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
        """What is sent of a report to an ask; never empty, and of one length for reports of one length."""
        ...


class PlainReports:
    """Reports as they are: the server that collects them opens them.

    Example:
        >>> from hubbub import GRR
        >>> ask = Ask(mechanism=GRR(epsilon=1.0, domain=2), step=7)
        >>> PlainReports().seal(AnswerName("popular", 0, 7, 1, 0), ask, b"report")
        b'report'
    """

    def seal(self, name: AnswerName, ask: Ask, report: bytes) -> bytes:
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
