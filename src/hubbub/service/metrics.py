"""Metrics for Prometheus, on a port of their own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.service.alarm_metrics import AlarmMetrics
from hubbub.service.estimate_metrics import EstimateMetrics
from hubbub.service.reasons import REASONS
from hubbub.service.service import Service

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
        yield _gauge("connections", "Open connections.", len(service.guard))
        closed = (((reason,), service.guard.closed[reason]) for reason in CLOSED)
        yield _counters("closed", "Connections closed by the server, by what they did.", ("reason",), closed)
        yield _gauge("unfinished_bytes", "Bytes of bodies that arrive.", service.bodies.total)
        yield _gauge("senders", "Senders told apart, by hashes.", len(service.senders))
        yield _gauge("missing_files", "Files of reports that are missing.", len(collector.missing))
        yield _gauge("listeners", "Listeners to events.", len(service.hub))
        yield _gauge("clock_in_doubt", "1 while wall time is not believed.", in_doubt)
        yield _gauge("clock_ahead_seconds", "Wall time ahead of the time gone by.", ahead)
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
