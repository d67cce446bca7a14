"""Streams of changes with real devices and the real collector: paid once, one state, every step released."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from hubbub.client import Client
from hubbub.client.answer import Answerer, stream_of
from hubbub.client.store import StoredState
from hubbub.mechanisms.stateful import States
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.questions.changes import ChangesQuestion
from hubbub.wire.upload import decode_upload
from tests.client.device import collection_of, rows_of, seeded, store_of
from tests.client.real_collector import RealCollector
from tests.shared.small_collections import collection_text

STEPS = 8
TEXT = collection_text(
    privacy={"user": 4.5, "minimum_batch": 20},
    fields={"place": {"kind": "categorical", "names": ["home", "work", "away"]}},
    questions={"places": {"kind": "changes", "field": "place", "epsilon": 2.0, "steps": 8, "changes": 3}},
)
FIRST = 3 * STEPS  # the first step of a horizon


class World(RealCollector):
    """A collector of the stream, and some devices."""

    def __init__(self, folder: Path, text: str = TEXT, devices: int = 1, start: int = FIRST) -> None:
        super().__init__(folder, text, start)
        self.devices = [self.device(number, rng=seeded(number)) for number in range(devices)]

    def live(self, step: int, *values: str | None) -> list[int]:
        self.go(step, 60)
        reports = []
        for client, value in zip(self.devices, values, strict=True):
            if value is not None:
                client.record("place", value)
            reports.append(client.tick())
            client.upload()
        return reports

    def state(self, client: Client, step: int) -> tuple[States, StoredState]:
        """What a device remembers of the stream in a step."""
        store = store_of(client)
        for part in self.symbols.parts.values():
            with store.transaction():
                stored = store.state("question:places", stream_of(collection_of(client), part, step))
            if stored is not None:
                return States.from_bytes(part, stored.state), stored
        raise AssertionError("the device has no state")

    @property
    def symbols(self) -> ChangeStream:
        question = self.collection.questions["places"]
        assert isinstance(question, ChangesQuestion)
        return question.mechanism_for()


OpenWorld: TypeAlias = Callable[..., World]


@pytest.fixture
def world(folder: Path) -> Iterator[OpenWorld]:
    started: list[World] = []

    def build(**given: Any) -> World:
        started.append(World(folder, **given))
        return started[-1]

    yield build
    for each in started:
        each.close()


def test_a_horizon_is_paid_once_and_the_next_again(world: OpenWorld) -> None:
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


def test_it_reports_when_it_enrols_and_whenever_a_node_of_its_level_ends(world: OpenWorld) -> None:
    here = world(devices=12)
    reports = [here.live(FIRST + at, *["home"] * 12) for at in range(STEPS)]
    levels = [int(here.state(client, FIRST)[0]["level"][0]) for client in here.devices]
    assert len(set(levels)) > 1
    for number, level in enumerate(levels):
        span = here.symbols.plan.tree.span(level)
        assert [row[number] for row in reports] == [int(at == 1 or at % span == 0) for at in range(1, STEPS + 1)]
    here.go(FIRST + STEPS, 660)
    assert [row["n"] for row in here.released("places")] == [12] * STEPS
    for at, row in enumerate(here.released("places"), start=1):
        due = sum(at % here.symbols.plan.tree.span(level) == 0 for level in levels)
        assert row["lost"]["due"] == row["lost"]["came"] == due
        assert row["lost"]["bias"] == [0.0] * 3
        assert row["labels"] == ["home", "work", "away"]
    assert [row["spent"] for row in here.released("places")] == [1.0] + [0.0] * (STEPS - 1)


def test_several_fields_share_one_state_and_one_epsilon(world: OpenWorld) -> None:
    """What a device holds of a category, a bit and a set after some steps is what it recorded last of each."""
    items = {"kind": "categorical", "names": ["tea", "milk", "bread"]}
    fields: dict[str, dict[str, Any]] = {
        "place": {"kind": "categorical", "names": ["home", "work", "away"]},
        "awake": {"kind": "ordinal", "size": 2},
        "bag": {"kind": "sets", "most": 2, "items": items},
    }
    asked = {"kind": "changes", "fields": list(fields), "epsilon": 2.0, "steps": 8, "changes": 40, "fanout": 9}
    privacy = {"user": 4.5, "minimum_batch": 20}
    here = world(text=collection_text(privacy=privacy, fields=fields, questions={"places": asked}), devices=2)
    first, second = here.devices
    first.record("awake", 1)
    first.record("bag", ["milk", "bread"])
    for at, place in enumerate(("home", "work", None)):
        here.live(FIRST + at, place, None)  # the second never records anything
    assert here.state(first, FIRST)[0]["held"].tolist() == [[0, 1, 0, 1, 0, 1, 1]]
    assert here.state(second, FIRST)[0]["held"].tolist() == [[0] * 7]
    assert first.status().spent == second.status().spent == here.symbols.event().spent
    here.go(FIRST + 3, 660)
    labels = ["place: home", "place: work", "place: away", "awake", "bag: tea", "bag: milk", "bag: bread"]
    assert here.released("places")[0]["labels"] == labels


def test_a_step_taken_twice_says_the_same_and_the_state_survives_restarts(world: OpenWorld) -> None:
    here = world()
    for at in range(STEPS):
        here.go(FIRST + at, 60)
        first = here.devices[0]
        first.record("place", "home")
        reports = first.tick()
        before = here.state(first, FIRST)
        first.close()
        again = here.device(0, rng=seeded(99 + at))  # another process
        here.devices = [again]
        again.record("place", "away")
        assert again.tick() == 0
        assert here.state(again, FIRST)[1].state == before[1].state
        assert again.upload() == reports


def test_a_device_that_stops_half_way_has_neither_paid_nor_said_anything(
    world: OpenWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world()
    here.go(FIRST, 60)
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


def test_a_stream_that_lost_its_state_does_not_begin_again_in_its_horizon(world: OpenWorld) -> None:
    here = world()
    (client,) = here.devices
    cost = here.symbols.event().spent
    here.live(FIRST, "home")
    rows_of(client, "DELETE FROM states")
    for at in range(1, STEPS):
        assert here.live(FIRST + at, "home") == [0]
        assert client.status().spent == cost
    assert here.live(FIRST + STEPS, "home") == [1]
    assert client.status().spent == 2 * cost


def test_missed_steps_advance_the_state_and_are_counted_as_lost(world: OpenWorld) -> None:
    here = world(devices=30)
    everyone, some = list(here.devices), here.devices[:20]
    here.live(FIRST, *["home"] * 30)
    here.devices = some  # ten are away
    for at in range(1, 4):
        here.live(FIRST + at, *["home"] * 20)
    here.devices = everyone
    for at in range(4, STEPS):
        here.live(FIRST + at, *["home"] * 30)
    here.go(FIRST + STEPS, 660)
    for client in everyone:
        state, _ = here.state(client, FIRST)
        span = here.symbols.plan.tree.span(int(state["level"][0]))
        assert state["node"][0] == STEPS // span
        # ExSub's entries, missed ones too, have all been decided: what is left are the stubs.
        left = int(state["counters"][0, 3:].sum())
        assert left == here.symbols.plan.mechanisms[int(state["level"][0])].sparsity + 3 * (STEPS % span)
    lost = [row["lost"]["due"] - row["lost"]["came"] for row in here.released("places")]
    away = [int(here.state(client, FIRST)[0]["level"][0]) for client in everyone[20:]]
    spans = [here.symbols.plan.tree.span(level) for level in away]
    assert lost == [sum(at % span == 0 for span in spans) if 2 <= at <= 4 else 0 for at in range(1, STEPS + 1)]
    assert sum(lost) > 0
    assert any(any(row["lost"]["bias"]) for row in here.released("places"))
    assert all(row["n"] == 30 for row in here.released("places"))


def test_late_reports_are_counted_as_late_and_an_enrolment_that_was_lost_is_said_again(world: OpenWorld) -> None:
    here = world(devices=2)
    here.go(FIRST, 60)
    for client in here.devices:
        client.record("place", "work")
        client.tick()
    here.devices[0].upload()
    here.go(FIRST + 1, 760)  # the other one's report is past its lateness
    late = here.devices[1]
    assert late.upload() == 0
    assert late.status().counts == {"late": 1}
    assert here.state(late, FIRST)[1].enrolled is False
    in_time = here.state(here.devices[0], FIRST)[1]
    assert (in_time.enrolled, in_time.enrolment) == (True, None)
    here.wire.bodies.clear()
    for at in range(1, STEPS):
        here.live(FIRST + at, "work", "work")
    assert here.state(late, FIRST)[1].enrolled is True
    reports = [e.reports(here.symbols) for _, body in here.wire.bodies for e in decode_upload(body).entries]
    assert sum(int(report.public["new"][0]) for report in reports) == 1
    assert late.status().spent == here.symbols.event().spent
    here.go(FIRST + STEPS, 660)
    assert here.released("places")[-1]["n"] == 2


def test_a_device_that_joins_late_pays_the_same_and_tells_all_it_holds(world: OpenWorld) -> None:
    here = world(start=FIRST + 5)
    for at in range(5, STEPS):
        here.live(FIRST + at, "away")
    (client,) = here.devices
    state, _ = here.state(client, FIRST)
    assert state["held"].tolist() in ([[0, 0, 1]], [[0, 0, 0]])  # nothing, where no node has ended since
    assert client.status().spent == here.symbols.event().spent
    here.go(FIRST + STEPS, 660)
    assert [row["step"] for row in here.released("places")] == list(range(FIRST + 5, FIRST + STEPS))


def test_more_changes_than_may_be_told_are_held_back(world: OpenWorld) -> None:
    here = world()
    (client,) = here.devices
    for at in range(STEPS):
        here.live(FIRST + at, ["home", "work", "away"][at % 3])
    state, _ = here.state(client, FIRST)
    assert int(state["used"][0]) <= here.symbols.changes


def test_cover_hides_the_rhythm(world: OpenWorld) -> None:
    here = world(text=TEXT.replace("minimum_batch = 20", "minimum_batch = 20\ncover = true"))
    for at in range(STEPS):
        here.live(FIRST + at, "home")
    assert [len(body) for _, body in here.wire.bodies] == [here.collection.frame_bytes] * STEPS
