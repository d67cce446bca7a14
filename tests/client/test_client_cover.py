"""Cover: a network cannot tell a device that answers from one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hubbub.client import Client, Response, Unreachable
from hubbub.collection import ManualClock
from hubbub.wire.upload import JSON_TYPE, decode_upload, decode_upload_json
from tests.client.device import device
from tests.client.local_server import survey
from tests.shared.in_process import InProcess
from tests.shared.small_collections import THEME, collection_text

TURNS = collection_text(
    privacy={"window": {"epsilon": 1.0, "steps": 4}, "minimum_batch": 20, "cover": True},
    fields={"theme": THEME},
    questions={"trend": {"kind": "stream", "field": "theme", "epsilon": 1.0, "method": "LPU", "w": 4}},
)
SHORT = TURNS.replace("window = {epsilon = 1.0, steps = 4}", "event = 1.0\nuser = 2.0").replace(
    'kind = "stream"\nfield = "theme"\nepsilon = 1.0\nmethod = "LPU"\nw = 4',
    'kind = "histogram"\nfield = "theme"\nepsilon = 1.0',
)
DEVICES = 12
STEPS = range(7, 15)


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
        return [
            len((decode_upload_json if kind == JSON_TYPE else decode_upload)(body).entries)
            for kind, body in self.bodies
        ]


def run(folder: Path, text: str, **options: object) -> tuple[InProcess, list[Watched], list[Client]]:
    collection = survey(text)
    clock = ManualClock(collection.opens(STEPS[0]))
    server = InProcess(collection, clock, folder / "store.db")
    wires = [Watched(server) for _ in range(DEVICES)]
    clients = [device(folder / str(n), wire, clock, **options) for n, wire in enumerate(wires)]
    for step in STEPS:
        for part in (0.1, 0.6):
            clock.set(collection.opens(step) + part * collection.step_seconds)
            server.collector.tick()
            for number, client in enumerate(clients):
                if number % 2:
                    client.record("theme", "dark")
                client.tick()
                client.upload()
    return server, wires, clients


@pytest.mark.parametrize("form", ["msgpack", "json"])
@pytest.mark.parametrize("text", [TURNS, SHORT], ids=["not its turn", "budget spent"])
def test_every_device_sends_one_frame_an_ask_all_of_one_size(folder: Path, text: str, form: str) -> None:
    server, wires, clients = run(folder, text, form=form)
    answered = covered = 0
    for wire, client in zip(wires, clients, strict=True):
        assert len(wire.bodies) == len(STEPS)
        assert len({len(body) for _, body in wire.bodies}) == 1
        assert wire.entries().count(1) == 2  # a turn every four steps, or two units for life
        counts = client.status().counts
        assert (counts["sent"], counts["cover"]) == (2, len(STEPS) - 2)
        answered, covered = answered + counts["sent"], covered + counts["cover"]
        assert client.status().queued == 0
        client.close()
    counts = {outcome: count for (_, outcome), count in server.collector.counts().items() if count}
    assert counts == {"accepted": answered, "cover": covered}
    server.store.close()


def test_without_it_only_answers_are_sent(folder: Path) -> None:
    server, wires, clients = run(folder, TURNS.replace("cover = true\n", ""))
    for wire, client in zip(wires, clients, strict=True):
        assert wire.entries() == [1, 1]
        assert set(client.status().counts) == {"sent"}
        client.close()
    server.store.close()


def test_cover_changes_nothing_but_its_counter(folder: Path) -> None:
    collection = survey(SHORT)
    clock = ManualClock(collection.opens(7) + 60.0)
    server = InProcess(collection, clock, folder / "store.db")
    (window,) = server.collector.board.asks.values()
    from hubbub.wire.upload import UPLOAD_TYPE, encode_upload

    frame = encode_upload(collection.name, collection.version, [], collection.frame_bytes)
    for _ in range(3):
        response = server.request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, frame)
        assert response.body == b'{"accepted": 0, "duplicates": 0, "rejected": []}'
    assert window.sketch.n == 0
    assert dict(server.collector.counts()) == {(collection.collection_id, "cover"): 3}
    assert list(server.store.id_pages(window.key)) == []
    server.store.close()


def test_cover_is_sent_once_whatever_is_lost_or_restarted(folder: Path) -> None:
    """Sent more often than answers are, it could be told from them: it waits, and is retried, as they are."""
    collection = survey(SHORT)
    clock = ManualClock(collection.opens(7) + 60.0)
    server = InProcess(collection, clock, folder / "store.db")
    wire = Watched(server)

    def restarted() -> Client:
        return device(folder / "device", wire, clock)

    for step in (7, 8):  # all that it may ever spend
        clock.set(collection.opens(step) + 60.0)
        server.collector.tick()
        client = restarted()
        assert (client.tick(), client.upload()) == (1, 1)
        client.close()
    clock.set(collection.opens(9) + 60.0)
    server.collector.tick()
    client = restarted()
    assert client.tick() == 0
    assert client.status().queued == 0  # it is no report
    client.close()  # before it was sent
    client = restarted()
    wire.lost = True
    client.upload()
    wire.lost = False
    clock.advance(600.0)
    client.upload()
    client.close()
    client = restarted()
    for _ in range(3):
        client.tick()
        client.upload()
    assert wire.entries() == [1, 1, 0, 0]
    assert wire.bodies[2] == wire.bodies[3]
    assert client.status().counts["cover"] == 1
    client.close()
    server.store.close()
