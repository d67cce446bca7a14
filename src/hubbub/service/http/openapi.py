"""The OpenAPI description of all routes: summaries are the handlers' docstrings, schemas are made of the bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import getdoc
from typing import Any

import msgspec

from hubbub import __version__
from hubbub.service.alarms import AlarmsBody
from hubbub.service.base import api
from hubbub.service.collector.candidates import MOST_CANDIDATES
from hubbub.service.http.problems import CONTENT_TYPE, TITLES
from hubbub.service.http.queries import Queries
from hubbub.service.http.reports import ReportsRoute, ShuffledRoute
from hubbub.wire.batches import BATCH_TYPE, SHUFFLED_TYPE
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, JsonUpload

Described = dict[str, Any]

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_INTEGER = {"type": "integer", "minimum": -(1 << 53), "maximum": 1 << 53}
_TEXT = {"type": "string"}
_SOME_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MOST_CANDIDATES}
_TOO_SLOW_OR_LARGE = {408: "too_slow", 413: "too_large"}


def _query(name: str, text: str, schema: Described = _INTEGER, *, required: bool = False) -> Described:
    return {"name": name, "in": "query", "schema": schema, "description": text, "required": required}


_FROM, _TO = _query("from", "The first step."), _query("to", "The last.")
_LEVEL = _query("level", "Confidence level; 0.95 by default.", msgspec.json.schema(api.Level))


def _summary(described: object) -> str:
    """The first paragraph of a docstring."""
    return " ".join((getdoc(described) or "").partition("\n\n")[0].split())


def _json(body: type) -> Described:
    return {JSON_TYPE: {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}}


def _route(
    handler: Callable[..., Any],
    answer: type[api.ApiBody] | None,
    *parameters: Described,
    refused: Mapping[int, str] | None = None,
    takes: Described | None = None,
    token: bool = False,
) -> Described:
    """An operation. `refused`: the problems by status. `takes`: the content of the request, which is then a POST."""
    refusals = {**({401: "no_token", 403: "foreign_site"} if token else {}), **(refused or {})}
    responses: Described = {}
    if answer is not None:
        responses["200"] = {"description": _summary(answer), "content": _json(answer)}
    if answer is api.SealedBody:
        responses["304"] = {"description": "Not changed."}
    for status, slugs in sorted(refusals.items()):
        titles = " ".join(TITLES[slug] for slug in slugs.split())
        content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
        responses[str(status)] = {"description": titles, "content": content}
    operation: Described = {"summary": _summary(handler), "parameters": list(parameters), "responses": responses}
    if takes is not None:
        operation["requestBody"] = {"required": True, "content": takes}
    if token:
        operation["security"] = [{"token": []}]
    return {"get" if takes is None else "post": operation}


def _paths() -> dict[str, Any]:
    collection, question = "/v1/collections/{name}", "/v1/collections/{name}/questions/{question}"
    missing, wrong = {404: "not_found"}, {400: "invalid_parameter", 404: "not_found"}
    busy = {**_TOO_SLOW_OR_LARGE, 503: "busy stopping"}
    reports = {
        **busy,
        400: "malformed",
        403: "not_shuffled",
        404: "unknown_collection",
        410: "outdated_version",
        415: "unsupported_type",
        429: "over_quota over_sender_quota over_ceiling",
    }
    shuffled = {
        **busy,
        400: "malformed",
        404: "unknown_collection unknown_ask not_found",
        409: "replay",
        410: "late outdated_version",
        415: "unsupported_type",
        422: "under_minimum",
        425: "too_early",
        429: "over_ceiling",
    }
    sql = {
        **_TOO_SLOW_OR_LARGE,
        400: "malformed invalid_parameter",
        404: "not_found",
        409: "reports_missing withheld",
        422: "query_refused",
        501: "no_sql",
        503: "query_busy query_too_slow",
    }
    checks = {**busy, 400: "malformed invalid_parameter", 404: "not_found"}
    ready = _route(Queries.readyz, api.ReadyBody)
    ready["get"]["responses"]["503"] = {"description": "Reports are not taken.", "content": _json(api.ReadyBody)}
    events = _route(Queries.events, None, refused=missing, token=True)
    stream = {"description": "Events, without end: release, ask, alarm, counts.", "content": {"text/event-stream": {}}}
    events["get"]["responses"]["200"] = stream
    this = _route(Queries.openapi, None)
    this["get"]["responses"]["200"] = {"description": "OpenAPI 3.1."}
    uploads = {UPLOAD_TYPE: _BYTES, BATCH_TYPE: _BYTES, **_json(JsonUpload)}
    paths = {
        "/v1/reports": _route(ReportsRoute.__call__, api.ReceiptBody, takes=uploads, refused=reports),
        "/v1/shuffled": _route(
            ShuffledRoute.take, api.ShuffledReceipt, takes={SHUFFLED_TYPE: _BYTES}, refused=shuffled
        ),
        f"{collection}/spot-checks": _route(
            ShuffledRoute.spot_checks,
            api.SpotCheckUploads,
            takes=_json(api.SpotChecksBody),
            refused=checks,
            token=True,
        ),
        "/v1/collections": _route(Queries.collections, api.CollectionsBody),
        collection: _route(Queries.collection, api.SealedBody, refused=missing),
        f"{collection}/asks": _route(Queries.asks, api.SealedBody, refused=missing),
        f"{collection}/asks/{{answer}}": _route(Queries.ask, api.SealedBody, refused=missing),
        f"{collection}/counts": _route(Queries.counts, api.CountsBody, refused=missing, token=True),
        f"{collection}/events": events,
        f"{collection}/alarms": _route(Queries.alarms, AlarmsBody, refused=missing, token=True),
        f"{collection}/shuffled": _route(Queries.shuffled, api.ShuffledBody, refused=missing, token=True),
        f"{question}/releases": _route(
            Queries.releases,
            api.ReleasesBody,
            _FROM,
            _TO,
            _query("most", "How many, at most 1000."),
            _query("version", "A version of the collection; by default the one that is served."),
            _LEVEL,
            refused=wrong,
            token=True,
        ),
        f"{question}/releases/latest": _route(Queries.latest, api.ReleaseBody, _LEVEL, refused=wrong, token=True),
        f"{question}/difference": _route(
            Queries.difference,
            api.DifferenceBody,
            _query("of", "The name of a group.", _TEXT, required=True),
            _query("minus", "The name of the group to subtract.", _TEXT, required=True),
            _query("by", "The field that makes the groups; by default the first one.", _TEXT),
            _query("step", "The step; by default the latest."),
            _LEVEL,
            refused=wrong,
            token=True,
        ),
        f"{question}/sql": _route(
            Queries.sql, api.QueryAnswerBody, takes=_json(api.QueryBody), refused=sql, token=True
        ),
        f"{question}/candidates": _route(
            Queries.candidates,
            api.CandidatesBody,
            _query("candidate", "A text, a name or a code; repeated for several.", _SOME_TEXTS, required=True),
            _FROM,
            _TO,
            _LEVEL,
            refused={**wrong, 409: "reports_missing"},
            token=True,
        ),
        "/healthz": _route(Queries.healthz, api.AliveBody),
        "/readyz": ready,
        "/openapi.json": this,
    }
    for path, operations in paths.items():
        names = [
            {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in re.findall(r"{(\w+)}", path)
        ]
        for operation in operations.values():
            operation["parameters"] = names + operation["parameters"]
    return paths


def openapi() -> dict[str, Any]:
    """The OpenAPI document."""
    bodies = [*api.ApiBody.__subclasses__(), api.ProblemBody, JsonUpload]
    _, schemas = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hubbub collector",
            "version": __version__,
            "description": "Randomised reports in, the crowd's statistics with error bars out.",
        },
        "paths": _paths(),
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
