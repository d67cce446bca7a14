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
    """What came in from one moment until the next."""

    start: float
    seconds: float
    accepted: int
    rejected: int


@dataclass(frozen=True)
class OpenAskCount:
    """An ask that devices may answer now: of which share of them, how many have, and until when."""

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
        How many so far, by outcome: "accepted", "duplicate", or why not.
    nobodys
        Likewise of reports that name no collection that is served.
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
    """Where the pages get what they show."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    def collections(self) -> Sequence[Collection]:
        """What is served."""
        ...

    def releases(self, collection: str, question: str, limit: int) -> list[AnswerCard]:
        """The latest releases of a question, oldest first."""
        ...

    def ingest(self, collection: str) -> Ingest:
        """What became of a collection's reports."""
        ...

    def query(self, collection: str, question: str, asked: BoxQuery) -> QueryAnswer | str:
        """The answer of a query of a table, or why there is none."""
        ...

    def alarms(self, collection: str) -> Mapping[str, Any]:
        """The alarms of a collection, as the API tells of them."""
        ...

    def shuffled(self, collection: str) -> Mapping[str, Any]:
        """The shuffled batches of a collection, as the API tells of them."""
        ...

    def notice(self) -> str | None:
        """What everyone who reads a page should know first: a clock in doubt, a question that failed."""
        ...

    def listen(self, collection: str) -> AsyncIterator[bytes]:
        """Server-sent events, one whenever something has changed."""
        ...
