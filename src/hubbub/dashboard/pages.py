"""The routes of the pages."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from hubbub.dashboard.answers import LEVEL
from hubbub.dashboard.collections import collection_page, overview_page
from hubbub.dashboard.groups import ChosenPair
from hubbub.dashboard.horizon_range import AskedRange
from hubbub.dashboard.ingest import ingest_page
from hubbub.dashboard.layout import HEADERS, Page, asset_route, path_to
from hubbub.dashboard.markup import el
from hubbub.dashboard.privacy import privacy_page
from hubbub.dashboard.query_box import BoxQuery, answer_csv
from hubbub.dashboard.reader import Reader
from hubbub.dashboard.results import question_page, results_page
from hubbub.questions.collection import Collection
from hubbub.service.http.bodies import MOST_BODY, read_body
from hubbub.service.http.problems import Tokens, from_another_site
from hubbub.service.http.service import Service

_MOST_DIGITS = 12
_Handler: TypeAlias = Callable[[Request], Response]
_About: TypeAlias = Callable[[Request, Collection], Page | None]
_MakeAnswer: TypeAlias = Callable[[Collection, str, BoxQuery | None], Response]


def routes(reader: Reader, *, allow: Callable[[str], bool] | None = None) -> list[BaseRoute]:
    """All pages, from `/` on.

    `reader`: what they show. `allow`: whether an Authorization header may see results and counters; None shows them to
    everyone. What is promised and what is asked anyone may read, as every device does.
    """
    pages = _Pages(reader, allow)
    return [
        Route("/", pages.overview),
        Route("/results/{name}", pages.about(pages.results, private=True)),
        Route("/results/{name}/{question}", pages.about(pages.question, private=True)),
        Route("/results/{name}/{question}", pages.ask, methods=["POST"]),
        Route("/results/{name}/{question}/answer.csv", pages.csv, methods=["POST"]),
        Route("/ingest/{name}", pages.about(pages.ingest, private=True)),
        Route("/privacy/{name}", pages.about(pages.privacy)),
        Route("/collections/{name}", pages.about(pages.collection)),
        Route("/live/{name}", pages.live),
        asset_route(),
    ]


def dashboard(tokens: Tokens | None) -> Callable[[Service], Sequence[BaseRoute]]:
    """The pages as `hubbub.service.http.server.run` takes them: `run(..., routes=dashboard(tokens))`.

    `tokens`: who may see results and counters; None shows them to everyone who can reach the address.
    """

    def pages(service: Service) -> Sequence[BaseRoute]:
        return routes(Reader(service), allow=None if tokens is None else tokens.allow)

    return pages


def _unless_known(request: Request, response: Response) -> Response:
    """The page, or status 304 if the reader already has it."""
    tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
    response.headers["ETag"] = tag
    if tag not in [known.strip().removeprefix("W/") for known in request.headers.get("if-none-match", "").split(",")]:
        return response
    return Response(status_code=304, headers={name: response.headers[name] for name in ("ETag", "Cache-Control")})


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


class _Pages:
    """Functions that are not asynchronous run in a thread of their own: reading the store may take a moment."""

    def __init__(self, reader: Reader, allow: Callable[[str], bool] | None) -> None:
        self._reader = reader
        self._allow = allow

    # -- of all collections -----------------------------------------------------------------------------------

    def overview(self, request: Request) -> Response:
        if not self._may(request):
            return self._locked()
        served = self._reader.collections()
        if len(served) == 1:
            return RedirectResponse(path_to("results", served[0].name), headers=HEADERS)
        lead = "What many devices say together, and none of them alone."
        content, notice = overview_page(self._reader, served), self._reader.notice()
        return Page("What the crowd says", content, served, live=True, lead=lead, notice=notice).response()

    async def live(self, request: Request) -> Response:
        if not self._may(request):
            return self._locked()
        collection = self._named(request)
        if collection is None:
            return self._missing()
        feed = self._reader.listen(collection.name)
        return StreamingResponse(feed, headers=HEADERS, media_type="text/event-stream")

    # -- of one -----------------------------------------------------------------------------------------------

    def about(self, make: _About, *, private: bool = False) -> _Handler:
        """Answer with a page about the collection that the address names."""

        def answer(request: Request) -> Response:
            if private and not self._may(request):
                return self._locked()
            collection = self._named(request)
            page = None if collection is None else make(request, collection)
            return self._missing() if page is None else _unless_known(request, page.response(public=not private))

        return answer

    def results(self, _request: Request, collection: Collection) -> Page:
        lead = f"Estimates, with intervals that hold the truth {LEVEL:.0%} of the time."
        content = results_page(self._reader, collection)
        return self._page("Results", content, collection, "results", live=True, lead=lead)

    def question(self, request: Request, collection: Collection) -> Page | None:
        name = request.path_params["question"]
        wanted, version = _number(request, "value"), _number(request, "version")
        shown = collection if version is None else self._reader.version(collection.name, name, version)
        if shown is None or name not in shown.questions:
            return None
        pair, fields = ChosenPair.read(request.query_params), request.query_params.getlist("of")
        steps = AskedRange.read(request.query_params)
        content = question_page(self._reader, shown, name, wanted, pair, fields=fields, steps=steps)
        title = shown.questions[name].title or name
        if shown.version != collection.version:
            return self._page(f"{title} (version {shown.version})", content, collection, "results")
        return self._page(title, content, collection, "results", live=True)

    async def ask(self, request: Request) -> Response:
        """The page of a question with the answer of a query."""
        return await self._answer(request, self._answer_page)

    async def csv(self, request: Request) -> Response:
        """The answer of a query as a file."""
        return await self._answer(request, self._answer_file)

    async def _answer(self, request: Request, make: _MakeAnswer) -> Response:
        """Answer a query that the form of a page of this site asks, and no other site's."""
        if not self._may(request):
            return self._locked()
        if from_another_site(request):
            return Page("Another site asked", el("p", "Queries are asked on this site's own pages.")).response(403)
        collection, name = self._named(request), request.path_params["question"]
        if collection is None or name not in collection.questions:
            return self._missing()
        body = await read_body(request, MOST_BODY)
        query = BoxQuery.read(dict(parse_qsl(body.decode(errors="replace"))))
        return await run_in_threadpool(make, collection, name, query)

    def _answer_page(self, collection: Collection, name: str, query: BoxQuery | None) -> Response:
        content = question_page(self._reader, collection, name, query=query)
        return self._page(collection.questions[name].title or name, content, collection, "results").response()

    def _answer_file(self, collection: Collection, name: str, query: BoxQuery | None) -> Response:
        if query is None:
            return self._missing()
        answer = self._reader.query(collection.name, name, query)
        if isinstance(answer, str):
            return Response(answer + "\n", 422, HEADERS, "text/plain; charset=utf-8")
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}.csv"'}
        return Response(answer_csv(answer), headers=headers, media_type="text/csv; charset=utf-8")

    def ingest(self, _request: Request, collection: Collection) -> Page:
        lead = "Reports as they come in, and what became of them."
        return self._page("Ingest", ingest_page(self._reader, collection), collection, "ingest", live=True, lead=lead)

    def privacy(self, _request: Request, collection: Collection) -> Page:
        lead = "What is promised, to whom, over what time."
        return self._page("Privacy", privacy_page(self._reader, collection), collection, "privacy", lead=lead)

    def collection(self, _request: Request, collection: Collection) -> Page:
        return self._page("Collection", collection_page(collection), collection, "collections")

    # -- what they share --------------------------------------------------------------------------------------

    def _may(self, request: Request) -> bool:
        return self._allow is None or self._allow(request.headers.get("authorization", ""))

    def _named(self, request: Request) -> Collection | None:
        name = request.path_params["name"]
        return next((collection for collection in self._reader.collections() if collection.name == name), None)

    def _page(
        self, title: str, content: str, collection: Collection, section: str, *, live: bool = False, lead: str = ""
    ) -> Page:
        served, notice = self._reader.collections(), self._reader.notice()
        return Page(title, content, served, collection, section, live, lead or None, notice)

    def _missing(self) -> Response:
        way = el("p", "Begin ", el("a", "at the beginning", href="/"), ".")
        return Page("There is nothing here", way, self._reader.collections()).response(404)

    def _locked(self) -> Response:
        """A browser asks its user for the token, as a password."""
        text = el("p", "Results are for holders of a token: give it as the password, with any name.")
        public = el("p", "What is promised anyone may read:")
        served = [
            el("li", el("a", collection.title, href=path_to("privacy", collection.name)))
            for collection in self._reader.collections()
        ]
        page = Page("A token is needed", [text, public, el("ul", served)])
        return page.response(401, {"WWW-Authenticate": 'Basic realm="hubbub", charset="UTF-8"'})
