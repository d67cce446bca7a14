"""What all pages share: the head, the ways between them, headers, files, and small pieces."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hubbub import __version__
from hubbub.dashboard.markup import Child, Html, el, join
from hubbub.questions.collection import Collection

NAMES = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "charts.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "uplot/uPlot.iife.min.js": "text/javascript",
    "uplot/uPlot.min.css": "text/css",
    "uplot/LICENSE": "text/plain",
}
_FOR_GOOD = "public, max-age=31536000, immutable"


class _Asset(NamedTuple):
    body: bytes
    address: str


def _load() -> dict[str, _Asset]:
    assets = {}
    for name in NAMES:
        body = files("hubbub.dashboard").joinpath("static", name).read_bytes()
        assets[name] = _Asset(body, f"/static/{hashlib.sha256(body).hexdigest()[:12]}/{name}")
    return assets


_ASSETS = _load()


def address(name: str) -> str:
    """Where a file is."""
    return _ASSETS[name].address


def asset_route() -> Route:
    """The route that serves them."""

    async def asset(request: Request) -> Response:
        content = _ASSETS.get(request.path_params["name"])
        if content is None or request.url.path != content.address:
            return PlainTextResponse("There is nothing here.", 404)
        headers = {"Cache-Control": _FOR_GOOD, "X-Content-Type-Options": "nosniff"}
        return Response(content.body, headers=headers, media_type=NAMES[request.path_params["name"]])

    return Route("/static/{digest}/{name:path}", asset)


HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without any, browsers do not say where a form was sent from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Nothing from elsewhere, nothing inline, and no copy of results left behind."""

SECTIONS = {"results": "Results", "ingest": "Ingest", "privacy": "Privacy", "collections": "Collection"}
_SECONDS_WITHOUT_PROGRAMS = 60


def path_to(*parts: str, **query: object) -> str:
    """An address on this site."""
    pairs = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in query.items())
    return "/" + "/".join(quote(part, safe="") for part in parts) + (f"?{pairs}" if pairs else "")


@dataclass(frozen=True)
class Page:
    """A page.

    Parameters
    ----------
    title
        What it is about, in a few words.
    content
        What is in it, below the heading.
    collections
        Those that are served, for the way between them.
    collection, section
        The one that it is about, and which of its pages this is.
    live
        Whether it changes by itself.
    lead
        A sentence below the heading.
    notice
        What is to be known before anything else.
    """

    title: str
    content: Child
    collections: Sequence[Collection] = ()
    collection: Collection | None = None
    section: str = ""
    live: bool = False
    lead: Child = None
    notice: str | None = None

    def response(self, status: int = 200, headers: dict[str, str] | None = None, *, public: bool = False) -> Response:
        """The page as an answer; a public one may be kept, and is asked about before it is shown again."""
        caching = {"Cache-Control": "no-cache"} if public else {}
        return Response(self.html(), status, {**HEADERS, **caching, **(headers or {})}, "text/html; charset=utf-8")

    def html(self) -> str:
        feed = path_to("live", self.collection.name) if self.live and self.collection else None
        body = el(
            "body",
            el("a", "Skip to the content", class_="skip", href="#main"),
            el("header", self._brand(), self._ways(), class_="top"),
            el(
                "main",
                el("p", self.notice, class_="notice", role="alert") if self.notice else None,
                el(
                    "header",
                    self._above(),
                    el("h1", self.title),
                    el("p", self.lead, class_="lead") if self.lead else None,
                ),
                self.content,
                id="main",
                tabindex=-1,
            ),
            _footer(),
            data_feed=feed,
        )
        return f"<!doctype html>\n{el('html', self._head(), body, lang='en')}\n"

    def _head(self) -> Html:
        name = f"{self.collection.name} · " if self.collection else ""
        return el(
            "head",
            el("meta", charset="utf-8"),
            el("meta", name="viewport", content="width=device-width, initial-scale=1"),
            el("meta", name="color-scheme", content="light dark"),
            el("title", f"{self.title} · {name}hubbub"),
            el("link", rel="icon", type="image/svg+xml", href=address("icon.svg")),
            el("link", rel="stylesheet", href=address("uplot/uPlot.min.css")) if self.live else None,
            el("link", rel="stylesheet", href=address("style.css")),
            self._programs() if self.live else None,
        )

    def _programs(self) -> Html:
        return join(
            el("script", defer=True, src=address("uplot/uPlot.iife.min.js")),
            el("script", defer=True, src=address("charts.js")),
            el("script", defer=True, src=address("live.js")),
            el("noscript", el("meta", http_equiv="refresh", content=_SECONDS_WITHOUT_PROGRAMS)),
        )

    def _brand(self) -> Html:
        mark = el("span", class_="mark", aria_hidden="true")
        return el("a", mark, "hubbub", class_="brand", href="/")

    def _above(self) -> Html | None:
        if self.collection is None:
            return None
        return el("p", self.collection.title, class_="above")

    def _ways(self) -> Html:
        ways: list[Child] = []
        if len(self.collections) > 1:
            here = self.section or "results"
            links = [
                _link(collection.name, path_to(here, collection.name), current=collection is self.collection and "true")
                for collection in self.collections
            ]
            ways.append(el("nav", el("ul", links), aria_label="Collections", class_="which"))
        if self.collection is not None:
            links = [
                _link(title, path_to(section, self.collection.name), current=section == self.section and "page")
                for section, title in SECTIONS.items()
            ]
            ways.append(el("nav", el("ul", links), aria_label="Pages", class_="pages"))
        status = el("p", id="live", role="status", class_="live") if self.live else None
        return join(ways, status)


def _link(text: str, href: str, *, current: str | bool) -> Html:
    return el("li", el("a", text, href=href, aria_current=current))


def _footer() -> Html:
    text = "Every number here is an estimate, made from reports that were randomised before they were sent."
    return el("footer", el("p", text), el("p", f"hubbub {__version__} · ", el("a", "API", href="/openapi.json")))


def facts(pairs: Iterable[tuple[str, Child]], *, class_: str = "facts") -> Html:
    """A list of names and values; a value of None is left out."""
    items = [el("div", el("dt", name), el("dd", value)) for name, value in pairs if value is not None]
    return el("dl", items, class_=class_)


def numbered(when: Child, step: int) -> Html:
    """A step's time with its number."""
    return join(when, el("span", f" (no. {step:,})", class_="aside"))


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Child]], *, class_: str = "plain") -> Html:
    """A table, the first cell of whose rows names them; a heading that begins with # is of numbers."""
    numeric = [heading.startswith("#") for heading in headings]
    heads = [
        el("th", heading.lstrip("#"), scope="col", class_="number" if number else None)
        for heading, number in zip(headings, numeric, strict=True)
    ]
    body = [
        el(
            "tr",
            el("th", row[0], scope="row"),
            [
                el("td", cell, class_="number" if number else None)
                for cell, number in zip(row[1:], numeric[1:], strict=True)
            ],
        )
        for row in rows
    ]
    inside = el("table", el("caption", caption), el("thead", el("tr", heads)), el("tbody", body), class_=class_)
    return el("div", inside, class_="scroll", tabindex=0, role="region", aria_label=caption)
