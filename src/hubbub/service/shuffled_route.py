"""The route POST /v1/shuffled, which takes batches from the last shuffler, and the route that makes spot checks.

Spot checks are the collector's own reports, which it looks for in such batches.
"""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.collection.names import AnswerName
from hubbub.collection.shuffled_batch import SHUFFLED_TYPE
from hubbub.core.errors import HubbubError
from hubbub.service.auth import Tokens
from hubbub.service.frames import RefusedRequest
from hubbub.service.problems import Problem, problem_of
from hubbub.service.request_body import read_body
from hubbub.service.service import Service

PATH = "/v1/shuffled"
_SMALL = 1 << 10


class _Checks(msgspec.Struct, forbid_unknown_fields=True):
    answer: str
    count: int


_checks = msgspec.json.Decoder(_Checks)


class ShuffledRoute:
    """Takes the batch of an ask from the last shuffler. The same bytes again get the same answer; others are refused."""

    def __init__(self, service: Service, tokens: Tokens) -> None:
        self._service, self._tokens = service, tokens
        self._one_batch = asyncio.Lock()  # batches are large: one at a time

    def route(self) -> Route:
        """The route for batches."""
        return Route(PATH, self.take, methods=["POST"])

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
            wanted = _checks.decode(await read_body(request, _SMALL))
            answer = AnswerName.read(wanted.answer)
            frame, uploads = await asyncio.to_thread(collector.spot_check, name, answer, wanted.count)
            await self._service.writer.submit(frame)  # stored before anyone sees the uploads
        except msgspec.DecodeError as error:
            raise Problem(400, "malformed", str(error)) from None
        except HubbubError as error:
            raise problem_of(error) from None
        return Response(msgspec.json.encode({"uploads": uploads}), media_type="application/json")

    async def take(self, request: Request) -> Response:
        """Answer one request."""
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
        return Response(msgspec.json.encode(frame.shuffled.receipt()), media_type="application/json")
