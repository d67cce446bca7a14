"""A web site with a page that uses the client, and a collector that remembers everything it is sent."""

import json
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from hubbub.collection import Keys, ManualClock, seal
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
from hubbub.wire.upload import Entry, decode_upload_json, json_size

PAGE = b"""<!doctype html><meta charset="utf-8"><title>page</title>
<script type="module">
import * as hubbub from "/hubbub.mjs";
window.hubbub = hubbub;
window.time = 0;
window.open_client = (options) => hubbub.connect({ server: location.origin, now: () => window.time, ...options });
</script>"""
TYPES = {".html": "text/html; charset=utf-8", ".mjs": "text/javascript", ".js": "text/javascript", ".css": "text/css"}


class Site:
    """Files of some folders, and the routes of a collector for one collection, signed with its keys."""

    def __init__(self, collection: Collection, *folders: Path) -> None:
        self.collection, self.folders = collection, folders
        self.keys = self.signer = Keys.new()
        self.clock = ManualClock(1e9)
        self.asks: list[tuple[str, Ask]] | None = None
        """What is asked, where a test wants to ask something of its own."""
        self.published_asks: list[dict[str, Any]] | None = None
        """The same, as it is published, letter for letter."""
        self.changed: dict[str, Any] = {}
        """What of the signed document is other than the collection's."""
        self.round = 1
        self.status = 200
        """What uploads are answered with; 0 takes them in and hangs up."""
        self.uploads: list[bytes] = []
        self.entries: dict[bytes, Entry] = {}
        self.duplicates = 0
        self.replays = 0
        self.reject: str | None = None
        self.late_before = 0
        """Of earlier steps than this everything is late."""
        self.headers: list[dict[str, str]] = []
        self.tag = ""
        """The tag of every document, by which a server could know a browser again."""
        self.tags_back: list[str] = []
        """The paths that were asked for with the tag of before."""
        self.any_origin = False
        """Whether pages of other sites may send."""
        self.collector: Any = None
        """A transport to a real collector, where that is to answer in the site's place."""
        self._lock = Lock()
        handler = type("Handler", (_Handler,), {"site": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def step(self) -> int:
        return self.collection.step_at(self.clock.now())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def sealed(self, spec: Any) -> dict[str, str]:
        return seal(spec, self.signer.private)

    def current(self) -> list[tuple[str, Ask]]:
        """The first asks of every question, in the step that it is: several, where it asks in parts."""
        if self.asks is not None:
            return self.asks
        found = []
        for question in self.collection.questions:
            asked = next(self.collection.protocol(question))
            for ask in asked if isinstance(asked, list) else [asked]:
                assert isinstance(ask, Ask)
                found.append((question, replace(ask, step=self.step)))
        return found

    def document(self) -> dict[str, Any]:
        """The document of the collection, before it is signed."""
        return {**self.collection.spec(), **self.changed}

    def published(self) -> dict[str, Any]:
        asks = self.published_asks
        if asks is None:
            parts: Counter[str] = Counter()
            asks = []
            for name, ask in self.current():
                asks.append(self.as_published(name, ask, parts[name]))
                parts[name] += 1
        return {
            "format": 1,
            "collection": self.collection.name,
            "version": self.collection.version,
            "step": self.step,
            "asks": asks,
            "closes": self.collection.opens(self.step + 1),
        }

    def as_published(self, name: str, ask: Ask, part: int = 0) -> dict[str, Any]:
        """An ask of the present round."""
        known = name in self.collection.questions
        closes = self.collection.round_times(name, 0, self.step, self.round)[1] if known else 1e12
        named = {"question": name, "run": 0, "step": ask.step, "round": self.round, "part": part}
        return {**named, "closes": closes, "ask": ask.spec()}

    def take(self, body: bytes) -> dict[str, Any]:
        """Count an upload, each id once."""
        assert len(body) == json_size(self.document()["frame_bytes"])
        upload = decode_upload_json(body)
        assert upload.collection == self.collection.name
        with self._lock:
            self.uploads.append(body)
            late = any(entry.step < self.late_before for entry in upload.entries)
            if reason := self.reject or ("late" if late else None):
                return {"rejected": [{"id": entry.report_id.hex(), "reason": reason} for entry in upload.entries]}
            accepted = duplicates = 0
            for entry in upload.entries:
                known = self.entries.setdefault(entry.report_id, entry)
                self.replays += known != entry
                accepted += known is entry
                duplicates += known is not entry
            self.duplicates += duplicates
            return {"accepted": accepted, "duplicates": duplicates, "rejected": []}

    def mechanism_of(self, entry: Entry) -> ReportFormat:
        """The mechanism of what an entry answers."""
        return [ask.mechanism for name, ask in self.current() if name == entry.question][entry.part]

    def reports(self, question: str | None = None) -> list[Reports]:
        """The reports that came, each checked to be one of its question's mechanism."""
        return [
            entry.reports(self.mechanism_of(entry))
            for entry in self.entries.values()
            if question in (None, entry.question)
        ]


class _Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        site, path = self.site, self.path.partition("?")[0]
        if "if-none-match" in self.headers:
            site.tags_back.append(path)
        if site.collector is not None and path.startswith("/v1/"):
            return self._relay(None)
        home = f"/v1/collections/{site.collection.name}"
        if path == home:
            return self._json(site.sealed(site.document()))
        if path == f"{home}/asks":
            return self._json(site.sealed(site.published()))
        if path == "/page":
            return self._answer(200, TYPES[".html"], PAGE)
        if path == "/settings.json":
            return self._json({"keys": [site.keys.public.hex()], "collection": site.collection.name})
        for folder in site.folders:
            file = folder / (path.strip("/") or "index.html")
            if file.is_file():
                return self._answer(200, TYPES[file.suffix], file.read_bytes())
        return self._answer(404, "text/plain", b"")

    def do_OPTIONS(self) -> None:
        self._answer(204, "text/plain", b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.site.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.site.collector is not None:
            return self._relay(body)
        if self.site.status in (0, 200):
            response = self.site.take(body)
        if self.site.status == 200:
            return self._json(response)
        if self.site.status == 0:
            self.close_connection = True
            return None
        return self._answer(self.site.status, "application/problem+json", b"{}")

    def _relay(self, body: bytes | None) -> None:
        headers = {"Content-Type": self.headers.get("content-type", "")}
        with self.site._lock:
            answer = self.site.collector.request(self.command, self.path, headers, body)
        self._answer(answer.status, "application/json", answer.body)

    def _json(self, value: Any) -> None:
        self._answer(200, "application/json", json.dumps(value).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if self.site.any_origin:
            for name, value in (("origin", "*"), ("methods", "POST"), ("headers", "content-type")):
                self.send_header(f"access-control-allow-{name}", value)
        self.send_header("cache-control", "no-cache" if self.site.tag else "no-store")
        if self.site.tag:
            self.send_header("etag", self.site.tag)
        self.end_headers()
        self.wfile.write(body)
