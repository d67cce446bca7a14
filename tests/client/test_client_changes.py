"""Streams of changes with real devices and the real collector: paid once, one state, every step released."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.client import Client
from hubbub.client.answer import Answerer, stream_of
from hubbub.client.store import StoredState
from hubbub.collection import Collection, ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.stateful import States
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.questions import read_collection
from hubbub.service.rounds.releases import release_json
from hubbub.wire.upload import UPLOAD_TYPE, Entry, decode_upload, encode_upload
from tests.client.device import device, seeded
from tests.client.local_server import survey
from tests.shared.in_process import InProcess
from tests.shared.small_collections import collection_text

STEPS = 8
TEXT = collection_text(
    "survey",
    "Where people are",
    privacy={"user": 4.5, "minimum_batch": 20},
    fields={"place": {"kind": "categorical", "names": ["home", "work", "away"]}},
    questions={"places": {"kind": "changes", "field": "place", "epsilon": 2.0, "steps": 8, "changes": 3}},
)
FIRST = 3 * STEPS  # the first step of a horizon


class World:
    """Some devices and a collector on one clock."""

    def __init__(self, folder: Path, text: str = TEXT, devices: int = 1, start: int = FIRST) -> None:
        self.collection: Collection = survey(text)
        self.clock = ManualClock(self.collection.opens(start) + 60)
        self.server = InProcess(self.collection, self.clock, folder / "store.db")
        self.folder = folder
        self.devices = [self.device(number) for number in range(devices)]
        self.step = start
        self.sent: Counter[int] = Counter()

    def device(self, number: int, **options: Any) -> Client:
        return device(self.folder / str(number), self.server, self.clock, rng=seeded(number), **options)

    def go(self, step: int, *, late: float = 0.0) -> None:
        """To a place in a step."""
        self.step = step
        self.clock.set(self.collection.opens(step) + 60 + late)
        self.server.collector.tick()

    def live(self, step: int, *values: str | None) -> list[int]:
        self.go(step)
        reports = []
        for client, value in zip(self.devices, values, strict=True):
            if value is not None:
                client.record("place", value)
            reports.append(client.tick())
            self.sent[step] += client.upload()
        return reports

    def close(self) -> None:
        for client in self.devices:
            client.close()
        self.server.store.close()

    @property
    def symbols(self) -> ChangeStream:
        mechanism = self.collection.questions["places"].mechanism_for(self.collection.setting("places"))
        assert isinstance(mechanism, ChangeStream)
        return mechanism

    def released(self) -> list[dict[str, Any]]:
        rows = self.server.collector.releases("survey", "places", first=0, last=999, most=99)
        return [json.loads(row.payload) | {"step": row.step} for row in rows]


@pytest.fixture
def world(folder: Path) -> Any:
    made = []

    def build(**given: Any) -> World:
        made.append(World(folder, **given))
        return made[-1]

    yield build
    for one in made:
        one.close()


def stored_state(client: Client, step: int) -> tuple[States, StoredState]:
    collection = client._current.collection
    assert collection is not None
    collection = read_collection(collection.spec())
    symbols = collection.questions["places"].mechanism_for(collection.setting("places"))
    assert isinstance(symbols, ChangeStream)
    with client._store.transaction():
        stored = client._store.state("question:places", stream_of(collection, symbols, step))
    assert stored is not None
    return States.from_bytes(symbols, stored.state), stored


def test_a_horizon_is_paid_once_and_the_next_again(world: Any) -> None:
    here = world()
    (client,) = here.devices
    cost = here.symbols.event().spent
    for at in range(2 * STEPS):
        here.live(FIRST + at, "home" if at % 3 else "work")
        assert client.status().spent == cost * (1 + at // STEPS)
    here.live(FIRST + 2 * STEPS, "home")  # a third would be more than 4.5
    assert client.status().spent == 2 * cost
    assert client.status().counts["refused: budget"] == 1
    assert set(client.status().counts) == {"sent", "refused: budget"}


def test_it_reports_when_it_enrols_and_whenever_a_node_of_its_level_ends(world: Any) -> None:
    here = world(devices=12)
    reports = [here.live(FIRST + at, *["home"] * 12) for at in range(STEPS)]
    levels = [int(stored_state(client, FIRST)[0]["level"][0]) for client in here.devices]
    assert len(set(levels)) > 1
    for number, level in enumerate(levels):
        span = here.symbols.plan.tree.span(level)
        assert [row[number] for row in reports] == [int(at == 1 or at % span == 0) for at in range(1, STEPS + 1)]
    here.go(FIRST + STEPS, late=600)
    assert [row["n"] for row in here.released()] == [12] * STEPS
    for at, row in enumerate(here.released(), start=1):
        due = sum(at % here.symbols.plan.tree.span(level) == 0 for level in levels)
        assert row["lost"]["due"] == row["lost"]["came"] == due
        assert row["lost"]["bias"] == [0.0] * 3
        assert row["labels"] == ["home", "work", "away"]
    assert [row["spent"] for row in here.released()] == [1.0] + [0.0] * (STEPS - 1)


def test_a_step_taken_twice_says_the_same_and_the_state_survives_restarts(world: Any) -> None:
    here = world()
    for at in range(STEPS):
        here.go(FIRST + at)
        first = here.devices[0]
        first.record("place", "home")
        reports = first.tick()
        before = stored_state(first, FIRST)
        first.close()
        here.devices = [device(here.folder / "0", here.server, here.clock, rng=seeded(99 + at))]  # another process
        again = here.devices[0]
        again.record("place", "away")
        assert again.tick() == 0
        assert stored_state(again, FIRST)[1].state == before[1].state
        assert again.upload() == reports


def test_a_device_that_stops_half_way_has_neither_paid_nor_said_anything(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world()
    here.go(FIRST)
    (client,) = here.devices

    def stops(self: Answerer, question: str, step: int, units: int) -> None:
        self._store.book.spend(step, "asks", question, units)
        raise KeyboardInterrupt

    monkeypatch.setattr(Answerer, "_spend", stops)
    with pytest.raises(KeyboardInterrupt):
        client.tick()
    monkeypatch.undo()
    assert client.status().spent == client.status().queued == 0
    here.live(FIRST + 1, "home")
    assert client.status().spent == here.symbols.event().spent


def test_a_stream_that_lost_its_state_does_not_begin_again_in_its_horizon(world: Any) -> None:
    here = world()
    (client,) = here.devices
    cost = here.symbols.event().spent
    here.live(FIRST, "home")
    with client._store.transaction():
        client._store._run("DELETE FROM states")
    for at in range(1, STEPS):
        assert here.live(FIRST + at, "home") == [0]
        assert client.status().spent == cost
    assert here.live(FIRST + STEPS, "home") == [1]
    assert client.status().spent == 2 * cost


def test_missed_steps_advance_the_state_and_are_counted_as_lost(world: Any) -> None:
    here = world(devices=30)
    everyone, some = list(here.devices), here.devices[:20]
    here.live(FIRST, *["home"] * 30)
    here.devices = some  # ten are away
    for at in range(1, 4):
        here.live(FIRST + at, *["home"] * 20)
    here.devices = everyone
    for at in range(4, STEPS):
        here.live(FIRST + at, *["home"] * 30)
    here.go(FIRST + STEPS, late=600)
    for client in everyone:
        state, _ = stored_state(client, FIRST)
        span = here.symbols.plan.tree.span(int(state["level"][0]))
        assert state["node"][0] == STEPS // span
        # ExSub's entries, missed ones too, have all been decided: what is left are the stubs.
        left = int(state["counters"][0, 3:].sum())
        assert left == here.symbols.plan.mechanisms[int(state["level"][0])].sparsity + 3 * (STEPS % span)
    lost = [row["lost"]["due"] - row["lost"]["came"] for row in here.released()]
    away = [int(stored_state(client, FIRST)[0]["level"][0]) for client in everyone[20:]]
    spans = [here.symbols.plan.tree.span(level) for level in away]
    assert lost == [sum(at % span == 0 for span in spans) if 2 <= at <= 4 else 0 for at in range(1, STEPS + 1)]
    assert sum(lost) > 0
    assert any(any(row["lost"]["bias"]) for row in here.released())
    assert all(row["n"] == 30 for row in here.released())


def test_late_reports_are_counted_as_late_and_an_enrolment_that_was_lost_is_said_again(world: Any) -> None:
    here = world(devices=2)
    here.go(FIRST)
    for client in here.devices:
        client.record("place", "work")
        client.tick()
    here.devices[0].upload()
    here.go(FIRST + 1, late=700)  # the other one's report is past its lateness
    late = here.devices[1]
    assert late.upload() == 0
    assert late.status().counts == {"late": 1}
    assert stored_state(late, FIRST)[1].enrolled is False
    in_time = stored_state(here.devices[0], FIRST)[1]
    assert (in_time.enrolled, in_time.enrolment) == (True, None)
    bodies: list[bytes] = []
    real = here.server.request

    def heard(method: str, path: str, headers: Any, body: bytes | None = None) -> Any:
        bodies.extend([] if body is None else [body])
        return real(method, path, headers, body)

    here.server.request = heard
    for at in range(1, STEPS):
        here.live(FIRST + at, "work", "work")
    assert stored_state(late, FIRST)[1].enrolled is True
    reports = [e.reports(here.symbols) for body in bodies for e in decode_upload(body).entries]
    assert sum(int(report.public["new"][0]) for report in reports) == 1
    assert late.status().spent == here.symbols.event().spent
    here.go(FIRST + STEPS, late=600)
    assert here.released()[-1]["n"] == 2


def test_a_device_that_joins_late_pays_the_same_and_tells_all_it_holds(world: Any) -> None:
    here = world(start=FIRST + 5)
    for at in range(5, STEPS):
        here.live(FIRST + at, "away")
    (client,) = here.devices
    state, _ = stored_state(client, FIRST)
    assert state["held"].tolist() in ([[0, 0, 1]], [[0, 0, 0]])  # nothing, where no node has ended since
    assert client.status().spent == here.symbols.event().spent
    here.go(FIRST + STEPS, late=600)
    assert [row["step"] for row in here.released()] == list(range(FIRST + 5, FIRST + STEPS))


@pytest.mark.parametrize("value", ["moon", 7, None, float("nan"), ["home"]], ids=str)
def test_what_the_field_does_not_have_is_refused_and_costs_nothing(world: Any, value: Any) -> None:
    here = world()
    here.go(FIRST)
    (client,) = here.devices
    with pytest.raises(InvalidValue):
        client.record("place", value)
    assert client.status().spent == 0


def test_more_changes_than_may_be_told_are_held_back(world: Any) -> None:
    here = world()
    (client,) = here.devices
    for at in range(STEPS):
        here.live(FIRST + at, ["home", "work", "away"][at % 3])
    state, _ = stored_state(client, FIRST)
    assert int(state["used"][0]) <= here.symbols.changes


def test_reports_are_of_one_size_and_the_server_refuses_what_no_device_says(world: Any) -> None:
    here = world()
    here.go(FIRST)
    symbols, collection = here.symbols, here.collection
    (window,) = here.server.collector.board.open(collection.collection_id, here.clock.now())
    good, new = b"", np.array([True])
    for number in range(9):
        rng = seeded(number)
        states, *spoke = symbols.step(symbols.enroll(1, rng), FIRST, [number % 3], rng, new)
        enrolling, _ = symbols.with_enrolment(states, *spoke, new)
        assert not good or len(enrolling.to_bare()) == len(good)
        good = enrolling.to_bare()
    for column, value in (("level", len(symbols.lengths)), ("new", 2), ("sign", 3)):
        public, private = dict(enrolling.public), dict(enrolling.private)
        part = private if column == "sign" else public
        part[column] = part[column] + value
        with pytest.raises(InvalidValue):
            symbols.check(Reports(symbols.spec_id, public=public, private=private))
    hostile = Entry("places", 0, window.ask.step, 1, 0, b"i" * 16, good[:-1] + b"\x03")  # no such sign
    body = encode_upload(collection.name, collection.version, [hostile], collection.frame_bytes)
    answer = json.loads(here.server.request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, body).body)
    assert answer["rejected"] == [{"id": (b"i" * 16).hex(), "reason": "malformed"}]


def test_cover_hides_the_rhythm(world: Any) -> None:
    here = world(text=TEXT.replace("minimum_batch = 20", "minimum_batch = 20\ncover = true"))
    frames: list[int] = []
    real = here.server.request

    def heard(method: str, path: str, headers: Any, body: bytes | None = None) -> Any:
        frames.extend([] if body is None else [len(body)])
        return real(method, path, headers, body)

    here.server.request = heard
    for at in range(STEPS):
        here.live(FIRST + at, "home")
    assert frames == [here.collection.frame_bytes] * STEPS


def test_the_collector_goes_on_where_it_was(world: Any, folder: Path) -> None:
    here = world(devices=25)
    for at in range(STEPS // 2):
        here.live(FIRST + at, *["home"] * 25)
    before = here.released()
    here.server.store.close()
    server = InProcess(here.collection, here.clock, folder / "store.db")
    for client in here.devices:
        client.close()
    here.server = server
    here.devices = [here.device(number) for number in range(25)]
    for at in range(STEPS // 2, STEPS):
        here.live(FIRST + at, *["home"] * 25)
    here.go(FIRST + STEPS, late=600)
    after = here.released()
    assert after[: len(before)] == before
    assert [row["n"] for row in after] == [25] * STEPS
    row = here.server.collector.releases("survey", "places", first=0, last=999, most=99)[-1]
    assert release_json(row)["withheld"] is None
