"""Studies and parts on a device: one answer a round, values frozen for the run, debited once."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hubbub as hb
from hubbub.client import Client, Response
from hubbub.client.store import StoredState
from hubbub.collection import ManualClock, seal
from hubbub.collection.names import AnswerName
from hubbub.collection.sealing import ASKS
from hubbub.collection.terms import Family, Study, Terms, frame_for
from hubbub.core.event import units_of
from hubbub.ledger.promise import Promise, of_question
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Ask, place_on_circle
from hubbub.protocols.views.basic import Among, View
from hubbub.wire.upload import decode_upload
from tests.client.device import device, refused, store_of
from tests.client.local_server import KEYS, survey
from tests.client.test_client import CERTAIN

HOUR, ROUND, DAY = 3600, 1200, 86400
START = 10 * HOUR
ONE = units_of(1.0)
CERTAINLY = 30.0
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

    def __init__(self, terms: Terms, **changes: str) -> None:
        self.reports: list[tuple[AnswerName, bytes]] = []
        self.serve(terms, 1, **changes)
        self.publish([], now=0.0)

    def serve(self, terms: Terms, version: int, /, **changes: str) -> None:
        """Serve a version of the collection, whose question is a study by these terms."""
        self.collection, self.version = survey(CERTAIN, **{"event": "2.0"} | changes), version
        spec: dict[str, Any] = json.loads(json.dumps(self.collection.spec()))
        spec["version"] = version
        spec["terms"]["popular"] = terms.spec()
        spec["frame_bytes"] = frame_for({**self.collection.terms, "popular": terms})
        self.documents = {"/v1/collections/survey": seal(spec, KEYS.private)}

    def publish(self, asks: list[tuple[int, int, int, Ask]], now: float) -> None:
        """Publish asks, each with its run, round and part."""
        listed: list[Any] = []
        for run, round, part, ask in asks:
            name = AnswerName("popular", run, ask.step, round, part)
            listed.append({**name._asdict(), "closes": now + ROUND, "ask": ask.spec()})
        step = self.collection.step_at(now)
        closes = min([self.collection.opens(step + 1), *(now + ROUND for _ in listed)])
        spec: dict[str, Any] = {"format": ASKS.version, "collection": "survey", "version": self.version, "step": step}
        self.documents["/v1/collections/survey/asks"] = seal({**spec, "asks": listed, "closes": closes}, KEYS.private)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        if body is not None:
            self.reports += [(entry.name, entry.report) for entry in decode_upload(body).entries]
            return Response(200, {}, b'{"accepted": 1, "rejected": []}')
        return Response(200, {}, json.dumps(self.documents[path]).encode())


def ask(epsilon: float = 0.25, view: View | None = None, cohort: Arc = EVERYONE) -> Ask:
    view = view or Among((0, 1))
    return Ask(mechanism=hb.GRR(epsilon=epsilon, domain=view.size or 0), step=0, view=view, cohort=cohort)


class StudyWorld:
    """A device, a server and a clock."""

    def __init__(self, folder: Path, terms: Terms = TERMS, **changes: str) -> None:
        self.server, self.clock, self.folder = StudyServer(terms, **changes), ManualClock(START - HOUR), folder
        self.client: Client = device(folder, self.server, self.clock)
        self.client.tick()

    def reopen(self) -> None:
        """Go on in another process."""
        self.client.close()
        self.client = device(self.folder, self.server, self.clock)

    def round(self, round: int, *asks: Ask, run: int = 0, late: float = 700.0) -> int:
        """Publish the asks of a round, each a part, and let the device answer; how many reports it makes."""
        self.clock.set(START + run * DAY + (round - 1) * ROUND + late)
        parts = [(run, round, part, published) for part, published in enumerate(asks or (ask(),))]
        self.server.publish(parts, self.clock.now())
        reports = self.client.tick()
        assert self.client.upload() == reports
        return reports


@pytest.fixture
def world(folder: Path) -> Iterator[StudyWorld]:
    made = StudyWorld(folder)
    yield made
    made.client.close()


def test_a_run_is_paid_whole_with_its_first_answer_and_never_again(world: StudyWorld) -> None:
    world.client.record("theme", "dark")
    assert [world.round(1), world.round(2), world.round(3, ask(0.5))] == [1, 1, 1]
    assert world.client.status().spent == ONE
    assert [name.round for name, _ in world.server.reports] == [1, 2, 3]
    assert world.round(1, run=1) == 1
    assert world.client.status().spent == 2 * ONE


def test_it_counts_until_the_run_is_over(world: StudyWorld) -> None:
    assert world.round(1) == 1
    for hour, spent in ((0, ONE), (0.99, ONE), (1, 0)):
        world.clock.set(START + hour * HOUR + 1)
        event = world.client.status().event
        assert event is not None
        assert event.spent == spent, hour


def test_a_round_is_answered_once_whatever_part_and_however_often_it_is_asked(world: StudyWorld) -> None:
    place = place_on_circle(store_of(world.client).device_key, "survey")
    here, there = Arc(place, CIRCLE // 2), Arc((place + CIRCLE // 2) % CIRCLE, CIRCLE // 2)
    assert world.round(1, ask(cohort=there), ask(cohort=here)) == 1
    assert world.server.reports[-1][0].part == 1
    for _ in range(3):  # another process, another document, the other part
        world.reopen()
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
def test_what_is_not_signed_is_refused_and_costs_nothing(world: StudyWorld, reason: str, asks: list[Ask]) -> None:
    assert world.round(1, *asks) == 0
    assert refused(world.client) == {reason: 1}
    assert world.client.status().spent == 0


def test_more_rounds_or_more_runs_than_signed_are_refused(folder: Path) -> None:
    once = replace(TERMS, study=Study(start=START, round_seconds=ROUND, every=0))
    here = StudyWorld(folder, once)
    for run, round, reason in ((0, 4, "round"), (0, 0, "round"), (1, 1, "run")):
        assert here.round(round, run=run) == 0
        assert refused(here.client).pop(reason) >= 1
    assert here.client.status().spent == 0
    here.client.close()


def test_asks_that_declare_more_than_the_limit_together_are_refused(world: StudyWorld) -> None:
    assert [world.round(1, ask(0.5)), world.round(2, ask(0.5))] == [1, 1]
    assert world.round(3, ask(0.25)) == 0
    assert refused(world.client) == {"limit": 1}
    assert world.client.status().spent == ONE


WIDER = replace(TERMS, limit=2 * ONE, promises=(Promise(2 * ONE, 1, DAY, 0, scope=of_question("popular")),))


@pytest.mark.usefixtures("any_version")
def test_a_version_that_widens_the_limit_in_mid_run_gets_no_more_than_was_paid(world: StudyWorld) -> None:
    assert [world.round(1, ask(0.5)), world.round(2, ask(0.5))] == [1, 1]
    world.server.serve(WIDER, 2)
    assert world.round(3, ask(0.5)) == 0
    assert refused(world.client) == {"limit": 1}
    assert world.client.status().spent == ONE


def test_a_version_that_postpones_the_end_of_a_run_is_not_answered_in_it(world: StudyWorld) -> None:
    """What was paid stops counting when the run should have ended: an answer after that would be free."""
    assert world.round(1) == 1
    later = replace(TERMS, study=Study(start=START + 5 * HOUR, round_seconds=ROUND, every=DAY))
    world.server.serve(later, 2)
    assert world.round(2, late=5 * HOUR + 700.0) == 0
    assert refused(world.client) == {"run": 1}
    assert [name.round for name, _ in world.server.reports] == [1]


def test_a_round_is_answered_in_its_time_and_a_missed_one_stays_silent(world: StudyWorld) -> None:
    world.clock.set(START + ROUND + 700.0)
    world.server.publish([(0, 1, 0, ask()), (0, 3, 0, ask())], world.clock.now())  # of the first and of the third
    assert world.client.tick() == 0
    assert world.client.status().spent == 0
    assert world.round(3) == 1  # the others were missed; it is paid for all the same
    assert world.client.status().spent == ONE
    world.clock.set(START + 2 * ROUND + 800.0)
    world.server.publish([(0, 2, 0, ask())], world.clock.now())
    assert world.client.tick() == 0


def test_no_clock_brings_an_earlier_round_back(world: StudyWorld) -> None:
    assert world.round(2) == 1
    assert world.round(1) == 0  # within the same step, which the ledger would allow
    assert refused(world.client) == {"round": 1}


def test_values_are_frozen_for_the_run(folder: Path) -> None:
    """At epsilon 30 a report is the value, but for once in 10^13 times."""
    limit = 3 * units_of(CERTAINLY)
    promises = (Promise(limit, 1, DAY, 0, scope=of_question("popular")),)
    sure = replace(TERMS, families=(Family("GRR", (units_of(CERTAINLY),)),), limit=limit, promises=promises)
    here = StudyWorld(folder, sure, event="200.0", user="200.0")
    here.client.record("theme", "light")
    assert here.round(1, ask(CERTAINLY)) == 1
    here.client.record("theme", "dark")
    assert here.round(2, ask(CERTAINLY)) == 1
    here.reopen()
    assert here.round(3, ask(CERTAINLY)) == 1
    assert [report for _, report in here.server.reports] == [b"\x00"] * 3
    assert here.round(1, ask(CERTAINLY), run=1) == 1
    assert here.server.reports[-1][1] == b"\x01"
    here.client.close()


def damaged(world: StudyWorld, state: bytes, run: str = "0") -> None:
    """Put another state in the place of the study's."""
    store = store_of(world.client)
    with store.transaction():
        store.set_state("study:popular", run, StoredState(state))


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
def test_a_state_that_cannot_be_read_is_refused_and_the_next_run_is_answered(world: StudyWorld, change: Any) -> None:
    assert world.round(1) == 1
    with store_of(world.client).transaction():
        stored = store_of(world.client).state("study:popular", "0")
    assert stored is not None
    damaged(world, change(stored.state))
    assert world.round(2) == 0
    assert refused(world.client) == {"state": 1}
    assert world.client.status().spent == ONE
    assert world.round(1, run=1) == 1
    assert world.client.status().spent == 2 * ONE


def test_a_run_that_is_no_number_is_refused(world: StudyWorld) -> None:
    assert world.round(1) == 1
    damaged(world, b"{}", run="the first")
    assert world.round(2) == 0
    assert refused(world.client) == {"state": 1}
