"""Metrics for Prometheus, on a port of their own: reports, alarms, webhooks, and the newest estimates."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.service.base.api import ReleaseBody
from hubbub.service.base.limits import REASONS
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service
from hubbub.service.rounds.releases import told_release
from hubbub.service.webhooks.sender import OUTCOMES

MOST_WATCHED = 256
"""The most watched quantities of a collection that have series of their own."""


class AlarmMetrics:
    """Which alarms are raised, how many events there were, and how the deliveries to webhooks went."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """The metrics, with their current values; reads the store."""
        collector, alarms = self._service.collector, self._service.collector.alarms
        labels = ("collection", "alarm", "question", "category")
        raised = GaugeMetricFamily("hubbub_alarm_raised", "1 while an alarm is raised.", labels=labels)
        total = GaugeMetricFamily("hubbub_alarms_raised", "Alarms that are raised.", labels=("collection",))
        events = CounterMetricFamily("hubbub_alarm_events", "Alarms raised or cleared so far.", labels=("collection",))
        for name in collector.collections:
            states = alarms.states(name)
            for watch, state in states[:MOST_WATCHED]:
                place = name, watch.alarm, watch.question, watch.category
                raised.add_metric(place, int(state.raised is not None))
            total.add_metric((name,), sum(state.raised is not None for _, state in states))
            events.add_metric((name,), collector.store.last_alarm_event(name))
        yield from (raised, total, events)
        yield from self._webhooks()

    def _webhooks(self) -> Iterator[Metric]:
        attempts = CounterMetricFamily(
            "hubbub_webhook_attempts", "Deliveries tried, by what became of them.", labels=("webhook", "outcome")
        )
        waiting = GaugeMetricFamily("hubbub_webhook_waiting", "Events that wait to be taken.", labels=("webhook",))
        failing = GaugeMetricFamily("hubbub_webhook_failing", "1 if the last attempt failed.", labels=("webhook",))
        for sender in self._service.webhooks:
            name = sender.webhook.name
            for outcome in OUTCOMES:
                attempts.add_metric((name, outcome), sender.counts[outcome])
            waiting.add_metric((name,), sum(map(sender.waiting, self._service.collector.collections)))
            failing.add_metric((name,), int(sender.failing is not None))
        yield from (attempts, waiting, failing)


MOST_CATEGORIES = 64
"""The most categories of a question that have series of their own: Prometheus keeps each series for good."""

_LAST_STEP = 1 << 62
_OF_QUESTION = ("collection", "question")


class EstimateMetrics:
    """The main estimate of each question's newest release, with its 95% interval.

    Unknown numbers, and all numbers of a withheld release, have no sample. Of a question with more than
    `MOST_CATEGORIES` categories only the first have samples. The categories of a ranking are its ranks and not the
    names found there, which would make new series without end.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        """The metrics, with their current values; reads the store."""
        of_category = (*_OF_QUESTION, "category")
        numbers = {
            "value": _gauge_of_estimates("estimate", "The newest estimate.", of_category),
            "low": _gauge_of_estimates("estimate_low", "The lower end of its 95% interval.", of_category),
            "high": _gauge_of_estimates("estimate_high", "The upper end of its 95% interval.", of_category),
        }
        reports = _gauge_of_estimates("estimate_reports", "Reports that it rests on.", _OF_QUESTION)
        categories = _gauge_of_estimates(
            "estimate_categories", f"Its numbers, of which {MOST_CATEGORIES} are told.", _OF_QUESTION
        )
        age = _gauge_of_estimates("release_age_seconds", "Seconds since the newest release.", _OF_QUESTION)
        for place, release in self._newest():
            names = self._categories(place, release.labels)
            for key, family in numbers.items():
                for category, value in zip(names, getattr(release, key) or (), strict=False):
                    if value is not None:
                        family.add_metric((*place, category), value)
            reports.add_metric(place, release.n)
            categories.add_metric(place, len(release.labels))
            age.add_metric(place, max(self._collector.clock.now() - release.time, 0.0))
        yield from (*numbers.values(), reports, categories, age)

    def _newest(self) -> Iterator[tuple[tuple[str, str], ReleaseBody]]:
        for name, collection in self._collector.collections.items():
            for question in collection.questions:
                for row in self._collector.releases(name, question, first=0, last=_LAST_STEP, most=1):
                    yield (name, question), told_release(row)

    def _categories(self, place: tuple[str, str], labels: list[str]) -> list[str]:
        collection, question = self._collector.collections[place[0]], place[1]
        shape = collection.questions[question].shape()
        names = [str(rank) for rank, _ in enumerate(labels, 1)] if shape.form == "ranking" else labels
        return names[:MOST_CATEGORIES]


def _gauge_of_estimates(name: str, text: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"hubbub_{name}", text, labels=labels)


DELETED = ("ids", "releases", "reports", "sketches")
CLOSED = (
    "idle",
    "header",
    "body",
    "unread",
    "refused",
    "header_too_large",
    "malformed",
    "connections",
    "sender_connections",
    "blocked",
)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ServiceMetrics:
    """The outcomes of reports, and the state of the collector."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """The metrics, with their current values."""
        service = self._service
        collector, writer = service.collector, service.writer
        asks = list(collector.board.asks.values())
        in_doubt, ahead = _clock(service)
        yield _counters("reports", "Reports by collection and outcome.", ("collection", "outcome"), self._outcomes())
        yield _counters(
            "deleted", "What was deleted for good, since the start.", ("collection", "what"), self._deleted()
        )
        yield _counter("commits", "Groups of requests committed.", writer.commits)
        yield _counter("commit_seconds", "Time spent on them.", writer.commit_seconds)
        yield _gauge("waiting_reports", "Reports that wait for a commit.", writer.waiting)
        yield _gauge("open_asks", "Asks that take reports.", sum(not ask.final for ask in asks))
        yield _gauge("held_ids", "Report ids that are held.", collector.board.ids_held())
        yield _gauge("id_memory_bytes", "Memory for them.", sum(ask.ids.memory for ask in asks))
        yield _counter("shed", "Requests that waited too long.", writer.shed)
        yield from self._scrub()
        yield _gauge("connections", "Open connections.", len(service.guard))
        closed = (((reason,), service.guard.closed[reason]) for reason in CLOSED)
        yield _counters("closed", "Connections closed by the server, by what they did.", ("reason",), closed)
        yield _gauge("unfinished_bytes", "Bytes of bodies that arrive.", service.bodies.total)
        yield _gauge("senders", "Senders told apart, by hashes.", len(service.senders))
        yield _gauge("missing_files", "Files of reports that are missing.", len(collector.missing))
        yield _gauge("listeners", "Listeners to events.", len(service.hub))
        yield _gauge("clock_in_doubt", "1 while wall time is not believed.", in_doubt)
        yield _gauge("clock_ahead_seconds", "Wall time ahead of the time gone by.", ahead)
        standing = collector.standing()
        if standing is not None:
            yield _gauge("leads", "1 in the process that drives the rounds.", int(standing.role == "leader"))
            yield _gauge("epoch", "The epoch of the leader.", standing.epoch)
            yield _gauge("lag_seconds", "Seconds since this process heard of what the leader did.", standing.lag)
        yield _gauge("ready", "1 while reports are taken.", int(service.ready))

    def _outcomes(self) -> Iterable[tuple[tuple[str, str], float]]:
        collector, names = self._service.collector, self._names()
        outcomes = Counter[tuple[str, str]]()
        for name in (*collector.collections, ""):
            outcomes.update({(name, outcome): 0 for outcome in ("accepted", "duplicate", "cover", *REASONS)})
        for (collection, outcome), count in collector.counts().items():
            outcomes[names.get(collection, ""), outcome] += count  # earlier versions count as unknown
        return outcomes.items()

    def _deleted(self) -> Iterable[tuple[tuple[str, str], float]]:
        collector, names = self._service.collector, self._names()
        deleted = Counter[tuple[str, str]]({(name, kind): 0 for name in collector.collections for kind in DELETED})
        for (collection, kind), count in collector.deleted.items():
            deleted[names.get(collection, ""), kind] += count
        return sorted(deleted.items())

    def _scrub(self) -> Iterator[Metric]:
        """How far the comparison of all that is stored with its checksums is."""
        scrub = self._service.scrub
        yield _counter("store_checked_rows", "Stored rows that were compared with their checksums.", scrub.rows)
        yield _counter("store_checks", "Complete checks of the store since the start.", scrub.passes)
        yield _gauge("store_check_progress", "The share of the latest check that is done.", scrub.progress)
        if scrub.last:
            ago = max(time.time() - scrub.last, 0.0)
            yield _gauge("store_check_age_seconds", "Seconds since the last complete check.", ago)

    def _names(self) -> dict[str, str]:
        """The names of the served collections by their ids."""
        return {collection.collection_id: name for name, collection in self._service.collector.collections.items()}


def metrics_text(service: Service) -> str:
    """All metrics, as text."""
    return _text(_registry(service))


def metrics_app(service: Service) -> Starlette:
    """The application of the metrics port."""
    registry = _registry(service)

    async def metrics(_request: Request) -> Response:
        await service.not_ready()
        return Response(await asyncio.to_thread(_text, registry), media_type=CONTENT_TYPE)  # it reads the store

    return Starlette(routes=[Route("/metrics", metrics)])


def _registry(service: Service) -> CollectorRegistry:
    """A registry for this service alone: a process may have several services."""
    registry = CollectorRegistry()
    registry.register(ServiceMetrics(service))
    registry.register(EstimateMetrics(service.collector))
    registry.register(AlarmMetrics(service))
    return registry


def _text(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def _clock(service: Service) -> tuple[int, float]:
    trusted = service.collector.trusted
    status = None if trusted is None else trusted.status()
    in_doubt = status is not None and status.state == "in doubt"
    return int(in_doubt), status.ahead if status is not None and in_doubt else 0.0


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"hubbub_{name}", text, value)


def _counter(name: str, text: str, value: float) -> Metric:
    return _counters(name, text, (), [((), value)])


def _counters(
    name: str, text: str, labels: tuple[str, ...], samples: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    """A counter; the format adds "_total" to its name."""
    family = CounterMetricFamily(f"hubbub_{name}", text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family
