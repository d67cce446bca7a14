"""What the pages read: collections, releases and counters. Nothing here can change anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hubbub.collection import Collection
from hubbub.dashboard.answer import AnswerCard

if TYPE_CHECKING:
    from hubbub.dashboard.query_box import BoxQuery
    from hubbub.query.answer import QueryAnswer


@dataclass(frozen=True)
class Interval:
    """How many reports were accepted and rejected in an interval of time."""

    start: float
    seconds: float
    accepted: int
    rejected: int


@dataclass(frozen=True)
class OpenAskCount:
    """An ask that is open: the share of devices that is asked, the reports so far, and when it opens and closes."""

    question: str
    step: int
    share: float
    reports: int
    opens: float
    closes: float


@dataclass(frozen=True)
class Ingest:
    """What became of a collection's reports.

    Parameters
    ----------
    outcomes
        The number of reports so far by outcome: "accepted", "duplicate", or why they were rejected.
    nobodys
        The same for reports that name no collection that is served.
    rates
        The last while, oldest first, without gaps; it ends now.
    asks
        What is open.
    """

    outcomes: Mapping[str, int]
    rates: Sequence[Interval] = ()
    asks: Sequence[OpenAskCount] = ()
    nobodys: Mapping[str, int] = field(default_factory=dict)


class Reader(Protocol):
    """The source of what the pages show."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def collections(self) -> Sequence[Collection]:
        """What is served."""
        ...

    def releases(self, collection: Collection, question: str, limit: int) -> list[AnswerCard]:
        """The latest releases of a question of a version, oldest first, and of those versions that it goes on from."""
        ...

    def version(self, collection: str, question: str, version: int) -> Collection | None:
        """The latest version through which a question of an earlier version went on."""
        ...

    def ended(self, collection: str) -> Mapping[str, Sequence[int]]:
        """The earlier versions, by question, whose releases the served version does not continue."""
        ...

    def ingest(self, collection: str) -> Ingest:
        """What became of a collection's reports."""
        ...

    def query(self, collection: str, question: str, query: BoxQuery) -> QueryAnswer | str:
        """The answer of a query of a table, or why there is none."""
        ...

    def alarms(self, collection: str) -> Mapping[str, Any]:
        """The alarms of a collection, as the API answers."""
        ...

    def shuffled(self, collection: str) -> Mapping[str, Any]:
        """The shuffled batches of a collection, as the API answers."""
        ...

    def notice(self) -> str | None:
        """What every page says first: that the clock is in doubt, or that a question failed; else None."""
        ...

    def listen(self, collection: str) -> AsyncIterator[bytes]:
        """Server-sent events, one whenever something has changed."""
        ...
