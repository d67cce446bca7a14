"""A model that devices train where reports are shuffled: every round is a batch, without ids and in another order."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.authoring import load_collection, promise
from hubbub.authoring.check import check
from hubbub.authoring.coalitions import coalitions_of
from tests.client.test_client_models import shrunk
from tests.shared.answers import room_for_few_signs
from tests.shared.in_process import rows_in
from tests.shuffler.shuffle_world import ShuffleWorld

START, PEOPLE, ROUNDS = 1_800_000_000, 90, 2
TARGET = np.array([0.75, 0.0, -0.5])
LEARN: dict[str, Any] = {
    "privacy": {"user": 8.0, "minimum_batch": 20},
    "fields": {"step": {"kind": "vector", "dimension": 3}},
    "questions": {
        "model": {
            "kind": "vector",
            "field": "step",
            "epsilon": 8.0,
            "start": "2027-01-15T08:00Z",
            "round": "1h",
            "rounds": 2,
            "sparsity": 2,
            "mechanism": "NetSub",
        }
    },
    "fakes": 0,
}


def toward_target(content: bytes) -> Any:
    return TARGET - np.frombuffer(content, dtype="<f4")


def test_devices_train_a_model_through_shufflers(tmp_path: Path) -> None:
    """Each device answers one round; the collector opens one batch of each, and the model moves by its mean."""
    world = ShuffleWorld(least=20, now=START + 60.0, **LEARN)
    sent = 0
    for _ in range(ROUNDS):
        for number in range(PEOPLE):
            with world.device(tmp_path / str(number)) as device:
                device.on_model("model", toward_target)
                sent += device.tick()
                device.upload()
        world.close()
        world.clock.set((world.clock.now() // 3600) * 3600 + world.collection.lateness_seconds + 60.0)
        world.tick()
        world.collector.tick()
    assert sent == PEOPLE
    rows = world.collector.releases("survey", "model", first=0, last=9, most=9)
    payloads = [json.loads(row.payload) for row in rows]
    assert [row.withheld for row in rows] == [None, None]
    assert sum(payload["n"] for payload in payloads) == PEOPLE
    assert not rows_in(world.store, "SELECT * FROM id_pages")
    start = np.zeros(3)
    for payload in payloads:
        way, error = np.array(payload["value"]), np.sqrt(payload["variance"])
        shown = shrunk(TARGET - start)
        assert (np.abs(way - shown) < 5 * error + room_for_few_signs(shown, payload["n"])).all()
        np.testing.assert_allclose(payload["estimates"]["model"]["value"], start + way, atol=1e-6)
        start = start + way


def test_a_round_is_told_as_a_batch_and_several_as_their_sum() -> None:
    """The bound of a round is that of its mechanism; of devices that answer two, also that of both."""
    text = ShuffleWorld(**LEARN).text(least=1000, **LEARN)
    once = load_collection(text)
    twice = load_collection(text.replace("rounds = 2", "rounds = 2\nmost_rounds = 2"))
    alone, of_two = coalitions_of(once, "model")[0], coalitions_of(twice, "model")[0]
    mechanism = hb.NetSub(epsilon=8.0, dimension=3, sparsity=2)
    assert alone.epsilon == hb.amplify(mechanism, n=1000, delta=1e-6).epsilon < 8.0
    assert alone.year is None
    assert of_two.epsilon < alone.epsilon
    assert of_two.year is not None
    assert of_two.epsilon < of_two.year[0] <= 2 * of_two.epsilon
    assert of_two.year[1] == of_two.delta
    assert "(in a year epsilon" in promise(twice)
    assert "(in a year epsilon" not in promise(once)


def test_fakes_are_refused_for_a_mechanism_that_cannot_take_them_off() -> None:
    text = ShuffleWorld(**LEARN).text(**{**LEARN, "fakes": 5})
    with pytest.raises(Exception, match="fakes"):
        load_collection(text)
    assert not [
        finding
        for finding in check(load_collection(text.replace("fakes = 5", "fakes = 0")))
        if finding.level == "error"
    ]
