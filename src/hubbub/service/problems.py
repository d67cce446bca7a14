"""Errors as RFC 9457 problem documents: a stable type, a title, and the detail of this error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hubbub.core.errors import InvalidValue
from hubbub.core.plugin_guard import PluginFailed
from hubbub.core.spec import Json
from hubbub.service.frames import RefusedRequest
from hubbub.service.reasons import Reason
from hubbub.service.store.base import StoreFailed
from hubbub.service.writer import Busy, Stopped

CONTENT_TYPE = "application/problem+json"
PREFIX = "urn:hubbub:problem:"

_STATUS: dict[Reason, int] = {
    "unknown_collection": 404,
    "outdated_version": 410,
    "malformed": 400,
    "too_large": 413,
    "over_quota": 429,
    "over_sender_quota": 429,
    "over_ceiling": 429,
    "not_shuffled": 403,
    "under_minimum": 422,
    "late": 410,
    "unknown_ask": 404,
    "replay": 409,
    "too_early": 425,
}
_TITLES = {
    "unknown_collection": "No such collection is served here.",
    "outdated_version": "This version of the collection is no longer served.",
    "malformed": "The request is malformed.",
    "unsupported_type": "Reports come as an upload, a batch or JSON.",
    "too_large": "The request is too large.",
    "too_slow": "The request did not arrive in time.",
    "header_too_large": "The header of the request is too large.",
    "over_quota": "More reports than the collection takes.",
    "over_sender_quota": "More reports than are taken from one sender.",
    "over_ceiling": "More reports to one ask than are taken.",
    "not_shuffled": "Reports of this collection come from its shufflers alone.",
    "under_minimum": "A shuffled batch has too few reports.",
    "late": "The time for this is over.",
    "unknown_ask": "This was never asked.",
    "replay": "Another batch was taken under this name.",
    "too_early": "This is not asked yet.",
    "busy": "Too many reports are waiting.",
    "stopping": "The collector is stopping.",
    "no_store": "The store does not answer.",
    "not_found": "There is nothing here.",
    "reports_missing": "Single reports that this needs are not where they should be.",
    "withheld": "Too few reports to tell anything.",
    "query_refused": "The query cannot be answered.",
    "query_busy": "Queries are answered one at a time.",
    "query_too_slow": "The query takes too long.",
    "no_sql": "This collector was installed without SQL.",
    "not_allowed": "This method is not allowed here.",
    "no_token": "This needs a token.",
    "foreign_site": "A page of another site asked.",
    "invalid_parameter": "A parameter has a value that is not allowed.",
    "plugin_failed": "A class of another package failed.",
    "internal": "The collector failed.",
}


class Problem(Exception):
    """An error that is answered with a problem document."""

    def __init__(
        self,
        status: int,
        slug: str,
        detail: str = "",
        *,
        headers: Sequence[tuple[str, str]] = (),
        more: Mapping[str, Json] | None = None,
    ) -> None:
        self.status = status
        self.slug = slug
        self.detail = detail
        self.headers = headers
        self.more = dict(more or {})
        super().__init__(f"{status} {slug}: {detail}")

    def body(self) -> bytes:
        """The document as JSON."""
        title = _TITLES.get(self.slug, HTTPStatus(self.status).phrase)
        document = {"type": PREFIX + self.slug, "title": title, "status": self.status, "detail": self.detail}
        return msgspec.json.encode({key: value for key, value in (document | self.more).items() if value != ""})

    def response(self) -> Response:
        """The HTTP response with the document."""
        response = Response(self.body(), self.status, media_type=CONTENT_TYPE)
        for name, value in self.headers:
            response.headers.append(name, value)
        return response


def problem_of(error: Exception) -> Problem:
    """The problem document of an error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RefusedRequest):
        status = _STATUS[error.reason]
        headers = [("Retry-After", str(max(math.ceil(error.wait), 1)))] if status == 429 else []
        if error.reason == "over_sender_quota":
            headers.append(("Connection", "close"))  # later requests on this connection are not read
        return Problem(status, error.reason, error.detail, headers=headers)
    if isinstance(error, Busy | Stopped):
        slug = "busy" if isinstance(error, Busy) else "stopping"
        return Problem(503, slug, str(error), headers=[("Retry-After", "1")])
    if isinstance(error, StoreFailed):
        return Problem(503, "no_store", headers=[("Retry-After", "1")])
    if isinstance(error, InvalidValue):
        return Problem(400, "invalid_parameter", str(error))
    if isinstance(error, PluginFailed):
        return Problem(503, "plugin_failed", str(error))
    if isinstance(error, HTTPException):
        slug = {404: "not_found", 405: "not_allowed"}.get(error.status_code, "malformed")
        return Problem(error.status_code, slug, headers=list((error.headers or {}).items()))
    return Problem(500, "internal")  # no detail: it may hold private data


async def _handle(_request: Request, error: Exception) -> Response:
    return problem_of(error).response()


def handlers() -> dict[Any, Any]:
    """Starlette's exception handlers, by type of error."""
    return dict.fromkeys((Problem, HTTPException, InvalidValue, StoreFailed, PluginFailed, Exception), _handle)
