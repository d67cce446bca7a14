"""A model that devices and a collector train together: the whole way, restarts, and programs that fail."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.client import Client, Response
from hubbub.collection import ManualClock
from hubbub.core.domain.vector import Vector
from hubbub.ledger.promise import Budget
from hubbub.protocols.views.update import model_hash
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from tests.shared.answers import room_for_few_signs
from tests.shared.in_process import KEYS, InProcess

START, ROUND, LATENESS = 86_400, 1000, 10
ROUNDS, DEVICES = 4, 200
"""A round has fewer than 20 reports, which withholds its release, once in a million times."""
TARGET = np.array([1.0, 0.0, -1.0])


def collection(**keys: Any) -> Collection:
    question = Question.make(
        "vector",
        **{
            "field": "step",
            "epsilon": 8.0,
            "start": "1970-01-02T00:00Z",
            "round": f"{ROUND}s",
            "rounds": ROUNDS,
            "sparsity": 2,
            **keys,
        },
    )
    return Collection(
        name="learn",
        title="For tests",
        fields={"step": Vector(3)},
        questions={"model": question},
        budget=Budget.of(user=8.0),
        step_seconds=3600,
        lateness_seconds=LATENESS,
        minimum_batch=20,
    )


def toward_target(content: bytes) -> Any:
    return TARGET - np.frombuffer(content, dtype="<f4")


def shrunk(way: np.ndarray) -> np.ndarray:
    """A vector as a device bounds it: entries of at most 1, and of at most 2 together."""
    return np.asarray(way / max(np.abs(way).max(), np.abs(way).sum() / 2, 1.0))


class Meddling:
    """A collector whose models may be gone, or replaced."""

    def __init__(self, server: InProcess) -> None:
        self.server, self.status = server, 200
        self.content: bytes | None = None
        self.fetched: list[str] = []

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        response = self.server.request(method, path, headers, body)
        if "/models/" not in path:
            return response
        self.fetched.append(path)
        if self.status != 200:
            return Response(self.status, {}, b"")
        return response if self.content is None else Response(200, {}, self.content)


class World:
    """A collector, the network to it, a clock, and devices in folders."""

    def __init__(self, folder: Path, **keys: Any) -> None:
        self.folder, self.clock = folder, ManualClock(START + 1.0)
        self.server = InProcess(collection(**keys), self.clock, folder / "store.db")
        self.wire = Meddling(self.server)

    def device(self, number: int = 0) -> Client:
        options: Any = {"clock": self.clock, "monotonic": self.clock.now, "jitter": 0.0, "collection": "learn"}
        client = Client(self.folder / str(number), self.wire, KEYS.public, **options)
        client.on_model("model", toward_target)
        return client

    def go(self, round: int) -> None:
        """To the beginning of a round."""
        self.clock.set(START + (round - 1) * ROUND + LATENESS + 1.0)
        self.server.collector.tick()

    def releases(self) -> list[dict[str, Any]]:
        rows = self.server.collector.releases("learn", "model", first=0, last=9, most=99)
        return [{**json.loads(row.payload), "number": row.number} for row in rows]

    def asked(self, device: Client) -> int:
        """Go to the round that asks a device."""
        for round in range(1, ROUNDS + 1):
            self.go(round)
            before = len(self.wire.fetched)
            device.tick()
            if len(self.wire.fetched) > before:
                return round
        raise AssertionError("never asked")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def counts(device: Client) -> Mapping[str, int]:
    return device.status().counts


def test_devices_train_a_model_over_restarts_and_each_answers_one_round(world: World) -> None:
    answered = np.zeros(DEVICES, dtype=int)
    for round in range(1, ROUNDS + 1):
        world.go(round)
        for number in range(DEVICES):
            with world.device(number) as device:
                answered[number] += device.tick()
                assert device.tick() == 0
                device.upload()
        world.server.restart()  # the model of the open round is made again, from what is stored
    world.go(ROUNDS + 1)
    assert answered.tolist() == [1] * DEVICES
    releases = world.releases()
    assert [release["number"] for release in releases] == [0, 1, 2, 3]
    assert sum(release["n"] for release in releases) == DEVICES
    for before, release in zip([None, *releases], releases, strict=False):
        moved, way = np.array(release["estimates"]["model"]["value"]), np.array(release["value"])
        start = np.zeros(3) if before is None else np.array(before["estimates"]["model"]["value"])
        np.testing.assert_allclose(moved, start + way, atol=1e-6)
        shown = shrunk(TARGET - start)
        reach = 5 * np.sqrt(release["variance"]) + room_for_few_signs(shown, release["n"])
        assert (np.abs(way - shown) < reach).all()


def test_two_rounds_are_answered_with_two_updates(tmp_path: Path) -> None:
    world, seen = World(tmp_path, rounds=2, most_rounds=2), []
    device = world.device()
    device.on_model("model", lambda content: seen.append(content) or [0.0, 1.0, 0.0])
    for round in (1, 2):
        world.go(round)
        assert device.tick() == 1
        assert device.upload() == 1
    world.go(3)
    assert [model_hash(content) for content in seen] == [path.rpartition("/")[2] for path in world.wire.fetched]
    assert seen[0] == bytes(12)
    assert seen[1] != seen[0]
    assert device.status().spent == 8 * 10**12


@pytest.mark.parametrize("result", [None, "junk", [1.0], [float("nan")] * 3, RuntimeError("no data")])
def test_a_program_that_fails_answers_with_zeros(world: World, result: Any) -> None:
    def failing(content: bytes) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    device = world.device()
    device.on_model("model", failing)
    world.asked(device)
    assert device.upload() == 1
    assert counts(device)["no update"] == 1
    assert "the function of model raised" in (device.status().trouble or "")


def test_a_device_without_a_program_answers_too_and_fetches_the_model(world: World) -> None:
    device = world.device()
    device._trained().functions.clear()
    world.asked(device)
    assert device.upload() == 1
    assert len(world.wire.fetched) == 1


@pytest.mark.parametrize("content", [b"", bytes(11), b"x" * 12, bytes(4 << 20)])
def test_a_model_with_another_hash_is_refused(world: World, content: bytes) -> None:
    world.wire.content = content
    device = world.device()
    world.asked(device)
    assert device.upload() == 0
    assert counts(device)["refused: model"] == 1


def test_a_model_that_cannot_be_fetched_is_tried_again(world: World) -> None:
    world.wire.status = 503
    device = world.device()
    world.asked(device)
    assert device.upload() == 0
    assert "status 503" in (device.status().trouble or "")
    world.wire.status = 200
    world.clock.set(world.clock.now() + 2.0)
    assert device.tick() == 1
    assert device.status().trouble is None


def test_a_model_is_served_while_devices_are_asked_about_it(world: World) -> None:
    world.go(1)
    collector = world.server.collector
    (ask,) = [opened.ask for opened in collector.board.asks.values()]
    assert collector.model("learn", str(ask.view.spec()["model"])) == bytes(12)
    assert collector.model("learn", "0" * 64) is None
    world.go(ROUNDS + 1)
    assert collector.model("learn", str(ask.view.spec()["model"])) is None
