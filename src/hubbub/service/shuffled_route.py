"""POST /v1/shuffled: a batch of the last shuffler, opened in a thread of its own, and counted like any request."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.collection.shuffled_batch import SHUFFLED_TYPE
from hubbub.core.errors import HubbubError
from hubbub.service.frames import RefusedRequest
from hubbub.service.problems import Problem, problem_of
from hubbub.service.request_body import read_body
from hubbub.service.service import Service

PATH = "/v1/shuffled"


class ShuffledRoute:
    """Takes what the last shuffler hands on. The same bytes again get the same answer; other bytes are refused.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> ShuffledRoute(Service(example_collector())).route().path
        '/v1/shuffled'
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turn = asyncio.Lock()  # one at a time: they are large

    def route(self) -> Route:
        """Where it is."""
        return Route(PATH, self.take, methods=["POST"])

    async def take(self, request: Request) -> Response:
        """Answer one request."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != SHUFFLED_TYPE:
            raise Problem(415, "unsupported_type", f"allowed: {SHUFFLED_TYPE}")
        collector = self._service.collector
        if not any(collection.shuffle for collection in collector.collections.values()):
            raise Problem(404, "not_found", "no collection here has its reports shuffled")
        try:
            async with self._turn:
                body = await read_body(request, collector.limits.shuffled_bytes)
                frame = await asyncio.to_thread(collector.admit_shuffled, body)
                receipt = await self._service.writer.submit(frame)
            for name, reason in receipt.rejected:
                raise RefusedRequest(reason, name)
        except HubbubError as error:
            raise problem_of(error) from None
        assert frame.shuffled is not None
        return Response(msgspec.json.encode(frame.shuffled.told()), media_type="application/json")
