"""The pages over a collector that runs."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import json
from starlette.routing import BaseRoute

from hubbub.collection import Clock, Collection
from hubbub.core.errors import InvalidValue
from hubbub.dashboard.pages import routes
from hubbub.dashboard.query_box import BoxQuery
from hubbub.dashboard.reader import AnswerCard, Ingest, Interval, OpenAskCount
from hubbub.service.alarms import AlarmsBody, alarms_body
from hubbub.service.base.api import ShuffledBody
from hubbub.service.base.trusted_clock import ClockStatus, moment
from hubbub.service.collector.shuffled_batches import shuffled_body
from hubbub.service.http.problems import Problem, Tokens, problem_of
from hubbub.service.http.service import Service
from hubbub.service.store.base import RateRow

if TYPE_CHECKING:
    from hubbub.query.answer import QueryAnswer


def clock_notice(status: ClockStatus) -> str | None:
    """What to say of the collector's clock; nothing while there is no doubt about it."""
    if status.state == "sure":
        return None
    jump = f"{_length(status.ahead)} {'ahead of' if status.ahead > 0 else 'behind'}"
    if status.state == "in doubt":
        return (
            f"The clock is in doubt: it says {moment(status.wall)}, {jump} the time that is accounted for. Collection "
            f"goes on by {moment(status.trusted)}. If the clock stays, it is believed in "
            f"{_length(status.seconds_left)}."
        )
    return (
        f"The clock has moved: within the last day it was set {jump} the time that was accounted for. Collection goes "
        "on by it. If the clock goes back, so does the collection; for a day nothing is deleted because of the jump."
    )


def _length(seconds: float) -> str:
    """A length of time in its largest unit."""
    size = abs(seconds)
    for name, unit in (("year", 365 * 86400), ("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if size >= unit or name == "second":
            number = round(size / unit)
            return f"{number} {name}{'' if number == 1 else 's'}"
    raise AssertionError(seconds)


_MINUTE = 60.0
_ACCEPTED, _ASIDE = "accepted", ("duplicate", "cover")


class Meter:
    """Counts of the last while by collection. What came before the collector began is looked up.

    Parameters
    ----------
    clock
        The time.
    seconds
        How long an interval is.
    keep
        How many intervals are kept.
    earlier
        What was counted before this one began, by collection: minutes of Unix time, accepted and rejected.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seconds: float = 10.0,
        keep: int = 360,
        earlier: Mapping[str, Sequence[tuple[int, int, int]]] | None = None,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._keep = keep
        self._began = clock.now()
        self._earlier = {name: self._before(rows) for name, rows in (earlier or {}).items()}
        self._lock = threading.Lock()
        self._counts: defaultdict[str, dict[int, list[int]]] = defaultdict(dict)

    def add(self, added: Mapping[tuple[str, str], int]) -> None:
        """Take in what was counted just now, by collection id and outcome; duplicates and cover are left aside."""
        now = self._place()
        with self._lock:
            for (collection, outcome), number in added.items():
                if outcome in _ASIDE:
                    continue
                counts = self._counts[collection]
                counts.setdefault(now, [0, 0])[outcome != _ACCEPTED] += number
                if len(counts) > 2 * self._keep:
                    self._counts[collection] = {
                        place: pair for place, pair in counts.items() if place > now - self._keep
                    }

    def intervals(self, collection: str) -> list[Interval]:
        """The last while, oldest first, without gaps; the last one ends now."""
        now, last = self._clock.now(), self._place()
        first = max(last - self._keep + 1, 0)
        with self._lock:
            counts = dict(self._counts.get(collection, {}))
        since = now - self._keep * self._seconds
        known = [interval for interval in self._earlier.get(collection, ()) if interval.start >= since]
        for place in range(first, last + 1):
            start = self._began + place * self._seconds
            accepted, rejected = counts.get(place, (0, 0))
            known.append(Interval(start, min(self._seconds, max(now - start, 1e-3)), accepted, rejected))
        return known

    def _before(self, rows: Sequence[tuple[int, int, int]]) -> list[Interval]:
        """The minutes from the first in which something came until the beginning, without gaps."""
        known = {minute: counts for minute, *counts in rows}
        minutes = []
        for minute in range(min(known, default=1 << 62), math.ceil(self._began / _MINUTE)):
            accepted, rejected = known.get(minute, (0, 0))
            start = minute * _MINUTE
            minutes.append(Interval(start, min(_MINUTE, self._began - start), accepted, rejected))
        return minutes

    def _place(self) -> int:
        # A clock that was set back counts into the first interval, rather than none.
        return max(math.floor((self._clock.now() - self._began) / self._seconds), 0)


_FARTHEST = 1 << 62


def dashboard(tokens: Tokens | None) -> Callable[[Service], Sequence[BaseRoute]]:
    """The pages as `hubbub.service.http.server.run` takes them: `run(..., routes=dashboard(tokens))`.

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

    def alarms(self, collection: str) -> AlarmsBody:
        """The alarms of a collection, as the API answers."""
        return alarms_body(self._collector.alarms, self._collector.collections[collection])

    def shuffled(self, collection: str) -> ShuffledBody:
        """The shuffled batches of a collection, as the API answers."""
        return shuffled_body(self._collector.store, self._collector.collections[collection])

    def notice(self) -> str | None:
        """What to know of the clock, and which questions another package's error stopped."""
        trusted = self._collector.trusted
        clock = None if trusted is None else clock_notice(trusted.status())
        failed = [f"{question} is stopped: {why}." for (_, question), why in sorted(self._collector.failed.items())]
        return " ".join(filter(None, [clock, *failed])) or None

    def listen(self, collection: str) -> AsyncIterator[bytes]:
        """Server-sent events, one whenever something has changed."""
        return self._service.hub.listen(collection)
