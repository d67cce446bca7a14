"""Studies and parts on a device: one answer a round, values frozen for the run, debited once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.client import Client, Response
from hubbub.client.store import StoredState
from hubbub.collection import ManualClock, seal
from hubbub.collection.formats import ASKS
from hubbub.collection.names import AnswerName
from hubbub.collection.terms import Family, Study, Terms, frame_for
from hubbub.core.event import units_of
from hubbub.ledger.promise import Promise, of_question
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Ask, place_on_circle
from hubbub.protocols.views.basic import Among, View
from hubbub.wire.upload import decode_upload
from tests.client.device import device
from tests.client.local_server import KEYS, TEXT, survey

HOUR, ROUND, DAY = 3600, 1200, 86400
START = 10 * HOUR
ONE = units_of(1.0)
CERTAIN = 30.0
TERMS = Terms(
    fields=("theme",),
    frozen="study",
    views=({"kind": "among", "codes": {"most": 2}},),
    families=(Family("GRR", (ONE // 4, ONE // 2, ONE)),),
    rounds=3,
    parts=2,
    limit=ONE,
    promises=(Promise(ONE, 1, DAY, 0, scope=of_question("popular")),),
    report_bytes=1,
    study=Study(start=START, round_seconds=ROUND, every=DAY),
)


class StudyServer:
    """Serves signed documents, and keeps what is sent."""

    def __init__(self, terms: Terms = TERMS, text: str = TEXT) -> None:
        self.reports: list[tuple[AnswerName, bytes]] = []
        self.serve(terms, text)
        self.publish([], now=0.0)

    def serve(self, terms: Terms, text: str = TEXT, version: int = 1) -> None:
        """Serve a version of the collection, whose question is a study by these terms."""
        self.collection, self.version = survey(text, event="2.0"), version
        spec: dict[str, Any] = json.loads(json.dumps(self.collection.spec()))
        spec["version"] = version
        spec["terms"]["popular"] = terms.spec()
        spec["frame_bytes"] = frame_for({**self.collection.terms, "popular": terms})
        self.documents = {"/v1/collections/survey": seal(spec, KEYS.private)}

    def publish(self, asks: list[tuple[int, int, int, Ask]], now: float) -> None:
        """Publish asks, each with its run, round and part."""
        listed = []
        for run, round, part, ask in asks:
            name = AnswerName("popular", run, ask.step, round, part)
            listed.append({**name._asdict(), "closes": now + ROUND, "ask": ask.spec()})
        step = self.collection.step_at(now)
        spec = {"format": ASKS.version, "collection": "survey", "version": self.version, "step": step, "asks": listed}
        closes = min([self.collection.opens(step + 1), *(now + ROUND for _ in listed)])
        self.documents["/v1/collections/survey/asks"] = seal({**spec, "closes": closes}, KEYS.private)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        if method == "POST":
            assert body is not None
            self.reports += [(entry.name, entry.report) for entry in decode_upload(body).entries]
            return Response(200, {}, b'{"accepted": 1, "rejected": []}')
        return Response(200, {}, json.dumps(self.documents[path]).encode())


def ask(epsilon: float = 0.25, view: View | None = None, cohort: Arc = EVERYONE) -> Ask:
    view = view or Among((0, 1))
    return Ask(mechanism=hb.GRR(epsilon=epsilon, domain=view.size or 0), step=0, view=view, cohort=cohort)


class World:
    """A device, a server and a clock."""

    def __init__(self, folder: Path, terms: Terms = TERMS) -> None:
        self.server, self.clock, self.folder = StudyServer(terms), ManualClock(START - HOUR), folder
        self.client: Client = device(folder, self.server, self.clock)
        self.client.tick()

    def round(self, round: int, *asks: Ask, run: int = 0, late: float = 700.0) -> int:
        """Publish the asks of a round, each a part, and let the device answer; how many reports it makes."""
        self.clock.set(START + run * DAY + (round - 1) * ROUND + late)
        parts = [(run, round, part, published) for part, published in enumerate(asks or (ask(),))]
        self.server.publish(parts, self.clock.now())
        reports = self.client.tick()
        assert self.client.upload() == reports
        return reports

    def refused(self) -> dict[str, int]:
        counts = self.client.status().counts
        return {name.removeprefix("refused: "): n for name, n in counts.items() if name.startswith("refused: ")}


@pytest.fixture
def world(folder: Path) -> Any:
    made = World(folder)
    yield made
    made.client.close()


def test_a_run_is_paid_whole_with_its_first_answer_and_never_again(world: World) -> None:
    world.client.record("theme", "dark")
    assert [world.round(1), world.round(2), world.round(3, ask(0.5))] == [1, 1, 1]
    assert world.client.status().spent == ONE
    assert [name.round for name, _ in world.server.reports] == [1, 2, 3]
    assert world.round(1, run=1) == 1
    assert world.client.status().spent == 2 * ONE


def test_it_counts_until_the_run_is_over(world: World) -> None:
    assert world.round(1) == 1
    for hour, spent in ((0, ONE), (0.99, ONE), (1, 0)):
        world.clock.set(START + hour * HOUR + 1)
        event = world.client.status().event
        assert event is not None
        assert event.spent == spent, hour


def test_a_round_is_answered_once_whatever_part_and_however_often_it_is_asked(world: World) -> None:
    place = place_on_circle(world.client._store.device_key, "survey")
    here, there = Arc(place, CIRCLE // 2), Arc((place + CIRCLE // 2) % CIRCLE, CIRCLE // 2)
    assert world.round(1, ask(cohort=there), ask(cohort=here)) == 1
    assert world.server.reports[-1][0].part == 1
    for _ in range(3):  # another process, another document, the other part
        world.client.close()
        world.client = device(world.folder, world.server, world.clock)
        assert world.round(1, ask(cohort=here), ask(cohort=there), late=800.0) == 0
    assert world.round(2, ask(cohort=there)) == 0  # not on the arc
    assert world.client.status().spent == ONE


@pytest.mark.parametrize(
    ("reason", "asks"),
    [
        ("parts", [ask(cohort=Arc(0, CIRCLE // 2)), ask(cohort=Arc(5, CIRCLE // 2))]),
        ("part", [ask(cohort=Arc(each * (CIRCLE // 4), CIRCLE // 4)) for each in range(3)]),
        ("arc", [ask(cohort=Arc(0, 5)), ask(cohort=Arc(5, CIRCLE // 2))]),
        ("view", [ask(view=Among((0, 1, 2)))]),
        ("mechanism", [ask(0.3)]),
        ("mechanism", [replace(ask(), mechanism=hb.GRR(epsilon=0.25, domain=9))]),
        ("step", [replace(ask(), step=10)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_signed_is_refused_and_costs_nothing(world: World, reason: str, asks: list[Ask]) -> None:
    assert world.round(1, *asks) == 0
    assert world.refused() == {reason: 1}
    assert world.client.status().spent == 0


def test_more_rounds_or_more_runs_than_signed_are_refused(folder: Path) -> None:
    once = replace(TERMS, study=Study(start=START, round_seconds=ROUND, every=0))
    here = World(folder, once)
    for run, round, reason in ((0, 4, "round"), (0, 0, "round"), (1, 1, "run")):
        assert here.round(round, run=run) == 0
        assert here.refused().pop(reason) >= 1
    assert here.client.status().spent == 0
    here.client.close()


def test_asks_that_declare_more_than_the_limit_together_are_refused(world: World) -> None:
    assert [world.round(1, ask(0.5)), world.round(2, ask(0.5))] == [1, 1]
    assert world.round(3, ask(0.25)) == 0
    assert world.refused() == {"limit": 1}
    assert world.client.status().spent == ONE


WIDER = replace(TERMS, limit=2 * ONE, promises=(Promise(2 * ONE, 1, DAY, 0, scope=of_question("popular")),))


@pytest.mark.usefixtures("any_version")
def test_a_version_that_widens_the_limit_in_mid_run_gets_no_more_than_was_paid(world: World) -> None:
    assert [world.round(1, ask(0.5)), world.round(2, ask(0.5))] == [1, 1]
    world.server.serve(WIDER, version=2)
    assert world.round(3, ask(0.5)) == 0
    assert world.refused() == {"limit": 1}
    assert world.client.status().spent == ONE


def test_a_version_that_postpones_the_end_of_a_run_is_not_answered_in_it(world: World) -> None:
    """What was paid stops counting when the run should have ended: an answer after that would be free."""
    assert world.round(1) == 1
    later = replace(TERMS, study=Study(start=START + 5 * HOUR, round_seconds=ROUND, every=DAY))
    world.server.serve(later, version=2)
    assert world.round(2, late=5 * HOUR + 700.0) == 0
    assert world.refused() == {"run": 1}
    assert [name.round for name, _ in world.server.reports] == [1]


def test_a_round_is_answered_in_its_time_and_a_missed_one_stays_silent(world: World) -> None:
    world.clock.set(START + ROUND + 700.0)
    world.server.publish([(0, 1, 0, ask()), (0, 3, 0, ask())], world.clock.now())  # of the first and of the third
    assert world.client.tick() == 0
    assert world.client.status().spent == 0
    assert world.round(3) == 1  # the others were missed; it is paid for all the same
    assert world.client.status().spent == ONE
    world.clock.set(START + 2 * ROUND + 800.0)
    world.server.publish([(0, 2, 0, ask())], world.clock.now())
    assert world.client.tick() == 0


def test_no_clock_brings_an_earlier_round_back(world: World) -> None:
    assert world.round(2) == 1
    assert world.round(1) == 0  # within the same step, which the ledger would allow
    assert world.refused() == {"round": 1}


def test_values_are_frozen_for_the_run(folder: Path) -> None:
    """At epsilon 30 a report is the value, but for once in 10^13 times."""
    sure = replace(TERMS, families=(Family("GRR", (units_of(CERTAIN),)),), limit=3 * units_of(CERTAIN), promises=())
    sure = replace(sure, promises=(Promise(sure.limit, 1, DAY, 0, scope=of_question("popular")),))
    text = TEXT.replace("user = 20.0", "user = 200.0").replace("[fields.theme]", "[overrides]\n[fields.theme]")
    server = StudyServer(sure, text.replace("[overrides]\n", ""))
    spec = json.loads(json.dumps(server.documents["/v1/collections/survey"]))
    assert spec
    here = World.__new__(World)
    here.server, here.clock, here.folder = server, ManualClock(START - HOUR), folder
    document = json.loads(spec["payload"])
    for promise in document["promises"]:
        promise["limit"] = 200 * ONE
        promise["parts"] = {"asks": 200 * ONE}
    document["budget"]["event"] = document["budget"]["user"] = 200 * ONE
    document["overrides"] = {"epsilon_above_8": "a test"}
    server.documents["/v1/collections/survey"] = seal(document, KEYS.private)
    here.client = device(folder, server, here.clock)
    here.client.tick()
    here.client.record("theme", "light")
    assert here.round(1, ask(CERTAIN)) == 1, here.refused()
    here.client.record("theme", "dark")
    assert here.round(2, ask(CERTAIN)) == 1
    here.client.close()
    here.client = device(folder, server, here.clock)
    assert here.round(3, ask(CERTAIN)) == 1
    assert [report for _, report in server.reports] == [b"\x00"] * 3
    assert here.round(1, ask(CERTAIN), run=1) == 1
    assert server.reports[-1][1] == b"\x01"
    here.client.close()


def damaged(world: World, state: bytes, run: str = "0") -> None:
    """Put another state in the place of the study's."""
    with world.client._store.transaction():
        world.client._store.set_state("study:popular", run, StoredState(state))


FOREIGN = {
    "truncated": lambda state: state[:-5],
    "empty": lambda state: b"",
    "not an object": lambda state: b"[]",
    "of another version": lambda state: json.dumps({**json.loads(state), "more": 1}).encode(),
    "without a field": lambda state: json.dumps({"round": 1}).encode(),
    "with less declared than nothing": lambda state: json.dumps({**json.loads(state), "declared": -(10**15)}).encode(),
    "with values that are none": lambda state: json.dumps({**json.loads(state), "values": "{"}).encode(),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
def test_a_state_that_cannot_be_read_is_refused_and_the_next_run_is_answered(world: World, change: Any) -> None:
    assert world.round(1) == 1
    with world.client._store.transaction():
        stored = world.client._store.state("study:popular", "0")
    assert stored is not None
    damaged(world, change(stored.state))
    assert world.round(2) == 0
    assert world.refused() == {"state": 1}
    assert world.client.status().spent == ONE
    assert world.round(1, run=1) == 1
    assert world.client.status().spent == 2 * ONE


def test_a_run_that_is_no_number_is_refused(world: World) -> None:
    assert world.round(1) == 1
    damaged(world, b"{}", run="the first")
    assert world.round(2) == 0
    assert world.refused() == {"state": 1}
