"""Key-value questions from `record` to the release with a real collector, and values that `record` refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.collection import Collection, ManualClock
from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.questions import read_collection
from hubbub.service.rounds.releases import release_json
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.client.device import begin, device, seeded
from tests.client.local_server import LocalServer, survey
from tests.shared.in_process import InProcess
from tests.shared.small_collections import collection_text

TEXT = collection_text(
    "survey",
    "Ratings",
    privacy={"event": 24.0, "minimum_batch": 20},
    fields={
        "ratings": {
            "kind": "keyvalue",
            "keys": ["alien", "brazil", "casablanca", "dune", "eraserhead"],
            "low": 1,
            "high": 5,
            "most": 2,
        }
    },
    questions={
        "mean": {"kind": "keyvalue", "field": "ratings", "epsilon": 8.0},
        "seen": {"kind": "keyvalue", "field": "ratings", "of": "frequency", "epsilon": 8.0, "mechanism": "Collision"},
        "liked": {"kind": "keyvalue", "field": "ratings", "of": "conditional", "epsilon": 8.0, "mechanism": "CoCo"},
    },
)
PEOPLE: list[dict[str, float]] = [{"alien": 5, "brazil": 2.5}, {"alien": 4}, {"brazil": 1.5, "casablanca": 3}, {}]


def keyed() -> Collection:
    return survey(TEXT)


def released(server: InProcess, question: str) -> dict[str, Any]:
    (row,) = server.collector.releases("survey", question, first=0, last=99, most=9)
    return release_json(row)


def test_what_devices_record_is_released_in_the_field_s_own_unit(folder: Path) -> None:
    collection = keyed()
    clock = ManualClock(collection.opens(7) + 60)
    server = InProcess(collection, clock, folder / "store.db")
    devices = [device(folder / str(number), server, clock, rng=seeded(number)) for number in range(8)]
    for number, client in enumerate(devices):
        client.record("ratings", PEOPLE[number % 4])
        assert client.tick() == client.upload() == 3
    rng = seeded("many")
    for window in server.collector.board.open(collection.collection_id, clock.now()):  # and 3,996 more, in one batch
        ask = window.ask
        codes = [collection.encode("ratings", person) for person in PEOPLE] * 998
        reports = ask.mechanism.randomize(ask.view(codes), rng)
        name = AnswerName(window.question, 0, ask.step, 1, 0)
        body = encode_batch(collection.name, collection.version, name, rng.bytes(16 * 3992), reports)
        server.request("POST", "/v1/reports", {"Content-Type": BATCH_TYPE}, body)
    clock.set(collection.opens(8) + collection.lateness_seconds + 1)
    server.collector.tick()
    truth = {
        "mean": [9 / 4, 4 / 4, 3 / 4, 0.0, 0.0],
        "seen": [0.5, 0.5, 0.25, 0.0, 0.0],
        "liked": [4.5, 2.0, 3.0, None, None],
    }
    for question, values in truth.items():
        estimate = released(server, question)
        assert estimate["n"] == 4000
        assert estimate["labels"] == ["alien", "brazil", "casablanca", "dune", "eraserhead"]
        assert estimate["kind"] == ("share" if question == "seen" else "quantity")
        for value, estimated, variance in zip(values, estimate["value"], estimate["variance"], strict=True):
            if value is None:  # nobody holds the key: nothing is known of its mean (an error of 5 % a key, here not)
                assert estimated is variance is None
            else:  # fails by chance once in 15,000 times a number
                assert abs(estimated - value) < 4 * np.sqrt(variance) < 0.6
    for client in devices:
        client.close()
    server.store.close()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"alien": 1, "brazil": 2, "dune": 3}, "ratings: got '3 keys'; allowed: at most 2 keys"),
        ({"alien": float("nan")}, "ratings: got {'alien': nan}; allowed: a finite number for every key"),
        ({"alien": float("inf")}, "a finite number for every key"),
        ({"alien": True}, "a finite number for every key"),
        ({"alien": "5"}, "a finite number for every key"),
        ({"zulu": 3}, "ratings: got 'zulu'; allowed: keys such as alien, brazil"),
        ({7: 3}, "ratings: got 7; allowed: keys such as"),
        ([("alien", 3), ("alien", 4)], "ratings: got 'alien'; allowed: keys that differ from each other"),
        ([("alien", 3, 4)], "a mapping of keys to numbers, or pairs of them"),
        ("alien", "a mapping of keys to numbers, or pairs of them"),
        (3.0, "a mapping of keys to numbers, or pairs of them"),
        (None, "a mapping of keys to numbers, or pairs of them"),
    ],
    ids=str,
)
def test_what_nobody_can_hold_is_refused_by_record_and_costs_nothing(folder: Path, value: Any, message: str) -> None:
    server, clock = LocalServer(keyed()), ManualClock()
    begin(server, clock, 7)
    with device(folder, server, clock) as client:
        with pytest.raises(InvalidValue) as caught:
            client.record("ratings", value)
        assert message in str(caught.value)
        assert client.status().spent == 0
        assert client.tick() == 3  # as one who holds nothing
        assert client.status().spent == server.collection.budget.event


def test_numbers_outside_the_range_are_moved_to_its_end_and_survive_the_folder(folder: Path) -> None:
    server, clock = LocalServer(keyed()), ManualClock()
    begin(server, clock, 7)
    with device(folder, server, clock) as client:
        client.record("ratings", {"dune": 99, "alien": -3})
    with device(folder, server, clock) as client:
        with client._store.transaction():
            assert client._store.recorded("ratings") == (clock.now(), ((0, -3.0), (3, 99.0)))
        assert client.tick() == 3
    for question, ask in server.open.values():
        assert ask.view([((0, -3.0), (3, 99.0))]) == [{0: -1.0, 3: 1.0}], question


def test_uploads_are_of_one_size_whatever_is_held(folder: Path) -> None:
    server, clock = LocalServer(keyed()), ManualClock()
    begin(server, clock, 7)
    for number, pairs in enumerate(PEOPLE):
        with device(folder / str(number), server, clock) as client:
            client.record("ratings", pairs)
            client.tick()
            assert client.upload() == 3
    assert len({len(body) for body in server.bodies}) == 1
    sizes = {ask: {len(report) for report in reports.values()} for ask, reports in server.reports.items()}
    assert all(len(lengths) == 1 for lengths in sizes.values())
    for _, ask in server.open.values():
        assert all(len(ask.mechanism.read_bare(report)) == 1 for report in server.reports[ask.ask_id].values())


def test_the_collection_survives_its_own_json() -> None:
    collection = keyed()
    assert read_collection(json.loads(json.dumps(collection.spec()))) == collection
