"""Plays a history of an adversarial server to Python's client, as `browser_adversary.mjs` does to the browser's."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hubbub.client import Client, NotReady, Response, Unreachable
from hubbub.collection import ManualClock
from hubbub.collection.names import AnswerName
from hubbub.core.errors import HubbubError
from hubbub.wire.upload import decode_upload
from tests.client.device import look_again, store_of


class Player:
    """A device with two processes on one folder, and the server that they are told of.

    What is told is every answer that was kept, and the id of the document in force, by event.
    """

    def __init__(self, folder: Path, public: str) -> None:
        self.folder, self.public = folder, public
        self.clock, self.time, self.boot = ManualClock(0.0), 0.0, 0.0
        self.clients: list[Client | None] = [None, None]
        self.documents: tuple[Any, Any] = ({}, {})
        self.losing = False
        self.tab, self.event = 0, 0
        self.answers: dict[str, dict[str, Any]] = {}
        self.received: list[tuple[str, str]] = []
        self.in_force: list[str] = []
        self.errors: Counter[str] = Counter()

    def play(self, events: list[list[Any]]) -> dict[str, Any]:
        try:
            for self.event, (kind, *arguments) in enumerate(events):
                getattr(self, f"_{kind}")(*arguments)
                self.in_force.append(self._document_id())
        finally:
            self._close()
        answers = [{"id": report_id, **answer} for report_id, answer in self.answers.items()]
        return {"answers": answers, "heard": self.received, "in_force": self.in_force, "errors": dict(self.errors)}

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        if body is None:
            return Response(200, {}, json.dumps(self.documents[path.endswith("/asks")]).encode())
        self.received += [(entry.report_id.hex(), entry.report.hex()) for entry in decode_upload(body).entries]
        if self.losing:
            raise Unreachable("nobody heard the answer")
        return Response(200, {}, b'{"rejected": []}')

    def _time(self, time: int, wall: int) -> None:
        self.time = time / 1000
        self.clock.set(wall / 1000)

    def _serve(self, collection: Any, asks: Any) -> None:
        self.documents = (collection, asks)

    def _losing(self, losing: bool) -> None:
        self.losing = losing

    def _failing(self, _: int) -> None:
        """A full disk is the browser's: what Python writes is a transaction of SQLite, see `test_client_crash`."""

    def _open(self, tab: int) -> None:
        """Start a process; with the first, the machine too."""
        if tab == 0:
            self._close()
            self.boot = self.time
        for at in range(2):
            client = self.clients[at]
            if at == tab and client is not None:
                client.close()
            if at == tab or client is None:
                options: Any = {"clock": self.clock, "monotonic": lambda: self.time - self.boot, "jitter": 0.0}
                self.clients[at] = Client(self.folder, self, self.public, collection="c", **options)

    def _record(self, field: str, value: int) -> None:
        client = self.clients[self.tab]
        if client is not None:
            try:
                client.record(field, value)
            except NotReady as error:
                self.errors[str(error)] += 1

    def _tick(self, tab: int) -> None:
        self.tab, client = tab, self.clients[tab]
        assert client is not None
        look_again(client)
        try:
            client.tick()
            self._keep(client)
            client.upload()
            refused = {name for name in client.status().counts if name.startswith("refused: ")}
            self.errors.update(name.removeprefix("refused: ") for name in refused)
        except HubbubError as error:
            self.errors[str(error)] += 1

    def _keep(self, client: Client) -> None:
        store = store_of(client)
        with store.transaction():
            waiting, in_force = store.outbox.waiting(), store.in_force()
        for answer in waiting:
            name = AnswerName.read(answer.name)
            assert in_force is not None
            record = {**name._asdict(), "version": in_force[0], "cover": not answer.report, "event": self.event}
            self.answers.setdefault(answer.id.hex(), {**record, "report": (answer.report or b"").hex()})

    def _document_id(self) -> str:
        client = self.clients[0]
        if client is None:
            return ""
        with store_of(client).transaction():
            document = store_of(client).document("collection")
        payload = "" if document is None else json.loads(document.body)["payload"]
        return hashlib.sha256(payload.encode()).hexdigest()[:32] if payload else ""

    def _close(self) -> None:
        for at, client in enumerate(self.clients):
            if client is not None:
                client.close()
                self.clients[at] = None
