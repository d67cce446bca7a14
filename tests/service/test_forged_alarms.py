"""A collector whose window is attacked says so: once, in its step, in the API, by webhook, on the page."""

import json

import numpy as np
import pytest
from msgspec import UnsetType

from hubbub import Random
from hubbub.alarms.forged import suspicion
from hubbub.attacks.forging import forge
from hubbub.authoring.toml import load_alarms, load_collection
from hubbub.core.reports import Reports
from hubbub.dashboard.alarms import alarm_banner, alarm_section
from hubbub.dashboard.answers import forged_table
from hubbub.mechanisms.frequency.oracle import FrequencyOracle
from hubbub.service.alarms import AlarmEvent, alarms_body
from hubbub.service.collector.collector import Collector
from hubbub.service.rounds.releases import told_release
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.sqlite import SqliteStore
from tests.shared.in_process import World, send_reports
from tests.shared.small_collections import collection_text

HOUR = 3600
FIRST = 24
PEOPLE = 4000
TEXT = collection_text(
    fields={"place": {"kind": "ordinal", "size": 40}},
    questions={"all": {"kind": "histogram", "field": "place", "epsilon": 1.0, "mechanism": "OUE"}},
    privacy={"user": 5000.0, "minimum_batch": 100},
    alarms={"forged": {"question": "all", "forged": True, "false_alarms": "1 in 365d"}},
)


class Survey(World):
    """A crowd that answers in each step, and some forged devices."""

    def __init__(self, text: str = TEXT, store: SqliteStore | None = None) -> None:
        self.notified: list[AlarmEvent] = []
        alarms = {"survey": load_alarms(text)}
        super().__init__(load_collection(text), (FIRST + 0.01) * HOUR, store, alarms=alarms)
        self.collector.alarms.listen(self.notified.append)

    def live(self, step: int, forged: int = 0, *, batches: int = 3) -> None:
        self.at((step + 0.3) * HOUR)
        (ask,) = [each for each in self.open if each.ask.step == step]
        oracle, rng = ask.ask.mechanism, Random(seed=step)
        assert isinstance(oracle, FrequencyOracle)
        parts = [oracle.randomize(rng.below(40, PEOPLE), rng)]
        parts += [forge(oracle, [7], forged, rng, "plain")] if forged else []
        reports = Reports.concat(parts)
        for rows in np.array_split(np.arange(len(reports)), batches):
            assert send_reports(self.collector, ask, reports[rows], rng).accepted == rows.size

    def end(self, step: int) -> None:
        self.at((step + 1.3) * HOUR)


def page_of(collector: Collector, world: Survey) -> str:
    body = alarms_body(collector.alarms, world.collection)
    parts = [alarm_banner(world.collection, body), alarm_section(world.collection, body)]
    return "".join(str(part) for part in parts if part is not None)


def test_an_attacked_window_raises_the_alarm_and_a_quiet_one_clears_it() -> None:
    world = Survey()
    world.live(FIRST)
    world.live(FIRST + 1, forged=40)
    world.live(FIRST + 2)
    assert "less than 1e-12, if all reports were genuine" in page_of(world.collector, world)
    world.end(FIRST + 2)
    raised, cleared = world.notified
    assert (raised.state, raised.step, raised.since) == ("raised", FIRST + 1, FIRST + 1)
    assert raised.value == raised.low == raised.high < 1e-12
    assert raised.threshold == pytest.approx(1 / 8760)
    assert raised.title.startswith("all: reports look forged: ")
    assert "values; " in raised.title
    assert (cleared.state, cleared.step) == ("cleared", FIRST + 2)
    assert cleared.value >= 1 / 8760
    (status,) = world.collector.alarms.status("survey")
    assert (status.state, status.category, status.direction) == ("quiet", "", None)
    body = alarms_body(world.collector.alarms, world.collection)
    assert json.loads(json.dumps(body.alarms[0].definition)) == load_alarms(TEXT).spec()["forged"]
    page = page_of(world.collector, world)
    assert "Raised below a chance of" in page
    assert "0.00011" in page


def test_what_is_sent_in_parts_over_a_restart_is_one_window() -> None:
    store = SqliteStore(":memory:")
    world = Survey(store=store)
    world.live(FIRST, forged=40)
    (ask,) = [each for each in world.open if each.ask.step == FIRST]
    whole = ask.sketch
    world.begin()
    world.collector.alarms.listen(world.notified.append)
    (again,) = [each for each in world.open if each.ask.step == FIRST]
    assert again.sketch == whole
    found = suspicion(again.ask.mechanism, whole)
    assert found is not None
    world.end(FIRST)
    (raised,) = world.notified
    assert raised.value == found.p_value
    world.begin()  # nothing is judged again
    assert [event.state for event in world.collector.alarms.last_events("survey")] == ["raised"]


def test_few_reports_and_other_questions_have_no_screen() -> None:
    world = Survey()
    world.at((FIRST + 0.1) * HOUR)
    (ask,) = [each for each in world.open if each.ask.step == FIRST]
    assert isinstance(ask.ask.mechanism, FrequencyOracle)
    rng = Random(seed=1)
    send_reports(world.collector, ask, forge(ask.ask.mechanism, [7], 99, rng, "plain"), rng)  # below minimum_batch
    world.end(FIRST)
    assert not world.notified
    plain = Survey(TEXT.split("[alarms")[0])
    plain.live(FIRST)
    (ask,) = [each for each in plain.open if each.ask.step == FIRST]
    assert ask.sketch.screen is None


def test_a_failed_commit_judges_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Survey()
    world.live(FIRST, forged=40)
    with monkeypatch.context() as patch:
        patch.setattr(world.store, "commit", lambda changes: (_ for _ in ()).throw(StoreFailed("full")))
        with pytest.raises(StoreFailed):
            world.end(FIRST)
    world.begin()
    world.end(FIRST)
    assert [event.number for event in world.collector.alarms.last_events("survey")] == [1]


def test_a_release_has_intervals_that_hold_with_forged_devices() -> None:
    world = Survey()
    world.live(FIRST)
    world.end(FIRST)
    (row,) = world.rows("all")
    told = told_release(row, question=world.collection.questions["all"])
    assert not isinstance(told.forged, UnsetType)
    assert (told.forged.devices, told.forged.reports) == (0.01, 0.01)
    columns = (told.forged.low or (), told.low or (), told.high or (), told.forged.high or ())
    for ends in zip(*columns, strict=True):
        numbers = [end for end in ends if end is not None]
        assert len(numbers) == 4
        assert sorted(set(numbers)) == numbers  # each wider interval is around the other
    page = str(forged_table(told))
    assert "What if 1% of the devices are forged?" in page
    assert page.count("<tr") == 21  # the first twenty, and the head
    plain = told_release(row)
    assert isinstance(plain.forged, UnsetType)
    assert forged_table(plain) is None
