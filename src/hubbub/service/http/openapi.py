"""The OpenAPI description of all routes. A test holds the two together."""

from __future__ import annotations

from typing import Any

from hubbub import __version__
from hubbub.service.collector.candidates import MOST_CANDIDATES
from hubbub.service.http.problems import CONTENT_TYPE
from hubbub.service.http.schemas import SCHEMAS
from hubbub.wire.batches import BATCH_TYPE, SHUFFLED_TYPE
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
_QUESTION = {**_NAME, "name": "question"}
_ANSWER = {**_NAME, "name": "answer"}
_LEVEL_SCHEMA = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_LEVEL = {"name": "level", "in": "query", "schema": _LEVEL_SCHEMA, "description": "Confidence level; 0.95 by default."}
_CANDIDATES = {
    "name": "candidate",
    "in": "query",
    "required": True,
    "schema": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_CANDIDATES},
    "description": "A text, a name or a code; repeated for several candidates.",
}


def _query(name: str, text: str) -> dict[str, Any]:
    limits = {"type": "integer", "minimum": -(1 << 53), "maximum": 1 << 53}
    return {"name": name, "in": "query", "schema": limits, "description": text}


def _text(name: str, text: str, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": "string"}, "description": text, "required": required}


def _answer(schema: str, text: str) -> dict[str, Any]:
    return {"description": text, "content": {JSON_TYPE: {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}


def _problem(text: str) -> dict[str, Any]:
    return {"description": text, "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


_TOKEN_REFUSALS = {"401": _problem("A token is needed."), "403": _problem("A page of another site asked.")}


def _get(
    summary: str, answers: dict[str, Any], parameters: tuple[Any, ...] = (), *, token: bool = False
) -> dict[str, Any]:
    operation: dict[str, Any] = {"summary": summary, "parameters": list(parameters), "responses": dict(answers)}
    if parameters:
        operation["responses"]["404"] = _problem("Nothing has this name.")
    if token:
        operation["security"] = [{"token": []}]
        operation["responses"] |= _TOKEN_REFUSALS
    return {"get": operation}


_SQL = {
    "summary": "Ask a table by SQL: a SELECT of counts, or EXPLAIN of one.",
    "parameters": [_NAME, _QUESTION],
    "security": [{"token": []}],
    "requestBody": {
        "required": True,
        "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Query"}}},
    },
    "responses": {
        "200": _answer("QueryAnswer", "Groups, and estimates with intervals."),
        "400": _problem("The request is malformed."),
        **_TOKEN_REFUSALS,
        "404": _problem("Nothing has this name, or it is no table."),
        "408": _problem("The request did not arrive in time."),
        "409": _problem("Reports that it needs are missing, or too few."),
        "413": _problem("The query is too long."),
        "422": _problem("The query cannot be answered: why, where, and what could be."),
        "501": _problem("The collector was installed without SQL."),
        "503": _problem("Another query is being answered, or this one takes too long."),
    },
}


def _paths() -> dict[str, Any]:
    collection = "/v1/collections/{name}"
    sealed = {"200": _answer("Sealed", "Signed canonical JSON."), "304": {"description": "Not changed."}}
    wrong = {"400": _problem("A parameter has a value that is not allowed.")}
    refusals = {
        "400": "malformed",
        "403": "not_shuffled: the collection's reports go to its first shuffler",
        "404": "unknown_collection",
        "408": "too_slow",
        "410": "outdated_version",
        "413": "too_large",
        "415": "unsupported_type",
        "429": "over_quota, over_sender_quota or over_ceiling",
        "503": "busy or stopping",
    }
    post = {
        "summary": "Send reports; the answer means that they are durable. A retry is safe.",
        "requestBody": {
            "required": True,
            "content": {
                UPLOAD_TYPE: _BYTES,
                BATCH_TYPE: _BYTES,
                JSON_TYPE: {"schema": {"$ref": "#/components/schemas/Upload"}},
            },
        },
        "responses": {
            "200": _answer("Receipt", "The outcome of each report."),
            **{status: _problem(text) for status, text in refusals.items()},
        },
    }
    shuffled_refusals = {
        "400": "malformed",
        "404": "unknown_collection, unknown_ask, or nothing here is shuffled",
        "408": "too_slow",
        "409": "replay: another batch was taken under this name",
        "410": "late or outdated_version",
        "413": "too_large",
        "415": "unsupported_type",
        "422": "under_minimum",
        "425": "too_early",
        "429": "over_ceiling",
        "503": "busy or stopping",
    }
    shuffled = {
        "summary": "A batch of the last shuffler, taken once; the same bytes again get the same answer.",
        "requestBody": {"required": True, "content": {SHUFFLED_TYPE: _BYTES}},
        "responses": {
            "200": _answer("ShuffledReceipt", "What the batch held."),
            **{status: _problem(text) for status, text in shuffled_refusals.items()},
        },
    }
    check_refusals = {
        "400": "malformed",
        "401": "no_token",
        "403": "foreign_site",
        "404": "not_found",
        "408": "too_slow",
        "413": "too_large",
        "503": "busy",
    }
    checks = {
        "summary": "Make spot checks: uploads of the collector's own, to be sent to the first shuffler from elsewhere.",
        "parameters": [_NAME],
        "requestBody": {
            "required": True,
            "content": {JSON_TYPE: {"schema": {"$ref": "#/components/schemas/SpotChecks"}}},
        },
        "security": [{"token": []}],
        "responses": {
            "200": _answer("SpotCheckUploads", "In base64."),
            **{status: _problem(text) for status, text in check_refusals.items()},
        },
    }
    return {
        "/v1/reports": {"post": post},
        "/v1/collections": _get("What is served.", {"200": _answer("Collections", "Names and versions.")}),
        collection: _get("A signed collection.", sealed, (_NAME,)),
        f"{collection}/asks": _get("The open asks, signed.", sealed, (_NAME,)),
        f"{collection}/asks/{{answer}}": _get(
            "One signed ask, by the name of its answers; for shufflers.",
            sealed,
            (_NAME, _ANSWER),
        ),
        "/v1/shuffled": {"post": shuffled},
        f"{collection}/spot-checks": {"post": checks},
        f"{collection}/counts": _get(
            "The outcomes of reports, and the open asks.", {"200": _answer("Counts", "Counters.")}, (_NAME,), token=True
        ),
        f"{collection}/events": _get(
            "Server-sent events: release, ask, alarm, counts.",
            {"200": {"description": "Events, without end.", "content": {"text/event-stream": {}}}},
            (_NAME,),
            token=True,
        ),
        f"{collection}/alarms": _get(
            "The alarms: their guarantees, their states, and the latest events.",
            {"200": _answer("Alarms", "All of them.")},
            (_NAME,),
            token=True,
        ),
        f"{collection}/shuffled": _get(
            "The latest shuffled batches, and what each coalition of parties can learn from them.",
            {"200": _answer("Shuffled", "By question.")},
            (_NAME,),
            token=True,
        ),
        f"{collection}/questions/{{question}}/releases": _get(
            "The latest releases of a question, oldest first, through the `versions` that do not change the question. "
            "`earlier`: the versions by which other releases are found.",
            {"200": _answer("Releases", "With intervals."), **wrong},
            (
                _NAME,
                _QUESTION,
                _query("from", "The first step."),
                _query("to", "The last."),
                _query("most", "How many, at most 1000."),
                _query("version", "A version of the collection; by default the one that is served."),
                _LEVEL,
            ),
            token=True,
        ),
        f"{collection}/questions/{{question}}/releases/latest": _get(
            "The latest release of a question.",
            {"200": _answer("Release", "With intervals."), **wrong},
            (_NAME, _QUESTION, _LEVEL),
            token=True,
        ),
        f"{collection}/questions/{{question}}/difference": _get(
            "The difference of two groups, of a question whose answers are by group.",
            {"200": _answer("Difference", "With intervals."), **wrong},
            (
                _NAME,
                _QUESTION,
                _text("of", "The name of a group.", required=True),
                _text("minus", "The name of the group to subtract.", required=True),
                _text("by", "The field that makes the groups; by default the first one."),
                _query("step", "The step; by default the latest."),
                _LEVEL,
            ),
            token=True,
        ),
        f"{collection}/questions/{{question}}/sql": {"post": _SQL},
        f"{collection}/questions/{{question}}/candidates": _get(
            "The shares of any candidates, of a question whose single reports are kept.",
            {
                "200": _answer("Candidates", "With intervals."),
                **wrong,
                "409": _problem("Reports that it needs are missing."),
            },
            (_NAME, _QUESTION, _CANDIDATES, _query("from", "The first step."), _query("to", "The last."), _LEVEL),
            token=True,
        ),
        "/healthz": _get("Whether the process answers.", {"200": _answer("Alive", "It does.")}),
        "/readyz": _get(
            "Whether reports are taken.",
            {"200": _answer("Ready", "They are."), "503": _answer("Ready", "They are not.")},
        ),
        "/openapi.json": _get("This document.", {"200": {"description": "OpenAPI 3.1."}}),
    }


def openapi() -> dict[str, Any]:
    """The OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hubbub collector",
            "version": __version__,
            "description": "Randomised reports in, the crowd's statistics with error bars out.",
        },
        "paths": _paths(),
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
