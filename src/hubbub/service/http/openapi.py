"""The OpenAPI description of all routes: summaries are the handlers' docstrings, schemas are made of the bodies."""

import re
from collections.abc import Callable
from functools import partial
from inspect import getdoc
from typing import Any

import msgspec

from hubbub import __version__
from hubbub.service.alarms import AlarmsBody
from hubbub.service.base import api
from hubbub.service.collector.candidates import MOST_CANDIDATES, RangeBody
from hubbub.service.collector.marginals import MOST_RECORDS, MarginalBody, RecordsBody
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
_STEP = _query("step", "The step; by default the latest.")
_LEVEL = _query("level", "Confidence level; 0.95 by default.", msgspec.json.schema(api.Level))
_TOLD = (
    _LEVEL,
    _query("consistency", "Also tell consistent shares, by this method; by default the question's.", _TEXT),
)
_MOST = _query("most", "How many, at most 1000.")
_VERSION = _query("version", "A version of the collection; by default the one that is served.")
_GROUPS = (
    _query("of", "The name of a group.", _TEXT, required=True),
    _query("minus", "The name of the group to subtract.", _TEXT, required=True),
    _query("by", "The field that makes the groups; by default the first one.", _TEXT),
)
_RANGE = (
    _query("from", "The first step; by default that of the horizon."),
    _query("to", "The last step, of the same horizon; by default the latest."),
)
_FIELDS = _query("of", "A field; repeated for several.", _SOME_TEXTS, required=True)
_SOME_FIELDS = _query("of", "A field; repeated for several; all unless given.", _SOME_TEXTS)
_RECORDS = _query("n", f"How many, at most {MOST_RECORDS}; 1000 by default.")
_CANDIDATES = _query("candidate", "A text, a name or a code; repeated for several.", _SOME_TEXTS, required=True)
_COLLECTION = "/v1/collections/{name}"
_QUESTION = f"{_COLLECTION}/questions/{{question}}"


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


def _answered(route: Described, text: str, content: Described | None = None, status: str = "200") -> Described:
    """A route with one more answer, which has no body of its own."""
    route["get"]["responses"][status] = {"description": text, **({} if content is None else {"content": content})}
    return route


def _paths() -> dict[str, Any]:
    wrong, arrives = "invalid_parameter not_found", "too_slow too_large"
    upload = f"malformed unknown_collection outdated_version unsupported_type over_ceiling {arrives} busy stopping"
    batch = f"{upload} unknown_ask not_found late replay under_minimum too_early"
    sql = "reports_missing withheld query_refused no_sql query_busy query_too_slow"
    uploads = {UPLOAD_TYPE: _BYTES, BATCH_TYPE: _BYTES, **_json(JsonUpload)}
    checks, query = _json(api.SpotChecksBody), _json(api.QueryBody)
    public, secret = partial(_route, refused="not_found"), partial(_route, refused="not_found", token=True)
    result = partial(_route, refused=wrong, token=True)
    record = partial(_route, refused=f"{wrong} withheld", token=True)
    paths = {
        "/v1/reports": _route(
            ReportsRoute.__call__,
            api.ReceiptBody,
            takes=uploads,
            refused=f"{upload} not_shuffled over_quota over_sender_quota",
        ),
        "/v1/shuffled": _route(ShuffledRoute.take, api.ShuffledReceipt, takes={SHUFFLED_TYPE: _BYTES}, refused=batch),
        f"{_COLLECTION}/spot-checks": _route(
            ShuffledRoute.spot_checks,
            api.SpotCheckUploads,
            takes=checks,
            refused=f"malformed {wrong} {arrives} busy stopping",
            token=True,
        ),
        "/v1/collections": _route(Queries.collections, api.CollectionsBody),
        _COLLECTION: public(Queries.collection, api.SealedBody),
        f"{_COLLECTION}/asks": public(Queries.asks, api.SealedBody),
        f"{_COLLECTION}/asks/{{answer}}": public(Queries.ask, api.SealedBody),
        f"{_COLLECTION}/models/{{model}}": _answered(
            public(Queries.model, None),
            "32-bit floats, the least significant byte first.",
            {"application/octet-stream": _BYTES},
        ),
        f"{_COLLECTION}/counts": secret(Queries.counts, api.CountsBody),
        f"{_COLLECTION}/events": _answered(
            secret(Queries.events, None), "Events, without end: release, ask, alarm, counts.", {"text/event-stream": {}}
        ),
        f"{_COLLECTION}/alarms": secret(Queries.alarms, AlarmsBody),
        f"{_COLLECTION}/shuffled": secret(Queries.shuffled, api.ShuffledBody),
        f"{_QUESTION}/releases": result(Queries.releases, api.ReleasesBody, _FROM, _TO, _MOST, _VERSION, *_TOLD),
        f"{_QUESTION}/releases/latest": result(Queries.latest, api.ReleaseBody, *_TOLD),
        f"{_QUESTION}/difference": result(Queries.difference, api.DifferenceBody, *_GROUPS, _STEP, _LEVEL),
        f"{_QUESTION}/range": _route(
            Queries.range, RangeBody, *_RANGE, _LEVEL, refused=f"{wrong} reports_missing", token=True
        ),
        f"{_QUESTION}/marginal": record(Queries.marginal, MarginalBody, _FIELDS, _STEP, _LEVEL),
        f"{_QUESTION}/records": record(Queries.records, RecordsBody, _RECORDS, _SOME_FIELDS, _STEP),
        f"{_QUESTION}/sql": _route(
            Queries.sql, api.QueryAnswerBody, takes=query, refused=f"malformed {wrong} {arrives} {sql}", token=True
        ),
        f"{_QUESTION}/candidates": _route(
            Queries.candidates,
            api.CandidatesBody,
            _CANDIDATES,
            _FROM,
            _TO,
            _LEVEL,
            refused=f"{wrong} reports_missing",
            token=True,
        ),
        "/healthz": _route(Queries.healthz, api.AliveBody),
        "/readyz": _answered(
            _route(Queries.readyz, api.ReadyBody), "Reports are not taken.", _json(api.ReadyBody), "503"
        ),
        "/openapi.json": _answered(_route(Queries.openapi, None), "OpenAPI 3.1."),
    }
    for path, operations in paths.items():
        in_path = {"in": "path", "required": True, "schema": _TEXT}
        for operation in operations.values():
            named = [{"name": name, **in_path} for name in re.findall(r"{(\w+)}", path)]
            operation["parameters"] = named + operation["parameters"]
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
