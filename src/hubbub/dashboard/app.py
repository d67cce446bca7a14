"""The pages over a collector that runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import json
from starlette.routing import BaseRoute

from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.dashboard.answer import AnswerCard
from hubbub.dashboard.clock_notice import clock_notice
from hubbub.dashboard.meter import Meter
from hubbub.dashboard.pages import routes
from hubbub.dashboard.query_box import BoxQuery
from hubbub.dashboard.reader import Ingest, OpenAskCount
from hubbub.service.alarms.alarms_json import alarms_json
from hubbub.service.auth import Tokens
from hubbub.service.problems import Problem, problem_of
from hubbub.service.service import Service
from hubbub.service.shuffled_json import shuffled_json
from hubbub.service.store.base import RateRow

if TYPE_CHECKING:
    from hubbub.query.answer import QueryAnswer

_FARTHEST = 1 << 62


def dashboard(tokens: Tokens | None) -> Callable[[Service], Sequence[BaseRoute]]:
    """The pages as `hubbub.service.server.run` takes them: `run(..., routes=dashboard(tokens))`.

    Parameters
    ----------
    tokens
        Who may see results and counters; None shows them to everyone who can reach the address.
    """

    def pages(service: Service) -> Sequence[BaseRoute]:
        return routes(ServiceReader(service), allow=None if tokens is None else tokens.allow)

    return pages


class ServiceReader:
    """Reads what a service has: `hubbub.dashboard.reader.Reader`."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._collector = service.collector
        self._meter = Meter(self._collector.clock, earlier=self._earlier())
        service.collector.listeners.append(lambda changes: self._meter.add(changes.counts))

    def _earlier(self) -> dict[str, list[RateRow]]:
        """What came in the hour before this collector began."""
        first, store = int(self.now() // 60) - 60, self._collector.store
        return {served.collection_id: store.rates(served.collection_id, first) for served in self.collections()}

    def now(self) -> float:
        """Unix seconds."""
        return self._collector.clock.now()

    def collections(self) -> Sequence[Collection]:
        """What is served."""
        return list(self._collector.collections.values())

    def releases(self, collection: Collection, question: str, limit: int) -> list[AnswerCard]:
        """The latest releases of a question of a version, oldest first, and of those versions that it goes on from."""
        history, place = self._collector.history, (collection.name, question)
        rows = self._collector.releases(*place, first=0, last=_FARTHEST, most=limit, version=collection.version)
        versions = {each.collection_id: each.version for each in history.series(*place, collection.version)}
        cards = [
            AnswerCard.of(
                json.decode(row.payload), question=row.question, step=row.step, time=row.time, withheld=row.withheld
            )
            for row in rows
        ]
        return [replace(card, version=versions[row.collection]) for card, row in zip(cards, rows, strict=True)]

    def version(self, collection: str, question: str, version: int) -> Collection | None:
        """The latest version through which a question of an earlier version went on."""
        series = self._collector.history.series(collection, question, version)
        return series[-1] if series else None

    def ended(self, collection: str) -> Mapping[str, Sequence[int]]:
        """The earlier versions, by question, whose releases the served version does not continue."""
        return self._collector.history.ended(collection)

    def ingest(self, collection: str) -> Ingest:
        """What became of a collection's reports."""
        wanted, now = self._collector.collections[collection].collection_id, self.now()
        served = {other.collection_id for other in self._collector.collections.values()}
        nobodys: dict[str, int] = {}
        for (other, outcome), number in self._collector.counts().items():
            if other not in served:
                nobodys[outcome] = nobodys.get(outcome, 0) + number
        # A copy at once: the collector's own thread opens and closes asks meanwhile.
        open_asks = list(self._collector.board.asks.values())
        asks = [
            OpenAskCount(
                question=open_ask.question,
                step=open_ask.ask.step,
                share=open_ask.ask.cohort.share,
                reports=open_ask.sketch.n,
                opens=open_ask.opens,
                closes=open_ask.closes,
            )
            for open_ask in sorted(open_asks, key=lambda open_ask: (open_ask.question, open_ask.ask.step))
            if open_ask.key.collection == wanted and not open_ask.final and open_ask.opens <= now < open_ask.closes
        ]
        return Ingest(
            outcomes=self._service.counts(collection),
            nobodys=nobodys,
            rates=self._meter.intervals(wanted),
            asks=asks,
        )

    def query(self, collection: str, question: str, query: BoxQuery) -> QueryAnswer | str:
        """The answer of a query of a table, or why there is none."""
        tables = self._service.tables
        try:
            return tables.answer(collection, question, query.sql, first=query.first, last=query.last, explain=True)
        except (Problem, InvalidValue) as error:
            problem = problem_of(error)
            return problem.detail or problem.slug

    def alarms(self, collection: str) -> Mapping[str, Any]:
        """The alarms of a collection, as the API answers."""
        return alarms_json(self._collector.alarms, self._collector.collections[collection])

    def shuffled(self, collection: str) -> Mapping[str, Any]:
        """The shuffled batches of a collection, as the API answers."""
        return shuffled_json(self._collector.store, self._collector.collections[collection])

    def notice(self) -> str | None:
        """What to know of the clock, and which questions another package's error stopped."""
        trusted = self._collector.trusted
        clock = None if trusted is None else clock_notice(trusted.status())
        failed = [f"{question} is stopped: {why}." for (_, question), why in sorted(self._collector.failed.items())]
        return " ".join(filter(None, [clock, *failed])) or None

    def listen(self, collection: str) -> AsyncIterator[bytes]:
        """Server-sent events, one whenever something has changed."""
        return self._service.hub.listen(collection)
