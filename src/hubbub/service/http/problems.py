"""Errors as RFC 9457 problem documents, and the tokens that let their holders read results."""

import base64
import binascii
import hashlib
import hmac
import math
import os
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import PluginFailed
from hubbub.random.source import Random
from hubbub.service.base.api import ProblemBody, encode
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.collector.writer import Busy, Stopped
from hubbub.service.store.base import StoreFailed

CONTENT_TYPE = "application/problem+json"
PREFIX = "urn:hubbub:problem:"

PROBLEMS = {
    "unknown_collection": (404, "No such collection is served here."),
    "outdated_version": (410, "This version of the collection is no longer served."),
    "malformed": (400, "The request is malformed."),
    "unsupported_type": (415, "Reports come as an upload, a batch or JSON."),
    "too_large": (413, "The request is too large."),
    "too_slow": (408, "The request did not arrive in time."),
    "header_too_large": (431, "The header of the request is too large."),
    "over_quota": (429, "More reports than the collection takes."),
    "over_sender_quota": (429, "More reports than are taken from one sender."),
    "over_ceiling": (429, "More reports to one ask than are taken."),
    "not_shuffled": (403, "Reports of this collection come from its shufflers alone."),
    "under_minimum": (422, "A shuffled batch has too few reports."),
    "late": (410, "The time for this is over."),
    "unknown_ask": (404, "This was never asked."),
    "replay": (409, "Another batch was taken under this name."),
    "too_early": (425, "This is not asked yet."),
    "busy": (503, "Too many reports are waiting."),
    "stopping": (503, "The collector is stopping."),
    "no_store": (503, "The store does not answer."),
    "not_found": (404, "There is nothing here."),
    "reports_missing": (409, "Single reports that this needs are not where they should be."),
    "withheld": (409, "Too few reports to tell anything."),
    "query_refused": (422, "The query cannot be answered."),
    "query_busy": (503, "Queries are answered one at a time."),
    "query_too_slow": (503, "The query takes too long."),
    "no_sql": (501, "This collector was installed without SQL."),
    "not_allowed": (405, "This method is not allowed here."),
    "no_token": (401, "This needs a token."),
    "foreign_site": (403, "A page of another site asked."),
    "invalid_parameter": (400, "A parameter has a value that is not allowed."),
    "plugin_failed": (503, "A class of another package failed."),
    "internal": (500, "The collector failed."),
}
"""The status and the title of each problem."""


class Problem(Exception):
    """An error that is answered with a problem document."""

    def __init__(
        self,
        status: int,
        slug: str,
        detail: str = "",
        *,
        headers: Sequence[tuple[str, str]] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.slug = slug
        self.detail = detail
        self.headers = headers
        self.more = dict(more or {})
        super().__init__(f"{status} {slug}: {detail}")

    def body(self) -> bytes:
        """The document as JSON."""
        _, title = PROBLEMS.get(self.slug, (self.status, HTTPStatus(self.status).phrase))
        return encode(ProblemBody(PREFIX + self.slug, title, self.status, self.detail, **self.more))

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
        status, _ = PROBLEMS[error.reason]
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


_SHORTEST = 16


class Tokens:
    """The tokens that open query routes: as a bearer token, or as the password that a browser asks for."""

    def __init__(self, tokens: list[str]) -> None:
        for token in tokens:
            if len(token) < _SHORTEST:
                raise InvalidValue("token", "one that is not shown", f"at least {_SHORTEST} characters")
        # Hashes have one length, so that the time of a comparison does not depend on a token's.
        self._digests = [_digest(token) for token in tokens]

    def allow(self, header: str) -> bool:
        """Whether an Authorization header holds a valid token. The time it takes does not depend on the token."""
        offered = _digest(_offered_token(header))
        return any([hmac.compare_digest(offered, digest) for digest in self._digests])  # noqa: C419 - all are compared

    def check(self, request: Request) -> None:
        """Refuse a request without a valid token, and one that a page of another site made."""
        if from_another_site(request):
            raise Problem(403, "foreign_site")
        if not self.allow(request.headers.get("authorization", "")):
            # One header each: browsers read only the first challenge of a header.
            challenges = ['Bearer realm="hubbub"', 'Basic realm="hubbub", charset="UTF-8"']
            raise Problem(401, "no_token", headers=[("WWW-Authenticate", challenge) for challenge in challenges])


def from_another_site(request: Request) -> bool:
    """Whether a page of another site made a request: browsers send a user's credentials whichever site asks.

    Browsers say so in one of two headers. Programs send neither, and have no credentials but their own.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")  # plain HTTP has no sec-fetch-site
    return origin is not None and origin.partition("://")[2].lower() != request.headers.get("host", "").lower()


def token_file(path: Path) -> str:
    """The token in a file. The first call makes the file, readable by its owner alone."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    token = Random().bytes(24).hex()
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def _offered_token(header: str) -> str:
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
