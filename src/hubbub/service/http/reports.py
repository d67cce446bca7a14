"""The routes that take reports: POST /v1/reports as plain ASGI, and POST /v1/shuffled.

The route POST /v1/shuffled, which takes batches from the last shuffler, and the route that makes spot checks.

Spot checks are the collector's own reports, which it looks for in such batches.
"""

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hubbub.collection.names import AnswerName
from hubbub.core.errors import HubbubError
from hubbub.service.base.api import ReceiptBody, RejectedReport, SpotChecksBody, SpotCheckUploads, encode
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.base.logs import log_failed_request
from hubbub.service.http.bodies import JsonAnswer, read_body, read_json
from hubbub.service.http.problems import CONTENT_TYPE, Problem, Tokens, problem_of
from hubbub.service.http.service import Service
from hubbub.service.ingest.frames import TYPES
from hubbub.wire.batches import SHUFFLED_TYPE

PATH = "/v1/reports"
PATIENCE = 30.0
"""Seconds that a request may take to arrive."""
SMALLEST = 32
"""About the bytes of a report in a batch. It estimates the number of reports before the body is read."""

_JSON = (b"content-type", b"application/json")
_ANY_ORIGIN = (b"access-control-allow-origin", b"*")
_PREFLIGHT = [
    _ANY_ORIGIN,
    (b"access-control-allow-methods", b"POST"),
    (b"access-control-allow-headers", b"content-type"),
    (b"access-control-max-age", b"86400"),
]


class ReportsRoute:
    """Takes an upload, a batch or JSON, and answers once it is durable. Any web page may send: cookies are not read."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take reports. The answer means that they are durable; a retry is safe."""
        if scope["method"] == "OPTIONS":
            return await _send(send, 204, b"", _PREFLIGHT)
        try:
            if scope["method"] != "POST":
                raise Problem(405, "not_allowed", headers=[("Allow", "POST, OPTIONS")])
            body = await self._take(scope, receive)
        except Exception as error:
            problem = problem_of(error)
            if problem.slug == "internal":
                log_failed_request(scope, error)
            return await _send_problem(send, problem)
        return await _send(send, 200, body, [_JSON, _ANY_ORIGIN])

    async def _take(self, scope: Scope, receive: Receive) -> bytes:
        senders, headers = self._service.senders, dict(scope["headers"])
        sender = senders.name((scope.get("client") or ("",))[0], scope["headers"])
        length = self._length(headers)
        estimated = length // SMALLEST + 1
        try:
            senders.take(sender, estimated)  # before a byte of the body is read
        except RefusedRequest as refusal:
            self._service.collector.refuse(refusal)
            raise
        content_type = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        if content_type not in TYPES or b"content-encoding" in headers:
            self._service.collector.refuse(RefusedRequest("malformed", ""))
            raise Problem(415, "unsupported_type", f"allowed: {', '.join(TYPES)}, without an encoding")
        try:
            async with asyncio.timeout(PATIENCE) as patience:
                body = await self._read(length, receive, patience)
        except TimeoutError:
            self._service.collector.refuse(RefusedRequest("malformed", ""))
            raise Problem(408, "too_slow", f"at most {PATIENCE:g} seconds") from None
        finally:
            self._service.bodies.done(patience)
        frame = self._service.collector.admit(content_type, body)
        senders.correct(sender, max(frame.count, 1) - estimated)
        receipt = await self._service.writer.submit(frame)
        rejected = [RejectedReport(id=report_id, reason=reason) for report_id, reason in receipt.rejected]
        return encode(ReceiptBody(accepted=receipt.accepted, duplicates=receipt.duplicates, rejected=rejected))

    async def _read(self, length: int, receive: Receive, patience: asyncio.Timeout) -> bytes:
        most = self._service.collector.limits.most_bytes
        if length > most:
            raise self._too_large(most)
        chunks, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "malformed", "the request was not sent to its end")
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > most:
                raise self._too_large(most)
            self._service.bodies.grown(patience, size)
            if not message.get("more_body", False):
                return b"".join(chunks)

    def _length(self, headers: dict[bytes, bytes]) -> int:
        """The length of the body as the header says; the longest allowed, if it does not."""
        length = headers.get(b"content-length", b"")
        return int(length) if length.isdigit() else self._service.collector.limits.most_bytes

    def _too_large(self, most: int) -> RefusedRequest:
        refusal = RefusedRequest("too_large", f"at most {most:,} bytes")
        self._service.collector.refuse(refusal)
        return refusal


async def _send(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def _send_problem(send: Send, problem: Problem) -> None:
    headers = [(b"content-type", CONTENT_TYPE.encode()), _ANY_ORIGIN]
    headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers]
    if problem.status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await _send(send, problem.status, problem.body(), headers)


SHUFFLED_PATH = "/v1/shuffled"
_SMALL = 1 << 10


class ShuffledRoute:
    """Takes the batch of an ask from the last shuffler. The same bytes again get the same answer; others are
    refused.
    """

    def __init__(self, service: Service, tokens: Tokens) -> None:
        self._service, self._tokens = service, tokens
        self._one_batch = asyncio.Lock()  # batches are large: one at a time

    def route(self) -> Route:
        """The route for batches."""
        return Route(SHUFFLED_PATH, self.take, methods=["POST"])

    def checks_route(self) -> Route:
        """The route that makes spot checks."""
        return Route("/v1/collections/{name}/spot-checks", self.spot_checks, methods=["POST"])

    async def spot_checks(self, request: Request) -> Response:
        """Make spot checks. The holder of the token sends them to the first shuffler from another address."""
        self._tokens.check(request)
        collector, name = self._service.collector, request.path_params["name"]
        if name not in collector.collections:
            raise Problem(404, "not_found", "no collection has this name")
        try:
            wanted = await read_json(request, SpotChecksBody, _SMALL)
            answer = AnswerName.read(wanted.answer)
            frame, uploads = await asyncio.to_thread(collector.spot_check, name, answer, wanted.count)
            await self._service.writer.submit(frame)  # stored before anyone sees the uploads
        except HubbubError as error:
            raise problem_of(error) from None
        return JsonAnswer(SpotCheckUploads(uploads=uploads))

    async def take(self, request: Request) -> Response:
        """Take a batch of the last shuffler once. The same bytes again get the same answer."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != SHUFFLED_TYPE:
            raise Problem(415, "unsupported_type", f"allowed: {SHUFFLED_TYPE}")
        collector = self._service.collector
        if not any(collection.shuffle for collection in collector.collections.values()):
            raise Problem(404, "not_found", "no collection here has its reports shuffled")
        try:
            body = await read_body(request, collector.limits.shuffled_bytes, self._service.bodies)
            async with self._one_batch:
                frame = await asyncio.to_thread(collector.admit_shuffled, body)
                receipt = await self._service.writer.submit(frame)
            for name, reason in receipt.rejected:
                raise RefusedRequest(reason, name)
        except HubbubError as error:
            raise problem_of(error) from None
        assert frame.shuffled is not None
        return JsonAnswer(frame.shuffled.receipt())
