"""Devices that hold sets take part in a study of itemsets: each answers in one round, and what they hold is found."""

from __future__ import annotations

import json
from pathlib import Path

from hubbub.collection import ManualClock
from hubbub.random.source import Random
from tests.client.device import device
from tests.client.local_server import survey
from tests.shared.in_process import InProcess
from tests.shared.small_collections import collection_text

DEVICES, ROUND = 40, 3600
TEXT = collection_text(
    "survey",
    "Together",
    schedule={"step": "1h", "lateness": "1m"},
    privacy={"user": 25.0, "minimum_batch": 2},
    override={"epsilon_above_8": "forty devices", "minimum_batch_below_20": "forty devices"},
    fields={
        "features": {
            "kind": "sets",
            "most": 5,
            "items": {"kind": "categorical", "names": ["bold", "table", "link", "image", "undo"]},
        }
    },
    questions={
        "together": {
            "kind": "itemsets",
            "field": "features",
            "epsilon": 20.0,
            "k": 4,
            "start": "1970-01-02T00:00Z",
            "round": "1h",
        }
    },
)


def test_each_device_answers_once_and_what_they_hold_is_found(folder: Path) -> None:
    collection = survey(TEXT)
    clock = ManualClock(86_400.0 - ROUND)
    server = InProcess(collection, clock, folder / "store.db")
    devices = [
        device(folder / str(number), server, clock, rng=Random(seed=number), form="json" if number % 2 else "msgpack")
        for number in range(DEVICES)
    ]
    for number, client in enumerate(devices):
        client.record("features", {"bold", "undo"} if number % 3 else {"link"})
    answered = [0] * DEVICES
    for round in range(4):
        clock.set(86_400.0 + (round + 0.5) * ROUND)
        server.collector.tick()
        for number, client in enumerate(devices):
            answered[number] += client.tick()
            client.upload()
        clock.set(86_400.0 + (round + 1) * ROUND + 70)
        server.collector.tick()
    assert answered == [1] * DEVICES
    (row,) = server.collector.releases("survey", "together", first=0, last=9, most=9)
    payload = json.loads(row.payload)
    shares = dict(zip(payload["labels"], payload["value"], strict=True))
    assert {"bold", "undo", "bold + undo"} <= set(list(shares)[:3])
    assert "stopped" not in payload
    for client in devices:
        assert client.status().spent == 20 * 10**12
        assert set(client.status().counts) == {"sent"}
        client.close()
    server.store.close()
