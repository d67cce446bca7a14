"""What the pages read of a collector that runs. Nothing here can change anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hubbub.core.errors import InvalidValue
from hubbub.dashboard.answers import LEVEL
from hubbub.dashboard.horizon_range import AskedRange
from hubbub.dashboard.meter import Interval, Meter
from hubbub.questions.collection import Collection
from hubbub.service.alarms import AlarmsBody, alarms_body
from hubbub.service.base.api import ReleaseBody, ShuffledBody
from hubbub.service.base.trusted_clock import ClockStatus, moment
from hubbub.service.collector.candidates import RangeBody, range_of_steps
from hubbub.service.collector.shuffled_batches import shuffled_body
from hubbub.service.http.problems import Problem, problem_of
from hubbub.service.http.service import Service
from hubbub.service.kept.archive import ReportsMissing
from hubbub.service.rounds.releases import told_release
from hubbub.service.store.base import RateRow

if TYPE_CHECKING:
    from hubbub.dashboard.query_box import BoxQuery
    from hubbub.query.answer import QueryAnswer


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
    """

    outcomes: Mapping[str, int]
    rates: Sequence[Interval] = ()
    nobodys: Mapping[str, int] = field(default_factory=dict)


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


_FARTHEST = 1 << 62


class Reader:
    """Reads what a service has."""

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

    def releases(self, collection: Collection, question: str, limit: int) -> list[ReleaseBody]:
        """The latest releases of a question of a version, oldest first, and of those versions that it goes on from."""
        history, place = self._collector.history, (collection.name, question)
        rows = self._collector.releases(*place, first=0, last=_FARTHEST, most=limit, version=collection.version)
        versions = {each.collection_id: each.version for each in history.series(*place, collection.version)}
        # Charts over time show the estimates; consistent shares are shown next to those of the latest release.
        shown = next((row for row in reversed(rows) if row.withheld is None), None)
        asked = collection.questions[question]
        return [
            told_release(row, version=versions[row.collection], level=LEVEL, question=asked if row is shown else None)
            for row in rows
        ]

    def version(self, collection: str, question: str, version: int) -> Collection | None:
        """The latest version through which a question of an earlier version went on."""
        series = self._collector.history.series(collection, question, version)
        return series[-1] if series else None

    def ended(self, collection: str) -> Mapping[str, Sequence[int]]:
        """The earlier versions, by question, whose releases the served version does not continue."""
        return self._collector.history.ended(collection)

    def ingest(self, collection: str) -> Ingest:
        """What became of a collection's reports."""
        served = {other.collection_id for other in self._collector.collections.values()}
        nobodys: dict[str, int] = {}
        for (other, outcome), number in self._collector.counts().items():
            if other not in served:
                nobodys[outcome] = nobodys.get(outcome, 0) + number
        rates = self._meter.intervals(self._collector.collections[collection].collection_id)
        return Ingest(outcomes=self._service.counts(collection), nobodys=nobodys, rates=rates)

    def open_asks(self, collection: str) -> list[OpenAskCount]:
        """What is asked now, by question and step."""
        now = self.now()
        asked = self._collector.collections[collection]
        open_asks = self._collector.board.open(asked.collection_id, now)
        taken = self._collector.taken(open_asks)
        return [
            OpenAskCount(
                question=open_ask.question,
                step=open_ask.ask.step,
                share=open_ask.ask.cohort.share / asked.terms[open_ask.question].group.of,
                reports=taken[open_ask.key],
                opens=open_ask.opens,
                closes=open_ask.closes,
            )
            for open_ask in open_asks
        ]

    def query(self, collection: str, question: str, query: BoxQuery) -> QueryAnswer | str:
        """The answer of a query of a table, or why there is none."""
        tables = self._service.tables
        try:
            return tables.answer(collection, question, query.sql, first=query.first, last=query.last, explain=True)
        except (Problem, InvalidValue) as error:
            problem = problem_of(error)
            return problem.detail or problem.slug

    def range(self, collection: Collection, question: str, asked: AskedRange) -> RangeBody | str | None:
        """A range of steps of a question that follows changes, or why there is none; None before the first release."""
        try:
            return range_of_steps(self._collector, collection, question, **asked._asdict(), level=LEVEL)
        except (ReportsMissing, InvalidValue) as error:
            return str(error)

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
