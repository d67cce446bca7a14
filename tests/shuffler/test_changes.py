"""Streams of changes whose reports are shuffled: a batch a level and step, and nothing that links two of them."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hubbub.authoring import check, promise
from hubbub.authoring.coalitions import coalitions_of
from hubbub.authoring.toml import read_collection
from hubbub.client import Client
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.questions.changes import ChangesQuestion
from hubbub.service.collector.candidates import range_of_steps
from hubbub.service.collector.shuffled_batches import shuffled_body
from hubbub.wire.upload import decode_upload
from tests.shuffler.shuffle_world import HOUR, ShuffleWorld

STEPS, FIRST = 4, 8  # a horizon begins at every fourth hour
CHANGES: dict[str, Any] = {
    "questions": {"popular": {"kind": "changes", "field": "theme", "epsilon": 2.0, "steps": STEPS, "changes": 2}},
    "privacy": {"user": 100.0, "minimum_batch": 2},
    "override": {"minimum_batch_below_20": "a test"},
    "fakes": 0,
}


class ChangeWorld:
    """Devices that record a theme, with two shufflers and a collector."""

    def __init__(self, folder: Path, devices: int, mechanism: str = "ExSub", least: int = 2) -> None:
        popular = {**CHANGES["questions"]["popular"], "mechanism": mechanism}
        given = {**CHANGES, "questions": {"popular": popular}}
        self.world = ShuffleWorld(folder, least=least, now=FIRST * HOUR + 60.0, **given)
        self.folder = folder
        self.devices = [self.device(number) for number in range(devices)]

    def device(self, number: int) -> Client:
        return self.world.device(self.folder / f"device-{number}")

    def live(self, step: int, *devices: Client, after: float = 60.0, unheard: Sequence[Client] = ()) -> list[int]:
        """Each device answers in a step, and uploads if it is heard; then the shufflers hand the batches on."""
        world = self.world
        world.clock.set(step * HOUR + after)
        world.collector.tick()
        answered = []
        for device in devices:
            device.record("theme", "dark")
            answered.append(device.tick())
            if device not in unheard:
                device.upload()
        world.clock.set((step + 1) * HOUR + world.collection.accepts_for + 1)
        world.tick()
        world.clock.set((step + 1) * HOUR + world.collection.lateness_seconds + 1)
        world.tick()
        world.collector.tick()
        return answered

    @property
    def stream(self) -> ChangeStream:
        question = self.world.collection.questions["popular"]
        assert isinstance(question, ChangesQuestion)
        return question.mechanism_for()

    def released(self) -> list[dict[str, Any]]:
        rows = self.world.collector.releases("survey", "popular", first=0, last=1 << 40, most=99)
        return [json.loads(row.payload) for row in rows]


@pytest.fixture
def changing(tmp_path: Path) -> ChangeWorld:
    return ChangeWorld(tmp_path, devices=24)


@pytest.mark.parametrize("mechanism", ["ExSub", "NetSub"])
def test_a_horizon_is_counted_from_shuffled_batches(tmp_path: Path, mechanism: str) -> None:
    changing = ChangeWorld(tmp_path, devices=24, mechanism=mechanism)
    rows = [changing.live(FIRST + at, *changing.devices) for at in range(STEPS)]
    spans = [sum(row[number] for row in rows) for number in range(24)]
    levels = Counter({4: 0, 2: 1, 1: 2}[answers] for answers in spans)  # how often a level reports in four steps
    assert sum(levels.values()) == 24
    batches = shuffled_body(changing.world.store, changing.world.collection).questions["popular"].batches
    counted = {(batch.step - FIRST + 1, batch.part): batch.people for batch in batches}
    due = {(at, level): levels[level] for at in range(1, 5) for level in range(3) if at % 2**level == 0}
    assert counted == {name: people for name, people in due.items() if people >= 2}
    releases = changing.released()
    assert [release["n"] for release in releases][-1] == sum(people for people in levels.values() if people >= 2)
    assert releases[-1]["lost"]["came"] == releases[-1]["lost"]["due"]
    assert releases[-1]["lost"]["present"] == min(people for people in levels.values() if people >= 2)
    whole = range_of_steps(changing.world.collector, changing.world.collection, "popular")
    assert whole is not None
    assert (whole.first, whole.last, whole.came) == (FIRST, FIRST + 3, releases[-1]["lost"]["due"] + sum(
        release["lost"]["due"] for release in releases[:-1]))  # fmt: skip
    assert whole.mean.value is not None


def test_a_device_enrols_with_its_first_report_and_late_ones_are_marked_once(changing: ChangeWorld) -> None:
    """No report enrols by itself: it would be in a batch of few. Who misses a batch is not counted as present."""
    for at in range(STEPS):
        devices = changing.devices if at else changing.devices[:16]
        changing.live(FIRST + at, *(device for device in devices if not (at == 2 and device is changing.devices[0])))
    sent = [
        decode_upload(body) for to, method, _, body in changing.world.seen if method == "POST" and "0" in to and body
    ]
    for upload in sent:
        for entry in upload.entries:
            span = 2**entry.part
            assert (entry.step - FIRST + 1) % span == 0  # never between the nodes of its level
    lost = changing.released()[-1]["lost"]
    on_first = [entry.part for upload in sent for entry in upload.entries if entry.step == FIRST]
    assert set(on_first) == {0}
    assert lost["present"] <= len(on_first)


@pytest.mark.parametrize(
    "more", [{}, {"mechanism": "ExSub"}, {"queries": "range", "fanout": 3}], ids=["NetSub", "ExSub", "ranges"]
)
def test_what_is_said_of_a_horizon_and_a_year(more: dict[str, Any]) -> None:
    asked = {**CHANGES, "questions": {"popular": {**CHANGES["questions"]["popular"], **more}}}
    collection = read_collection(ShuffleWorld(**asked).text(least=1000, **asked))
    assert not [finding for finding in check(collection) if finding.level == "error"]
    rows = coalitions_of(collection, "popular")
    alone, everyone = rows[0], rows[-1]
    assert alone.year is not None
    assert alone.epsilon < 0.5 < everyone.epsilon <= 2.0
    assert alone.epsilon < alone.year[0] <= 100.0
    assert everyone.year == (100.0, 0.0)  # the limit for life
    text = promise(collection)
    assert "from all reports of a period of 4 hours, if at least 1,000 devices of each level miss none" in text
    assert "A device that misses one, or that joins later, has only the limit of the device itself" in text
    assert alone.text() in text
    assert "Linked reports" not in text


def test_kept_answers_stay_refused() -> None:
    text = ShuffleWorld().text(fakes=0).replace('kind = "histogram"', 'kind = "memo"\npermanent = 4.0')
    errors = [finding for finding in check(read_collection(text)) if finding.level == "error"]
    assert any("undoes the shuffle" in finding.text for finding in errors)


@pytest.mark.parametrize("tried", [60.0, 400.0], ids=["refused by the shuffler", "late by its own clock"])
def test_who_enrols_in_vain_does_not_stand_in_for_another(changing: ChangeWorld, tried: float) -> None:
    """A device whose first report came too late does not hide that another one missed the second batch."""
    changing.world.clock.set(FIRST * HOUR + 60.0)
    changing.world.collector.tick()
    lowest = [device for device in changing.devices if device.tick()]  # other levels report at later steps
    late, away, *others = lowest
    changing.live(FIRST, late, away, *others, unheard=[late])
    changing.live(FIRST + 1, late, *others, after=tried)
    assert changing.released()[-1]["lost"]["present"] == len(others)
    assert late.status().counts["not enrolled"] == 1
    changing.live(FIRST + 2, late, away, *others)
    assert changing.released()[-1]["lost"]["present"] == len(others)
    assert late.status().counts["sent"] == 1


def test_a_report_does_not_go_out_without_its_enrolment_when_the_next_horizon_has_begun(changing: ChangeWorld) -> None:
    """The state of the next horizon takes the place of the one whose enrolment still waits."""
    world = changing.world
    world.clock.set(FIRST * HOUR + 60.0)
    world.collector.tick()
    late, *others = [device for device in changing.devices if device.tick()]
    for step in range(FIRST, FIRST + STEPS - 1):
        changing.live(step, late, *others, unheard=[late])
    world.clock.set((FIRST + STEPS - 1) * HOUR + 60.0)
    world.collector.tick()
    for device in (late, *others):
        assert device.tick()
        if device is not late:
            device.upload()
    world.clock.set((FIRST + STEPS) * HOUR + 1.0)
    world.collector.tick()
    assert late.tick()
    late.upload()
    assert late.status().counts["not enrolled"] == STEPS - 1
    assert late.status().counts["sent"] == 1  # the enrolment of the next horizon
    world.clock.set((FIRST + STEPS) * HOUR + world.collection.accepts_for + 1)
    world.tick()
    world.clock.set((FIRST + STEPS) * HOUR + world.collection.lateness_seconds + 1)
    world.tick()
    world.collector.tick()
    lost = changing.released()[-1]["lost"]
    assert (lost["due"], lost["came"]) == (len(others), len(others))


def test_the_enrolments_of_a_dropped_batch_are_counted_as_missed(tmp_path: Path) -> None:
    """Shufflers take the first three devices' reports, and drop two batches that have no others. Nobody hears that they
    enrolled, until more reports come than devices have."""
    changing = ChangeWorld(tmp_path, devices=32, least=4)
    world = changing.world
    world.clock.set(FIRST * HOUR + 60.0)
    world.collector.tick()
    lowest = [device for device in changing.devices if device.tick()]  # other levels report at later steps
    few, others = lowest[:3], lowest[3:]
    assert others  # about half of the devices are on the lowest level
    for device in few:
        device.upload()
    changing.live(FIRST, *few)
    # The reports of all others are late by now, with what follows them: they enrol at the third step.
    for at in range(1, STEPS):
        changing.live(FIRST + at, *few, *others)
    assert {device.status().counts["sent"] for device in few} == {STEPS}
    assert {device.status().counts["sent"] for device in others} == {STEPS - 2}
    batches = shuffled_body(world.store, world.collection).questions["popular"].batches
    handed_on = [(batch.step - FIRST, batch.people) for batch in batches if not batch.part]
    assert sorted(handed_on) == [(2, len(lowest)), (3, len(lowest))]
    first, second, third, last = changing.released()
    assert (first["n"], second["n"], third["n"], last["n"]) == (0, 0, len(lowest), len(lowest))
    for release in (third, last):
        lost = release["lost"]
        assert (lost["due"], lost["came"], lost["present"]) == (len(lowest), len(lowest), 0)
        assert (release["bias"], lost["bias"]) == ("heuristic", [None, None])  # nothing came that tells how much it is
    whole = range_of_steps(world.collector, world.collection, "popular")
    assert whole is not None
    assert (whole.due, whole.came) == (2 * len(few) + 2 * len(lowest), 2 * len(lowest))
    assert (whole.mean.n, whole.mean.bias, whole.lost) == (len(lowest), "heuristic", [None, None])
