"""The OpenAPI description of all routes: summaries are the handlers' docstrings, schemas are made of the bodies."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import getdoc
from typing import Any

import msgspec

from hubbub import __version__
from hubbub.service.alarms import AlarmsBody
from hubbub.service.base import api
from hubbub.service.collector.candidates import MOST_CANDIDATES
from hubbub.service.http.problems import CONTENT_TYPE, PROBLEMS
from hubbub.service.http.queries import Queries
from hubbub.service.http.reports import ReportsRoute, ShuffledRoute
from hubbub.wire.batches import BATCH_TYPE, SHUFFLED_TYPE
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, JsonUpload

Described = dict[str, Any]

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_INTEGER = {"type": "integer", "minimum": -(1 << 53), "maximum": 1 << 53}
_TEXT = {"type": "string"}
_SOME_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MOST_CANDIDATES}


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
    refused: str = "",
    takes: Described | None = None,
    token: bool = False,
) -> Described:
    """An operation. `refused`: names of problems. `takes`: the content of the request, which is then a POST."""
    responses: Described = {}
    if answer is not None:
        responses["200"] = {"description": _summary(answer), "content": _json(answer)}
    if answer is api.SealedBody:
        responses["304"] = {"description": "Not changed."}
    content = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemBody"}}}
    for slug in (refused + " no_token foreign_site" * token).split():
        status, title = PROBLEMS[slug]
        before = responses.get(str(status), {"description": ""})["description"]
        responses[str(status)] = {"description": f"{before} {title}".strip(), "content": content}
    operation: Described = {"summary": _summary(handler), "parameters": list(parameters), "responses": responses}
    if takes is not None:
        operation["requestBody"] = {"required": True, "content": takes}
    if token:
        operation["security"] = [{"token": []}]
    return {"get" if takes is None else "post": operation}


def _paths() -> dict[str, Any]:
    collection, question = "/v1/collections/{name}", "/v1/collections/{name}/questions/{question}"
    wrong, arrives = "invalid_parameter not_found", "too_slow too_large"
    upload = f"malformed unknown_collection outdated_version unsupported_type over_ceiling {arrives} busy stopping"
    sql = "reports_missing withheld query_refused no_sql query_busy query_too_slow"
    ready = _route(Queries.readyz, api.ReadyBody)
    ready["get"]["responses"]["503"] = {"description": "Reports are not taken.", "content": _json(api.ReadyBody)}
    events = _route(Queries.events, None, refused="not_found", token=True)
    stream = {"description": "Events, without end: release, ask, alarm, counts.", "content": {"text/event-stream": {}}}
    events["get"]["responses"]["200"] = stream
    this = _route(Queries.openapi, None)
    this["get"]["responses"]["200"] = {"description": "OpenAPI 3.1."}
    uploads = {UPLOAD_TYPE: _BYTES, BATCH_TYPE: _BYTES, **_json(JsonUpload)}
    paths = {
        "/v1/reports": _route(
            ReportsRoute.__call__,
            api.ReceiptBody,
            takes=uploads,
            refused=f"{upload} not_shuffled over_quota over_sender_quota",
        ),
        "/v1/shuffled": _route(
            ShuffledRoute.take,
            api.ShuffledReceipt,
            takes={SHUFFLED_TYPE: _BYTES},
            refused=f"{upload} unknown_ask not_found late replay under_minimum too_early",
        ),
        f"{collection}/spot-checks": _route(
            ShuffledRoute.spot_checks,
            api.SpotCheckUploads,
            takes=_json(api.SpotChecksBody),
            refused=f"malformed {wrong} {arrives} busy stopping",
            token=True,
        ),
        "/v1/collections": _route(Queries.collections, api.CollectionsBody),
        collection: _route(Queries.collection, api.SealedBody, refused="not_found"),
        f"{collection}/asks": _route(Queries.asks, api.SealedBody, refused="not_found"),
        f"{collection}/asks/{{answer}}": _route(Queries.ask, api.SealedBody, refused="not_found"),
        f"{collection}/counts": _route(Queries.counts, api.CountsBody, refused="not_found", token=True),
        f"{collection}/events": events,
        f"{collection}/alarms": _route(Queries.alarms, AlarmsBody, refused="not_found", token=True),
        f"{collection}/shuffled": _route(Queries.shuffled, api.ShuffledBody, refused="not_found", token=True),
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
            Queries.sql,
            api.QueryAnswerBody,
            takes=_json(api.QueryBody),
            refused=f"malformed {wrong} {arrives} {sql}",
            token=True,
        ),
        f"{question}/candidates": _route(
            Queries.candidates,
            api.CandidatesBody,
            _query("candidate", "A text, a name or a code; repeated for several.", _SOME_TEXTS, required=True),
            _FROM,
            _TO,
            _LEVEL,
            refused=f"{wrong} reports_missing",
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
