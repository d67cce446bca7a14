"""A study of real clients and a real collector: both begin again between rounds; the release is the protocol's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from study_world import KEYS, LATENESS, ROUND, START, study_collection

from hubbub import Random, Sketch
from hubbub.client import Client, Response
from hubbub.collection import Collection, ManualClock
from hubbub.core.event import units_of
from hubbub.protocols.ask import Count, Release
from hubbub.protocols.driver import Conversation
from hubbub.service.collector import Collector
from hubbub.service.counts import read_count
from hubbub.service.store import open_store
from hubbub.service.store.base import EraRow

DEVICES = 48


class Server:
    """What the collector's routes do, without the network; it can begin again from its store."""

    def __init__(self, collection: Collection, clock: ManualClock, path: Path) -> None:
        self.collection, self.clock, self.path = collection, clock, path
        self.begin()

    def begin(self) -> None:
        self.store = open_store(f"sqlite:///{self.path}")
        self.collector = Collector([self.collection], self.store, clock=self.clock, keys=KEYS, rng=Random(seed=1))

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        if body is not None:
            (receipt,) = self.collector.ingest([self.collector.admit(headers["Content-Type"], body)])
            rejected = [{"id": report, "reason": reason} for report, reason in receipt.rejected]
            counted = {"accepted": receipt.accepted, "duplicates": receipt.duplicates, "rejected": rejected}
            return Response(200, {}, json.dumps(counted).encode())
        held = self.collector.asks if path.endswith("/asks") else self.collector.specs
        bulletin = held["study"]
        if headers.get("If-None-Match") == bulletin.etag:
            return Response(304, {"etag": bulletin.etag}, b"")
        return Response(200, {"etag": bulletin.etag}, bulletin.body)


def client(folder: Path, server: Server, clock: ManualClock, number: int) -> Client:
    options = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "study"}
    return Client(folder / str(number), server, KEYS.public, **options)  # type: ignore[arg-type]


def test_everyone_answers_once_and_what_is_released_is_what_the_protocol_says_of_it(tmp_path: Path):
    study = study_collection(most=2)
    clock = ManualClock(START + 1.0)
    server = Server(study, clock, tmp_path / "store.db")
    answered = [0] * DEVICES
    for round in (1, 2, 3):
        for number in range(DEVICES):
            device = client(tmp_path, server, clock, number)  # which begins again from its folder
            device.record("word", 5 if number % 3 else (number + round) % 40)  # frozen at the first answer
            answered[number] += device.tick()
            device.upload()
            assert device.status().queued == 0
            device.close()
        clock.set(START + ROUND * round + LATENESS + 1.0)
        server.collector.tick()
        server.store.close()
        server.begin()
    assert answered == [1] * DEVICES, "everyone is on one arc"
    assert server.collector.counts()[study.collection_id, "accepted"] == DEVICES
    (row,) = server.store.releases(study.collection_id, "common", 0, 99, 99)
    told = json.loads(row.payload)
    assert told.get("stopped") is None
    # A simulation that hears what was heard says the same.
    era = EraRow(study.collection_id, "common", 0)
    rounds = [list(group) for _, group in groupby(server.store.asks(era), lambda ask: ask.round)]
    assert [len(parts) for parts in rounds] == [2, 1, 1]
    talk = Conversation(study.protocol("common"), rounds=3, parts=2)
    while not isinstance(said := talk.said, Release):
        if isinstance(said, Count):
            (counted,) = server.store.counted(era, 0)
            talk.tell(read_count(counted))
        else:
            talk.reply_all([Sketch.from_bytes(ask.sketch) for ask in rounds.pop(0)])
    assert said.estimate.value.tolist() == told["value"]
    assert list(said.estimate.labels or ()) == told["labels"]
    assert said.n == DEVICES
    assert study.terms["common"].limit == units_of(3.0)
