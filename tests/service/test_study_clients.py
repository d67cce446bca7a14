"""A study of real clients and a real collector: both begin again between rounds; the release is the protocol's."""

from __future__ import annotations

import json
from pathlib import Path

from hubbub import Random
from hubbub.client import Client
from hubbub.collection import ManualClock
from hubbub.core.event import units_of
from tests.service.study_world import KEYS, LATENESS, ROUND, START, retold, study_collection
from tests.shared.in_process import InProcess

DEVICES = 48


def client(folder: Path, server: InProcess, clock: ManualClock, number: int) -> Client:
    options = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "study"}
    return Client(folder / str(number), server, KEYS.public, **options)  # type: ignore[arg-type]


def test_everyone_answers_once_and_what_is_released_is_what_the_protocol_says_of_it(tmp_path: Path):
    study = study_collection(most=2)
    clock = ManualClock(START + 1.0)
    server = InProcess(study, clock, tmp_path / "store.db", keys=KEYS, rng=Random(seed=1))
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
        server.restart()
    assert answered == [1] * DEVICES, "everyone is on one arc"
    assert server.collector.counts()[study.collection_id, "accepted"] == DEVICES
    (row,) = server.store.releases(study.collection_id, "common", 0, 99, 99)
    stored_release = json.loads(row.payload)
    assert stored_release.get("stopped") is None
    release = retold(study, server.store)
    assert release.estimate.value.tolist() == stored_release["value"]
    assert list(release.estimate.labels or ()) == stored_release["labels"]
    assert release.n == DEVICES
    assert study.terms["common"].limit == units_of(3.0)
