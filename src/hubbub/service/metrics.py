"""Metrics in Prometheus's text format, for a port of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.service.reasons import REASONS
from hubbub.service.service import Service

__all__ = ["metrics_app", "metrics_text"]

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


def metrics_text(service: Service) -> str:
    """All metrics, as text.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> print(metrics_text(Service(example_collector())).splitlines()[2])
        hubbub_reports_total{collection="themes",outcome="accepted"} 0
    """
    collector, writer = service.collector, service.writer
    names = {collection.collection_id: name for name, collection in collector.collections.items()}
    outcomes: dict[tuple[str, str], int] = {}
    for name in (*collector.collections, ""):
        outcomes |= dict.fromkeys(((name, outcome) for outcome in ("accepted", "duplicate", "cover", *REASONS)), 0)
    for (collection, outcome), count in collector.counts().items():
        outcomes[names.get(collection, ""), outcome] += count  # earlier versions are told together with the unknown
    deleted: dict[tuple[str, str], int] = {(name, what): 0 for name in collector.collections for what in DELETED}
    for (collection, what), count in collector.deleted.items():
        place = names.get(collection, ""), what
        deleted[place] = deleted.get(place, 0) + count
    windows = list(collector.board.asks.values())
    return "".join(
        [
            _metric(
                "reports_total",
                "counter",
                "Reports by collection and outcome.",
                (({"collection": name, "outcome": outcome}, count) for (name, outcome), count in outcomes.items()),
            ),
            _metric(
                "deleted_total",
                "counter",
                "What was deleted for good, since the start.",
                (({"collection": name, "what": what}, count) for (name, what), count in sorted(deleted.items())),
            ),
            _metric("commits_total", "counter", "Groups of requests committed.", [({}, writer.commits)]),
            _metric("commit_seconds_total", "counter", "Time spent on them.", [({}, writer.commit_seconds)]),
            _metric("waiting_reports", "gauge", "Reports that wait for a commit.", [({}, writer.waiting)]),
            _metric("open_asks", "gauge", "Asks that take reports.", [({}, sum(not each.final for each in windows))]),
            _metric("held_ids", "gauge", "Report ids that are held.", [({}, collector.board.held())]),
            _metric("id_memory_bytes", "gauge", "Memory for them.", [({}, sum(each.ids.memory for each in windows))]),
            _metric("shed_total", "counter", "Requests that waited too long.", [({}, writer.shed)]),
            _metric("connections", "gauge", "Open connections.", [({}, len(service.guard))]),
            _metric(
                "closed_total",
                "counter",
                "Connections closed by the server, by what they did.",
                (({"reason": reason}, service.guard.closed[reason]) for reason in CLOSED),
            ),
            _metric("unfinished_bytes", "gauge", "Bytes of bodies that arrive.", [({}, service.bodies.total)]),
            _metric("senders", "gauge", "Senders told apart, by hashes.", [({}, len(service.senders))]),
            _metric("missing_files", "gauge", "Files of reports that are missing.", [({}, len(collector.missing))]),
            _metric("listeners", "gauge", "Listeners to events.", [({}, len(service.hub))]),
            _metric("clock_in_doubt", "gauge", "1 while wall time is not believed.", [({}, _clock(service)[0])]),
            _metric("clock_ahead_seconds", "gauge", "Wall time ahead of the time gone by.", [({}, _clock(service)[1])]),
            _metric("ready", "gauge", "1 while reports are taken.", [({}, int(service.ready))]),
        ]
    )


def metrics_app(service: Service) -> Starlette:
    """The application of the metrics port.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> [route.path for route in metrics_app(Service(example_collector())).routes]
        ['/metrics']
    """

    async def metrics(_request: Request) -> Response:
        await service.not_ready()
        return Response(metrics_text(service), media_type=CONTENT_TYPE)

    return Starlette(routes=[Route("/metrics", metrics)])


def _clock(service: Service) -> tuple[int, float]:
    trusted = service.collector.trusted
    status = None if trusted is None else trusted.status()
    doubted = status is not None and status.state == "in doubt"
    return int(doubted), status.ahead if status is not None and doubted else 0.0


def _metric(name: str, kind: str, text: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> str:
    """One metric with its samples.

    Example:
        >>> print(_metric("ready", "gauge", "1 while reports are taken.", [({}, 1)]), end="")
        # HELP hubbub_ready 1 while reports are taken.
        # TYPE hubbub_ready gauge
        hubbub_ready 1
    """
    lines = [f"# HELP hubbub_{name} {text}", f"# TYPE hubbub_{name} {kind}"]
    for labels, value in samples:
        inside = ",".join(f'{key}="{label}"' for key, label in labels.items())
        lines.append(f"hubbub_{name}{{{inside}}} {value}" if inside else f"hubbub_{name} {value}")
    return "\n".join(lines) + "\n"
