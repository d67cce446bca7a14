"""The routes that read: collections and asks for devices, results and counters for holders of a token."""

from __future__ import annotations

import re

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hubbub.collection import Collection
from hubbub.collection.names import AnswerName
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.spec import Json
from hubbub.service.alarms.alarms_json import alarms_json
from hubbub.service.archive import ReportsMissing
from hubbub.service.auth import Tokens
from hubbub.service.bulletin import Bulletin
from hubbub.service.candidates import ask_kept
from hubbub.service.differences import group_difference
from hubbub.service.openapi import openapi
from hubbub.service.problems import Problem
from hubbub.service.releases import release_json
from hubbub.service.service import Service
from hubbub.service.shuffled_shown import shuffled_json
from hubbub.service.sql_request import MOST_BODY, read_query, whole_body
from hubbub.service.trusted_clock import clock_json

MOST_RELEASES = 1000
"""How many releases one answer holds, unless fewer are asked for."""

_LONGEST_KEPT = 3600
_FARTHEST = 1 << 62
_ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
_INTEGER = re.compile(r"-?[0-9]{1,19}")


class Queries:
    """Answers from what the collector has published.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> Queries(Service(example_collector()), Tokens([])).routes()[0].path
        '/v1/collections'
    """

    def __init__(self, service: Service, tokens: Tokens) -> None:
        self._service = service
        self._collector = service.collector
        self._tokens = tokens
        self._description = msgspec.json.encode(openapi())  # written once: it is long

    def routes(self) -> list[Route]:
        """All of them."""
        collection = "/v1/collections/{name}"
        return [
            Route("/v1/collections", self.collections),
            Route(collection, self.collection),
            Route(f"{collection}/asks", self.asks),
            Route(f"{collection}/asks/{{answer}}", self.ask),
            Route(f"{collection}/counts", self.counts),
            Route(f"{collection}/events", self.events),
            Route(f"{collection}/alarms", self.alarms),
            Route(f"{collection}/shuffled", self.shuffled),
            Route(f"{collection}/questions/{{question}}/releases", self.releases),
            Route(f"{collection}/questions/{{question}}/releases/latest", self.latest),
            Route(f"{collection}/questions/{{question}}/difference", self.difference),
            Route(f"{collection}/questions/{{question}}/sql", self.sql, methods=["POST"]),
            Route(f"{collection}/questions/{{question}}/candidates", self.candidates),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/openapi.json", self.openapi),
        ]

    # -- for devices ------------------------------------------------------------------------------------------

    async def collections(self, _request: Request) -> Response:
        """The names and versions that are served."""
        served = [
            {
                "name": name,
                "version": collection.version,
                "title": collection.title,
                "collection_id": collection.collection_id,
            }
            for name, collection in self._collector.collections.items()
        ]
        return JSONResponse({"collections": served}, headers=_ANY_ORIGIN)

    async def collection(self, request: Request) -> Response:
        """A collection, sealed."""
        return self._post(request, self._collector.specs[self._named(request).name])

    async def asks(self, request: Request) -> Response:
        """The open asks of a collection, sealed."""
        return self._post(request, self._collector.asks[self._named(request).name])

    async def ask(self, request: Request) -> Response:
        """One ask, sealed, by the name of its answers, until they are late: for shufflers."""
        try:
            answer = AnswerName.read(request.path_params["answer"])
        except DecodeError as error:
            raise Problem(404, "not_found", str(error)) from None
        bulletin = self._collector.ask_of(self._named(request).name, answer)
        if bulletin is None:
            raise Problem(404, "not_found", f"no ask {answer} now")
        return self._post(request, bulletin)

    def _post(self, request: Request, bulletin: Bulletin) -> Response:
        kept = bulletin.fresh_seconds(self._collector.clock.now(), most=_LONGEST_KEPT)
        headers = {"ETag": bulletin.etag, "Cache-Control": f"public, max-age={kept}", **_ANY_ORIGIN}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if bulletin.etag in known or "*" in known:
            return Response(status_code=304, headers=headers)
        return Response(bulletin.body, headers=headers, media_type="application/json")

    # -- with a token -----------------------------------------------------------------------------------------

    def releases(self, request: Request) -> Response:
        """The releases of a question, oldest first."""
        self._tokens.check(request)
        collection, question = self._asked(request)
        rows = self._collector.releases(
            collection.name,
            question,
            first=_integer(request, "from", 0),
            last=_integer(request, "to", _FARTHEST),
            most=min(max(_integer(request, "most", MOST_RELEASES), 1), MOST_RELEASES),
        )
        level, shape = _level(request), collection.questions[question].shape(collection.setting(question))
        told = [release_json(row, level=level) for row in rows]
        return JSONResponse({"question": question, "shape": shape.spec(), "releases": told})

    def latest(self, request: Request) -> Response:
        """The latest release of a question."""
        self._tokens.check(request)
        collection, question = self._asked(request)
        rows = self._collector.releases(collection.name, question, first=0, last=_FARTHEST, most=1)
        if not rows:
            raise Problem(404, "not_found", f"{question} has no release yet")
        return JSONResponse(release_json(rows[0], level=_level(request)))

    def difference(self, request: Request) -> Response:
        """One group minus another, in the latest release or that of a step."""
        self._tokens.check(request)
        collection, question = self._asked(request)
        shape = collection.questions[question].shape(collection.setting(question))
        if not shape.groups:
            raise Problem(404, "not_found", f"{question} is not told by group")
        first, last = 0, _FARTHEST
        if "step" in request.query_params:
            first = last = _integer(request, "step", 0)
        rows = self._collector.releases(collection.name, question, first=first, last=last, most=1)
        if not rows:
            raise Problem(404, "not_found", f"{question} has no such release yet")
        given = request.query_params
        of, minus = given.get("of", ""), given.get("minus", "")
        told = group_difference(rows[-1], shape, by=given.get("by"), of=of, minus=minus, level=_level(request))
        return JSONResponse(told)

    async def sql(self, request: Request) -> Response:
        """The answer of a query over the kept reports of a table question; it is made beside everything else."""
        self._tokens.check(request)
        collection, question = self._asked(request)
        asked = read_query(await whole_body(request, MOST_BODY))
        answer = await run_in_threadpool(
            self._service.tables.answer,
            collection.name,
            question,
            asked.sql,
            first=asked.first,
            last=asked.last,
            level=asked.level,
            explain=asked.explain,
        )
        return JSONResponse({"question": question, **answer.to_json()})

    def candidates(self, request: Request) -> Response:
        """The shares of any candidates, from single reports that are kept."""
        self._tokens.check(request)
        collection, question = self._asked(request)
        if not collection.questions[question].keeps:
            raise Problem(404, "not_found", f"the reports of {question} are not kept")
        try:
            answer = ask_kept(
                self._collector.store,
                self._collector.archive,
                collection,
                question,
                request.query_params.getlist("candidate"),
                first=_integer(request, "from", 0),
                last=_integer(request, "to", _FARTHEST),
                level=_level(request),
            )
        except ReportsMissing as error:
            raise Problem(409, "reports_missing", str(error)) from error
        return JSONResponse(answer)

    async def counts(self, request: Request) -> Response:
        """What became of a collection's reports, and what is open now."""
        self._tokens.check(request)
        collection = self._named(request)
        now = self._collector.clock.now()
        asked = [
            {"question": window.question, "step": window.ask.step, "reports": window.sketch.n, "closes": window.closes}
            for window in self._collector.board.open(collection.collection_id, now)
        ]
        return JSONResponse({"outcomes": self._service.counts(collection.name), "open": asked})

    async def events(self, request: Request) -> Response:
        """Events of a collection as they come."""
        self._tokens.check(request)
        listening = self._service.hub.listen(self._named(request).name)
        return StreamingResponse(listening, headers={"Cache-Control": "no-store"}, media_type="text/event-stream")

    def alarms(self, request: Request) -> Response:
        """The alarms of a collection: what they promise, their state now, and the latest events."""
        self._tokens.check(request)
        collection = self._named(request)
        told = [sender.status(collection.name) for sender in self._service.webhooks]
        webhooks: list[Json] = [status for status in told if status is not None]
        return JSONResponse({**alarms_json(self._collector.alarms, collection), "webhooks": webhooks})

    def shuffled(self, request: Request) -> Response:
        """The latest shuffled batches of a collection, and who must work together to learn what of them."""
        self._tokens.check(request)
        return JSONResponse(shuffled_json(self._collector.store, self._named(request)))

    # -- about the service ------------------------------------------------------------------------------------

    async def healthz(self, _request: Request) -> Response:
        """Whether the process answers at all."""
        return JSONResponse({"alive": True})

    async def readyz(self, _request: Request) -> Response:
        """Whether reports are taken; if not, what is not ready. A clock in doubt is told either way."""
        problems = await self._service.not_ready()
        answer: dict[str, Json] = {"ready": not problems, "not_ready": dict(problems)}
        if self._collector.trusted is not None:
            answer["clock"] = clock_json(self._collector.trusted.status())
        return JSONResponse(answer, 503 if problems else 200)

    async def openapi(self, _request: Request) -> Response:
        """The description of all routes."""
        return Response(self._description, headers=_ANY_ORIGIN, media_type="application/json")

    def _named(self, request: Request) -> Collection:
        name = request.path_params["name"]
        if name not in self._collector.collections:
            raise Problem(404, "not_found", "no collection has this name")
        return self._collector.collections[name]

    def _asked(self, request: Request) -> tuple[Collection, str]:
        collection, question = self._named(request), request.path_params["question"]
        if question not in collection.questions:
            raise Problem(404, "not_found", "the collection has no such question")
        return collection, question


def _integer(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not _INTEGER.fullmatch(text) or not -_FARTHEST <= int(text) <= _FARTHEST:
        raise InvalidValue(name, text, "an integer")
    return int(text)


def _level(request: Request) -> float:
    text = request.query_params.get("level", "0.95")
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise InvalidValue("level", text, "a probability between 0 and 1")
    return level
