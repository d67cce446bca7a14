"""A real collector for the client's tests, the network to it, and devices on one clock that is moved by hand."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from hubbub.client import Client, Response, Unreachable
from hubbub.collection import ManualClock
from hubbub.wire.upload import JSON_TYPE, decode_upload, decode_upload_json
from tests.client.device import device
from tests.client.local_server import survey
from tests.shared.in_process import InProcess


class Watched:
    """The network between a device and its collector: it keeps what passes, and may be cut."""

    def __init__(self, server: InProcess) -> None:
        self.server = server
        self.cut = self.lost = False
        self.bodies: list[tuple[str, bytes]] = []

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        if self.cut:
            raise Unreachable("cut")
        if body is not None:
            self.bodies.append((headers["Content-Type"], body))
        response = self.server.request(method, path, headers, body)
        if body is not None and self.lost:
            raise Unreachable("the answer was lost")
        return response

    def entries(self) -> list[int]:
        """How many reports each upload holds."""
        decoders = {JSON_TYPE: decode_upload_json}
        return [len(decoders.get(kind, decode_upload)(body).entries) for kind, body in self.bodies]


class RealCollector:
    """A collector of one collection, at a minute after a step began, and its devices."""

    def __init__(self, folder: Path, text: str, step: int) -> None:
        self.folder, self.collection = folder, survey(text)
        self.clock = ManualClock(self.collection.opens(step) + 60.0)
        self.server = InProcess(self.collection, self.clock, folder / "store.db")
        self.wire = Watched(self.server)
        self.clients: list[Client] = []

    def device(self, name: object = "device", wire: Watched | None = None, **options: Any) -> Client:
        self.clients.append(device(self.folder / str(name), wire or self.wire, self.clock, **options))
        return self.clients[-1]

    def go(self, step: int, seconds: float = 600.0) -> None:
        """To a place in a step."""
        self.clock.set(self.collection.opens(step) + seconds)
        self.server.collector.tick()

    def counts(self) -> dict[str, int]:
        """How many reports had which outcome."""
        return {outcome: count for (_, outcome), count in self.server.collector.counts().items() if count}

    def released(self, question: str) -> list[dict[str, Any]]:
        """What was released of a question, with the steps and why it is withheld."""
        rows = self.server.collector.releases(self.collection.name, question, first=0, last=999, most=99)
        return [{**json.loads(row.payload), "step": row.step, "withheld": row.withheld} for row in rows]

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.server.store.close()


OpenCollector: TypeAlias = Callable[..., RealCollector]
