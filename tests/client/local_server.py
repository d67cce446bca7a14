"""A small collector for the client's tests: the routes of the contract on the standard library's HTTP server.

It runs the collection's own protocols: asks go out under the wall clock's steps, reports are folded once an id, and
releases come out. It keeps every body that it was sent.
"""

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

from hubbub.authoring.toml import read_collection
from hubbub.client import Response, Unreachable
from hubbub.collection import Keys, seal
from hubbub.collection.names import AnswerName
from hubbub.collection.sealing import ASKS, tag_of
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Release
from hubbub.questions.collection import Collection
from hubbub.wire.upload import JSON_TYPE, decode_upload, decode_upload_json
from tests.shared.small_collections import THEME, collection_text

KEYS = Keys(b"k" * 32)
TEXT = collection_text(
    privacy={"event": 1.0, "user": 20.0, "minimum_batch": 20},
    fields={"theme": THEME},
    questions={"popular": {"kind": "histogram", "field": "theme", "epsilon": 1.0}},
)


def survey(text: str = TEXT, **changes: str) -> Collection:
    """The collection of a text, some of whose lines are changed: {"event": "2.0"} sets `event = 2.0`."""
    for key, value in changes.items():
        lines = [f"{key} = {value}" if line.startswith(f"{key} =") else line for line in text.splitlines()]
        text = "\n".join(lines)
    return read_collection(text)  # devices are given whatever a server signs


class LocalServer:
    """The server's state, and a transport to it that needs no network: `request` is what the HTTP handler calls."""

    def __init__(self, collection: Collection, keys: Keys = KEYS) -> None:
        self.collection, self.keys = collection, keys
        self.conversations = {name: Conversation(collection.protocol(name)) for name in collection.questions}
        self.step: int | None = None
        self.open: dict[str, tuple[str, Ask]] = {}
        """What is asked by each question; of one that asks in parts, its first part."""
        self.parts: dict[str, list[tuple[str, Ask]]] = {}
        self.rounds: dict[str, int] = {}
        self.names: dict[AnswerName, str] = {}
        self.reports: dict[str, dict[bytes, bytes]] = {}
        self.releases: dict[str, list[Release]] = {name: [] for name in collection.questions}
        self.documents: dict[str, Any] = {}
        self.seen: list[tuple[str, str]] = []
        self.statuses: list[int] = []
        self.bodies: list[bytes] = []
        self.tally: Counter[str] = Counter()
        self.faults: list[str] = []
        self.rejections: dict[str, str] = {}
        self.lock = threading.Lock()
        self.publish_collection(collection)

    # -- what is served ---------------------------------------------------------------------------------------

    def publish_collection(self, collection: Collection) -> None:
        self.documents[f"/v1/collections/{collection.name}"] = seal(collection.spec(), self.keys.private)
        self.documents["/v1/collections"] = {"collections": [{"name": collection.name, "version": collection.version}]}

    def publish_asks(
        self,
        asks: Sequence[tuple[str, Ask] | tuple[str, Ask, int]],
        step: int,
        closes: float,
        changes: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        listed: list[dict[str, Any]] = []
        for question, ask, *part in asks:
            round = 1 + sum(published["question"] == question for published in listed if not part)
            round = max(round, self.rounds.get(question, 1))
            name = AnswerName(question, 0, ask.step, round, part[0] if part else 0)
            self.names[name] = ask.ask_id
            listed.append({**name._asdict(), "closes": closes, "ask": ask.spec()})
        spec = {
            "format": ASKS.version,
            "collection": self.collection.name,
            "version": self.collection.version,
            "step": step,
            "asks": listed,
            "closes": closes,
            **changes,
        }
        self.documents[f"/v1/collections/{self.collection.name}/asks"] = seal(spec, self.keys.private)

    def begin(self, step: int) -> None:
        """Publish the first asks of a step."""
        self.step, self.open, self.parts, self.rounds = step, {}, {}, {}
        for name, conversation in self.conversations.items():
            self._listen(name, conversation)
        half = any(terms.rounds > 1 for terms in self.collection.terms.values())
        self._publish(self.collection.opens(step) + self.collection.step_seconds / (2 if half else 1))

    def half(self) -> None:
        """Close the first asks of adaptive streams, and publish their second ones."""
        assert self.step is not None
        for name, conversation in self.conversations.items():
            if self.collection.terms[name].rounds > 1:
                self._reply(name, conversation)
                self._listen(name, conversation)
        self._publish(self.collection.closes(self.step))

    def end(self) -> None:
        """Close the step: every question has its release."""
        for name, conversation in self.conversations.items():
            while name in self.open:
                self._reply(name, conversation)
                self._listen(name, conversation)

    def _listen(self, name: str, conversation: Conversation) -> None:
        message = conversation.message
        if isinstance(message, Release):
            self.releases[name].append(conversation.listen())  # type: ignore[arg-type]
            self.open.pop(name, None)
            return
        assert self.step is not None
        self.rounds[name] = self.rounds.get(name, 0) + 1
        asked = message if isinstance(message, list) else [message]
        parts = [(ask.ask_id, replace(ask, step=self.step)) for ask in asked if isinstance(ask, Ask)]
        self.open[name], self.parts[name] = parts[0], parts

    def _reply(self, name: str, conversation: Conversation) -> None:
        if name not in self.open:
            return
        sketches = []
        for _, ask in self.parts[name]:
            sketch = ask.mechanism.empty()
            for report in self.reports.get(ask.ask_id, {}).values():
                sketch = sketch + ask.mechanism.accumulate(ask.mechanism.read_bare(report))
            sketches.append(sketch)
        conversation.reply_all(sketches)
        self.open.pop(name)

    def _publish(self, closes: float) -> None:
        assert self.step is not None
        asks = [(name, ask, part) for name in self.open for part, (_, ask) in enumerate(self.parts[name])]
        self.publish_asks(asks, self.step, closes)

    # -- what is asked ----------------------------------------------------------------------------------------

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        with self.lock:
            self.seen.append((method, path))
            fault = self.faults.pop(0) if self.faults else ""
            if fault == "unreachable":
                raise Unreachable("no route")
            if fault.isdigit():
                return Response(int(fault), {}, b"{}")
            if method == "POST" and path == "/v1/reports" and body is not None:
                answer = self._take({name.lower(): value for name, value in headers.items()}, body)
                if fault == "lost answer":
                    raise Unreachable("the answer was lost")
                if fault == "garbled answer":
                    return Response(200, {}, b"<html>")
                return answer
            answer = self._give(path, headers)
            self.statuses.append(answer.status)
            return answer

    def _give(self, path: str, headers: Mapping[str, str]) -> Response:
        if path not in self.documents:
            return Response(404, {}, b"{}")
        document = self.documents[path]
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        sealed = isinstance(document, dict) and {"key", "payload"} <= document.keys()
        etag = tag_of(document) if sealed else '"none"'
        if headers.get("If-None-Match") == etag:
            return Response(304, {"etag": etag}, b"")
        return Response(200, {"etag": etag}, raw)

    def _take(self, headers: Mapping[str, str], body: bytes) -> Response:
        self.bodies.append(body)
        upload = decode_upload_json(body) if headers.get("content-type") == JSON_TYPE else decode_upload(body)
        answer: dict[str, Any] = {"accepted": 0, "duplicates": 0, "rejected": []}
        for entry in upload.entries:
            ask_id = self.names.get(entry.name, str(entry.name))
            stored = self.reports.setdefault(ask_id, {})
            reason = self.rejections.get(ask_id)
            if (upload.collection, upload.version) != (self.collection.name, self.collection.version):
                reason = "outdated_version"
            if reason is None and stored.get(entry.report_id, entry.report) != entry.report:
                reason = "replay"
            if reason is not None:
                self.tally[reason] += 1
                answer["rejected"].append({"id": entry.report_id.hex(), "reason": reason})
            elif entry.report_id in stored:
                answer["duplicates"] += 1
                self.tally["duplicate"] += 1
            else:
                stored[entry.report_id] = entry.report
                answer["accepted"] += 1
                self.tally["accepted"] += 1
        return Response(200, {}, json.dumps(answer).encode())


class Listening:
    """The server on a real port of this machine, for as long as the block lasts."""

    def __init__(self, server: LocalServer) -> None:
        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length) if self.command == "POST" else None
                try:
                    answer = server.request(self.command, self.path, dict(self.headers), body)
                except Unreachable:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = handle_any

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> str:
        self._thread.start()
        return self.url

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
