"""The routes that read: collections and asks for devices; results and counters for holders of a token."""

import re
from collections.abc import Sequence

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hubbub.collection.names import AnswerName
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.noise import check_level
from hubbub.protocols.marginals.field_marginals import FieldMarginals
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.service.alarms import alarms_body
from hubbub.service.base import api
from hubbub.service.base.trusted_clock import clock_body
from hubbub.service.collector.candidates import ask_kept, group_difference, range_of_steps
from hubbub.service.collector.marginals import marginal_body, records_body
from hubbub.service.collector.shuffled_batches import shuffled_body
from hubbub.service.http.bodies import JsonAnswer, read_json
from hubbub.service.http.problems import Problem, Tokens
from hubbub.service.http.service import Service
from hubbub.service.ingest.open_asks import SignedDocument
from hubbub.service.kept.archive import ReportsMissing
from hubbub.service.rounds.releases import released_marginals, told_release
from hubbub.service.store.base import ReleaseRow

MOST_RELEASES = 1000
"""The most releases in one answer."""

_LONGEST_CACHED = 3600
_LAST_STEP = 1 << 62
_ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
_INTEGER = re.compile(r"-?[0-9]{1,19}")


class Queries:
    """All routes that read from the collector."""

    def __init__(self, service: Service, tokens: Tokens) -> None:
        self._service = service
        self._collector = service.collector
        self._tokens = tokens
        from hubbub.service.http.openapi import openapi  # which describes the routes below

        self._description = api.encode(openapi())  # encoded once: it is long

    def routes(self) -> list[Route]:
        """The routes for Starlette."""
        collection = "/v1/collections/{name}"
        return [
            Route("/v1/collections", self.collections),
            Route(collection, self.collection),
            Route(f"{collection}/asks", self.asks),
            Route(f"{collection}/asks/{{answer}}", self.ask),
            Route(f"{collection}/models/{{model}}", self.model),
            Route(f"{collection}/counts", self.counts),
            Route(f"{collection}/events", self.events),
            Route(f"{collection}/alarms", self.alarms),
            Route(f"{collection}/shuffled", self.shuffled),
            Route(f"{collection}/questions/{{question}}/releases", self.releases),
            Route(f"{collection}/questions/{{question}}/releases/latest", self.latest),
            Route(f"{collection}/questions/{{question}}/difference", self.difference),
            Route(f"{collection}/questions/{{question}}/range", self.range),
            Route(f"{collection}/questions/{{question}}/marginal", self.marginal),
            Route(f"{collection}/questions/{{question}}/records", self.records),
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
            api.ServedCollection(name, collection.version, collection.title, collection.collection_id)
            for name, collection in self._collector.collections.items()
        ]
        return JsonAnswer(api.CollectionsBody(collections=served), headers=_ANY_ORIGIN)

    async def collection(self, request: Request) -> Response:
        """A signed collection."""
        return self._send(request, self._collector.specs[self._collection(request).name])

    async def asks(self, request: Request) -> Response:
        """The open asks of a collection, signed."""
        return self._send(request, self._collector.asks[self._collection(request).name])

    async def ask(self, request: Request) -> Response:
        """One signed ask, by the name of its answers, as long as reports to it may come: for shufflers."""
        try:
            answer = AnswerName.read(request.path_params["answer"])
        except DecodeError as error:
            raise Problem(404, "not_found", str(error)) from None
        document = self._collector.ask_of(self._collection(request).name, answer)
        if document is None:
            raise Problem(404, "not_found", f"no ask {answer} now")
        return self._send(request, document)

    async def model(self, request: Request) -> Response:
        """The bytes of a public model, by their SHA-256, as long as devices are asked about it."""
        content = self._collector.model(self._collection(request).name, request.path_params["model"])
        if content is None:
            raise Problem(404, "not_found", "no ask is about such a model now")
        headers = {"Cache-Control": f"public, max-age={_LONGEST_CACHED}", **_ANY_ORIGIN}
        return Response(content, headers=headers, media_type="application/octet-stream")

    def _send(self, request: Request, document: SignedDocument) -> Response:
        seconds = document.fresh_seconds(self._collector.clock.now(), most=_LONGEST_CACHED)
        headers = {"ETag": document.etag, "Cache-Control": f"public, max-age={seconds}", **_ANY_ORIGIN}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if document.etag in known or "*" in known:
            return Response(status_code=304, headers=headers)
        return Response(document.body, headers=headers, media_type="application/json")

    # -- with a token -----------------------------------------------------------------------------------------

    def releases(self, request: Request) -> Response:
        """The releases of a question, oldest first."""
        self._tokens.check(request)
        collection, question = self._collection(request), request.path_params["question"]
        version = _integer(request, "version", collection.version)
        series = self._collector.history.series(collection.name, question, version)
        if not series:
            raise Problem(404, "not_found", f"version {version} of the collection has no such question")
        rows = self._collector.releases(
            collection.name,
            question,
            first=_integer(request, "from", 0),
            last=_integer(request, "to", _LAST_STEP),
            most=min(max(_integer(request, "most", MOST_RELEASES), 1), MOST_RELEASES),
            version=version,
        )
        answer = api.ReleasesBody(
            question=question,
            shape=series[-1].questions[question].shape(),
            versions=[each.version for each in series],
            earlier=list(self._collector.history.ended(collection.name).get(question, [])),
            releases=[_release(request, row, series, question) for row in rows],
        )
        return JsonAnswer(answer)

    def latest(self, request: Request) -> Response:
        """The latest release of a question."""
        self._tokens.check(request)
        collection, question = self._question(request)
        rows = self._collector.releases(collection.name, question, first=0, last=_LAST_STEP, most=1)
        if not rows:
            raise Problem(404, "not_found", f"{question} has no release yet")
        series = self._collector.history.series(collection.name, question)
        return JsonAnswer(_release(request, rows[0], series, question))

    def difference(self, request: Request) -> Response:
        """The difference of two groups in the latest release, or in that of a given step."""
        self._tokens.check(request)
        collection, question = self._question(request)
        shape = collection.questions[question].shape()
        if not shape.groups:
            raise Problem(404, "not_found", f"the answers to {question} are not by group")
        row = self._row(request, collection, question)
        by, of, minus = (request.query_params.get(name) for name in ("by", "of", "minus"))
        level = _level(request)
        return JsonAnswer(group_difference(row, shape, by=by, of=of or "", minus=minus or "", level=level))

    def range(self, request: Request) -> Response:
        """The mean share and the sum of the shares over a range of steps, of a question that follows changes."""
        self._tokens.check(request)
        collection, question = self._question(request)
        if not collection.questions[question].shape().horizon:
            raise Problem(404, "not_found", f"{question} follows no values over a horizon of steps")
        given = {name: key for name, key in (("first", "from"), ("last", "to")) if key in request.query_params}
        steps = {name: _integer(request, key, 0) for name, key in given.items()}
        try:
            answer = range_of_steps(self._collector, collection, question, **steps, level=_level(request))
        except ReportsMissing as error:
            raise Problem(409, "reports_missing", str(error)) from error
        if answer is None:
            raise Problem(404, "not_found", f"{question} has no such release yet")
        return JsonAnswer(answer)

    def marginal(self, request: Request) -> Response:
        """The shares of all combinations of values of some fields, in the latest release or in that of a step."""
        question, step, released = self._released(request)
        of = request.query_params.getlist("of")
        return JsonAnswer(marginal_body(released, of, question=question, step=step, level=_level(request)))

    def records(self, request: Request) -> Response:
        """Records of people who do not exist, drawn from the latest release or from that of a step."""
        question, step, released = self._released(request)
        of, n = request.query_params.getlist("of"), _integer(request, "n", 1000)
        return JsonAnswer(records_body(released, of, n, question=question, step=step, rng=Random()))

    def _released(self, request: Request) -> tuple[str, int, FieldMarginals]:
        self._tokens.check(request)
        collection, question = self._question(request)
        if collection.questions[question].shape().form != "marginals":
            raise Problem(404, "not_found", f"the answers to {question} are no marginals")
        body = told_release(self._row(request, collection, question))
        released = released_marginals(collection.questions[question], body)
        if released is None:
            raise Problem(409, "withheld", body.withheld or "nobody answered")
        return question, body.step, released

    def _row(self, request: Request, collection: Collection, question: str) -> ReleaseRow:
        """The release of the step that a request names, or the latest."""
        first, last = 0, _LAST_STEP
        if "step" in request.query_params:
            first = last = _integer(request, "step", 0)
        rows = self._collector.releases(collection.name, question, first=first, last=last, most=1)
        if not rows:
            raise Problem(404, "not_found", f"{question} has no such release yet")
        return rows[-1]

    async def sql(self, request: Request) -> Response:
        """The answer to an SQL query over the kept reports of a table question."""
        self._tokens.check(request)
        collection, question = self._question(request)
        query = await read_json(request, api.QueryBody)
        answer = await run_in_threadpool(
            self._service.tables.answer,
            collection.name,
            question,
            query.sql,
            first=query.first,
            last=query.last,
            level=query.level,
            explain=query.explain,
            tables=query.tables,
        )
        return JsonAnswer(msgspec.convert({"question": question, **answer.to_json()}, api.QueryAnswerBody))

    def candidates(self, request: Request) -> Response:
        """The shares of any candidates, estimated from kept reports."""
        self._tokens.check(request)
        collection, question = self._question(request)
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
                last=_integer(request, "to", _LAST_STEP),
                level=_level(request),
            )
        except ReportsMissing as error:
            raise Problem(409, "reports_missing", str(error)) from error
        return JsonAnswer(answer)

    async def counts(self, request: Request) -> Response:
        """How many reports of a collection had which outcome, and its open asks."""
        self._tokens.check(request)
        collection = self._collection(request)
        now = self._collector.clock.now()
        open_asks = self._collector.board.open(collection.collection_id, now)
        taken = self._collector.taken(open_asks)
        asks = [
            api.OpenAskBody(question=ask.question, step=ask.ask.step, reports=taken[ask.key], closes=ask.closes)
            for ask in open_asks
        ]
        return JsonAnswer(api.CountsBody(outcomes=self._service.counts(collection.name), open=asks))

    async def events(self, request: Request) -> Response:
        """A stream of a collection's events."""
        self._tokens.check(request)
        events = self._service.hub.listen(self._collection(request).name)
        return StreamingResponse(events, headers={"Cache-Control": "no-store"}, media_type="text/event-stream")

    def alarms(self, request: Request) -> Response:
        """The alarms of a collection: their guarantees, their states, and the latest events."""
        self._tokens.check(request)
        collection = self._collection(request)
        statuses = [sender.status(collection.name) for sender in self._service.webhooks]
        webhooks = [status for status in statuses if status is not None]
        return JsonAnswer(alarms_body(self._collector.alarms, collection, webhooks))

    def shuffled(self, request: Request) -> Response:
        """The latest shuffled batches of a collection, and what each coalition of parties can learn from them."""
        self._tokens.check(request)
        return JsonAnswer(shuffled_body(self._collector.store, self._collection(request)))

    # -- about the service ------------------------------------------------------------------------------------

    async def healthz(self, _request: Request) -> Response:
        """Whether the process answers."""
        return JsonAnswer(api.AliveBody(alive=True))

    async def readyz(self, _request: Request) -> Response:
        """Whether reports are taken; if not, which parts are not ready. The clock's state is included either way."""
        problems = await self._service.not_ready()
        trusted = self._collector.trusted
        clock = msgspec.UNSET if trusted is None else clock_body(trusted.status())
        standing = self._collector.standing()
        process = msgspec.UNSET if standing is None else api.ProcessBody(**standing._asdict())
        answer = api.ReadyBody(ready=not problems, not_ready=problems, clock=clock, process=process)
        return JsonAnswer(answer, 503 if problems else 200)

    async def openapi(self, _request: Request) -> Response:
        """The description of all routes."""
        return Response(self._description, headers=_ANY_ORIGIN, media_type="application/json")

    def _collection(self, request: Request) -> Collection:
        name = request.path_params["name"]
        if name not in self._collector.collections:
            raise Problem(404, "not_found", "no collection has this name")
        return self._collector.collections[name]

    def _question(self, request: Request) -> tuple[Collection, str]:
        collection, question = self._collection(request), request.path_params["question"]
        if question not in collection.questions:
            raise Problem(404, "not_found", "the collection has no such question")
        return collection, question


def _integer(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not _INTEGER.fullmatch(text) or not -_LAST_STEP <= int(text) <= _LAST_STEP:
        raise InvalidValue(name, text, "an integer")
    return int(text)


def _release(request: Request, row: ReleaseRow, series: Sequence[Collection], name: str) -> api.ReleaseBody:
    """A release with the number of the version that asked it, made consistent as the request or the question says."""
    (version,) = (each.version for each in series if each.collection_id == row.collection)
    question, wanted = series[-1].questions[name], request.query_params.get("consistency")
    if wanted is not None:
        question = question.told_by(wanted)
    return told_release(row, version=version, level=_level(request), question=question)


def _level(request: Request) -> float:
    text = request.query_params.get("level", "0.95")
    try:
        return check_level(float(text))
    except ValueError:
        raise InvalidValue("level", text, "a probability between 0 and 1") from None
