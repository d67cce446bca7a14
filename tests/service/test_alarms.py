"""A real collector with alarms, on a clock that is moved by hand."""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hubbub.alarms.sequential import SequentialTest
from hubbub.core.errors import InvalidValue
from hubbub.service.http.openapi import openapi
from hubbub.service.http.service import Service
from hubbub.service.store.base import StoreChanges, StoreFailed
from hubbub.service.store.sqlite import SqliteStore
from tests.service.alarm_world import FIRST, HEAD, HOUR, SHARES, AlarmWorld, statuses
from tests.service.process import deaths
from tests.service.web import AUTHORIZED, site
from tests.shared.in_process import released

LATE = """
[alarms.late]
question = "all"
weights = { late = 1 }
above = 0.3
clears = 0.25
"""
CHANGED = """
[alarms.moved]
question = "all"
each = true
change = "either"
baseline = 8
"""
TEXT = HEAD + SHARES + LATE


def test_an_alarm_is_raised_once_and_cleared_only_where_it_ends() -> None:
    world = AlarmWorld(TEXT)
    world.live([0.2] * 4 + [0.4] * 3)
    (raised,) = world.events()
    assert (raised.state, raised.direction, raised.threshold, raised.baseline) == ("raised", "above", 0.3, None)
    assert (raised.number, raised.collection, raised.question) == (1, "planes", "all")
    assert FIRST + 4 <= raised.since <= raised.step <= FIRST + 5
    assert raised.at == raised.step * HOUR
    assert raised.low < 0.4 < raised.high
    assert raised.low < raised.value < raised.high
    world.live([0.28] * 12, FIRST + 7)  # below the threshold, above where it ends
    assert len(world.events()) == 1
    world.live([0.2] * 3, FIRST + 19)
    cleared = world.events()[1]
    assert (cleared.alarm, cleared.category, cleared.state) == ("late", "", "cleared")
    assert world.notified == world.events()  # the listener heard the same
    for event in world.events():
        assert all(math.isfinite(number) for number in (event.value, event.low, event.high, event.at))
    (status,) = world.collector.alarms.status("planes")
    assert (status.state, status.step) == ("quiet", FIRST + 21)


def test_a_small_lasting_change_is_found_by_adding_up_steps() -> None:
    world = AlarmWorld(HEAD + SHARES + LATE.replace("0.3", "0.21").replace("0.25", "0.21"))
    world.live([0.2] * 3 + [0.215] * 25)  # about one standard error above
    (raised,) = world.events()
    assert raised.step > FIRST + 4
    assert raised.low < 0.21  # by itself the step tells nothing


def test_a_change_is_one_from_what_was_learnt() -> None:
    world = AlarmWorld(HEAD + SHARES + CHANGED)
    world.live([0.2] * 8)
    states = {status.category: status for status in world.collector.alarms.status("planes")}
    assert list(states) == ["early", "fine", "late", "(none)"]
    assert states["late"].baseline == pytest.approx(0.2, abs=0.03)
    world.live([0.2] * 3 + [0.4] * 3 + [0.2] * 6, FIRST + 8)
    late = [event for event in world.events() if event.category == "late"]
    assert [(event.state, event.direction) for event in late] == [("raised", "above"), ("cleared", "above")]
    assert late[0].baseline == states["late"].baseline
    assert late[0].threshold is None
    fine = [event for event in world.events() if event.category == "fine"]
    assert [(event.state, event.direction) for event in fine] == [("raised", "below"), ("cleared", "below")]
    assert {event.category for event in world.events()} == {"late", "fine"}


def test_steps_that_heard_nothing_or_too_little_change_nothing() -> None:
    world = AlarmWorld(TEXT)
    world.live([0.305])
    known = world.collector.store.alarm_states("planes")
    assert json.loads(known["late"])["state"]["above"]["sum"] > 0
    world.step(FIRST + 1, [])
    world.step(FIRST + 2, statuses(0.9, people=90))  # fewer than may be shown
    world.end(FIRST + 2)
    assert world.collector.store.alarm_states("planes") == known
    assert world.events() == []


SHAPES = [0.2] * 8 + [0.5] * 2 + [0.2] * 3


def test_a_collector_that_begins_anew_after_every_step_says_the_same(tmp_path: Path) -> None:
    text = HEAD + SHARES + LATE + CHANGED
    whole = AlarmWorld(text)
    whole.live(SHAPES)
    assert {event.state for event in whole.events()} == {"raised", "cleared"}
    broken = AlarmWorld(text, partial(SqliteStore, tmp_path / "store.db"))
    for step, late in enumerate(SHAPES, start=FIRST):
        broken.step(step, statuses(late))
        broken.reopen(text)  # between the reports and the release that is made of them
    broken.end(FIRST + len(SHAPES) - 1)
    assert broken.events() == whole.events()
    assert broken.notified == whole.notified  # once each
    assert broken.collector.alarms.status("planes") == whole.collector.alarms.status("planes")


@pytest.mark.parametrize("committed", [False, True])
def test_an_event_is_neither_lost_nor_told_twice_when_its_commit_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    world = AlarmWorld(TEXT, partial(SqliteStore, tmp_path / "store.db"))
    world.live([0.2] * 3)
    world.step(FIRST + 3, statuses(0.6))
    commit = world.collector.store.commit

    def dies(changes: StoreChanges) -> Any:
        if changes.alarm_events:
            if committed:
                commit(changes)
            raise StoreFailed("killed")
        return commit(changes)

    monkeypatch.setattr(world.collector.store, "commit", dies)
    with pytest.raises(StoreFailed):
        world.end(FIRST + 3)
    assert world.notified == []
    world.reopen(TEXT)
    world.end(FIRST + 3)
    assert [(event.state, event.step) for event in world.events()] == [("raised", FIRST + 3)]
    world.live([0.6] * 2, FIRST + 4)
    assert len(world.events()) == 1


def test_killed_at_points_of_an_alarm() -> None:
    assert deaths("alarm", 61) >= 3


@pytest.mark.slow
def test_killed_at_every_point_of_an_alarm() -> None:
    assert deaths("alarm", 1) >= 100


KINDS = {
    "histogram": 'kind = "histogram"\nfield = "status"\nepsilon = 4.0\n',
    "LPU": 'kind = "stream"\nmethod = "LPU"\nw = 4\nfield = "status"\nepsilon = 4.0\n',
    "LPA": 'kind = "stream"\nmethod = "LPA"\nw = 4\nfield = "status"\nepsilon = 4.0\n',
    "LBD": 'kind = "stream"\nmethod = "LBD"\nw = 2\nfield = "status"\nepsilon = 8.0\n',
    "memo": 'kind = "memo"\nfield = "status"\nepsilon = 4.0\npermanent = 6.0\n',
    "changes": 'kind = "changes"\nfield = "status"\nepsilon = 8.0\nsteps = 48\nchanges = 8\n',
    "mean": 'kind = "mean"\nfield = "delay"\nepsilon = 4.0\n',
    "mean stream": 'kind = "stream"\nmethod = "LPU"\nw = 4\nfield = "delay"\nepsilon = 4.0\n',
    "keyvalue": 'kind = "keyvalue"\nfield = "used"\nepsilon = 4.0\n',
}


def crowd(kind: str, late: float) -> list[Any]:
    people = 2000 if kind == "changes" else 1000
    if "mean" in kind:
        return [100.0 * late] * people
    if kind == "keyvalue":
        return [{"gate": 1.0}] * round(late * people) + [{"lounge": -1.0}] * round((1 - late) * people)
    return statuses(late, people)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_question_raises_and_clears(kind: str) -> None:
    """The jump is of many standard errors of every kind: what is tested is that the estimates reach the alarm."""
    weights = {"mean": "", "mean stream": "", "keyvalue": "weights = { gate = 1 }"}.get(kind, "weights = { late = 1 }")
    scale = 1 if weights else 100
    alarm = f'[alarms.late]\nquestion = "all"\n{weights}\nabove = {0.45 * scale}\n'
    world = AlarmWorld(f"{HEAD}[questions.all]\n{KINDS[kind]}{alarm}")
    for step in range(FIRST, FIRST + 16):
        world.step(step, crowd(kind, 0.8 if FIRST + 4 <= step < FIRST + 10 else 0.1))
    world.end(FIRST + 15)
    assert [event.state for event in world.events()] == ["raised", "cleared"]
    raised, cleared = (event.step - FIRST for event in world.events())
    assert 4 <= raised <= 6
    assert 10 <= cleared <= 13


def test_an_alarm_that_is_taken_away_or_changed_while_it_is_raised_is_cleared() -> None:
    world = AlarmWorld(TEXT)
    world.live([0.2] * 2 + [0.5] * 2)
    world.reopen(HEAD + SHARES)  # no alarm at all
    assert [event.state for event in world.events()] == ["raised", "cleared"]
    assert world.collector.store.alarm_states("planes") == {}
    world.reopen(TEXT)
    world.live([0.5] * 2, FIRST + 4)
    assert [event.state for event in world.events()] == ["raised", "cleared", "raised"]
    world.reopen(TEXT.replace("above = 0.3", "above = 0.4"))
    assert [event.number for event in world.events()] == [1, 2, 3, 4]
    assert world.events()[-1].state == "cleared"
    (status,) = world.collector.alarms.status("planes")
    assert (status.state, status.threshold) == ("quiet", 0.4)


def test_a_change_of_the_false_alarms_alone_goes_on_from_what_is_known() -> None:
    world = AlarmWorld(TEXT)
    world.live([0.2] * 2 + [0.5] * 2)
    world.reopen(TEXT + 'false_alarms = "1 in 90d"\n')
    (status,) = world.collector.alarms.status("planes")
    assert (status.state, len(world.events())) == ("raised", 1)


def test_alarms_go_on_through_versions_and_eras() -> None:
    text = HEAD + SHARES + CHANGED
    world = AlarmWorld(text)
    world.live([0.2] * 8)
    learnt = [status.baseline for status in world.collector.alarms.status("planes")]
    world.step(FIRST + 8, statuses(0.2))
    newer = text.replace("version = 1", "version = 2")
    world.reopen(newer)  # in the middle of a step: what the first version has heard of it is released, and judged
    assert [status.step for status in world.collector.alarms.status("planes")] == [FIRST + 8] * 4
    world.reopen(newer.replace("version = 2", "version = 3").replace("epsilon = 4.0", "epsilon = 3.0"))  # a new era
    world.live([0.5] * 3, FIRST + 10)
    assert [status.baseline for status in world.collector.alarms.status("planes")] == learnt
    assert {event.category for event in world.events()} == {"late", "fine"}
    assert [event.number for event in world.events()] == list(range(1, len(world.events()) + 1))


def test_alarms_go_on_when_time_went_back() -> None:
    world = AlarmWorld(TEXT, first=FIRST + 5000)
    world.live([0.2] * 2, FIRST + 5000)
    world.clock.set((FIRST + 0.01) * HOUR)
    world.collector.tick()
    world.live([0.2] * 2 + [0.6] * 2)
    assert [(event.state, event.step) for event in world.events()] == [("raised", FIRST + 2)]


def test_a_listener_that_fails_stops_nobody() -> None:
    world = AlarmWorld(TEXT)
    world.collector.alarms.listen(lambda event: 1 / 0)  # type: ignore[arg-type]
    world.collector.alarms.listen(world.notified.append)
    world.live([0.6] * 2)
    assert len(world.notified) == 2  # by the listeners before and after the one that fails


def test_an_alarm_that_fails_stops_neither_releases_nor_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    world = AlarmWorld(TEXT)
    with monkeypatch.context() as patch:
        patch.setattr(SequentialTest, "update", lambda *arguments: 1 / 0)
        world.live([0.6] * 2)
    assert len(released(world.collector)) == 2
    world.live([0.6] * 2, FIRST + 2)
    assert [event.state for event in world.events()] == ["raised"]


EACH = 'question = "all"\neach = true\n'


@pytest.mark.parametrize(
    ("wrong", "place", "hint"),
    [
        ('question = "al"\nabove = 1', "question", "did you mean all?"),
        ('question = "all"\nabove = 1', "weights", ""),
        ('question = "all"\nweights = { lat = 1 }\nabove = 1', "weights.lat", "did you mean late?"),
        (EACH, "above", ""),
        (f"{EACH}above = 1\nbelow = 0", "above", ""),
        (f'{EACH}change = "up"', "baseline", ""),
        (f'{EACH}change = "up"\nbaseline = 2', "baseline", ""),
        (f"{EACH}above = 1\nbaseline = 24", "baseline", ""),
        (f"{EACH}above = 1\nclears = 2", "clears", ""),
        (f"{EACH}above = nan", "above", ""),
        (f"{EACH}above = 1{'0' * 400}", "above", ""),
        ('question = "all"\nweights = { late = 1e308 }\nabove = 1', "weights.late", ""),
        (f"{EACH}abov = 1", "abov", "did you mean above?"),
        (f'{EACH}above = 1\nfalse_alarms = "1 in 1h"', "false_alarms", ""),
        (f"{EACH}above = 1\nfalse_alarms = 3", "false_alarms", ""),
    ],
)
def test_what_cannot_be_watched_is_refused_by_its_place(wrong: str, place: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        AlarmWorld(f"{HEAD}{SHARES}[alarms.late]\n{wrong}\n")
    assert refused.value.field == f"alarms.late.{place}"
    assert hint in str(refused.value)


def test_the_api_and_server_sent_events_tell_of_alarms() -> None:
    world = AlarmWorld(TEXT + CHANGED)
    world.live([0.2] * 3)
    world.step(FIRST + 3, statuses(0.6))
    path = "/v1/collections/planes/alarms"
    with site(service := Service(world.collector)) as client:
        assert client.get(path).status_code == 401
        assert client.get("/v1/collections/trains/alarms", headers=AUTHORIZED).status_code == 404
        assert client.get(path, headers=AUTHORIZED).json()["events"] == []

        async def first_alarm() -> dict[str, Any]:
            listening = service.hub.listen("planes")
            assert (await anext(listening)).startswith(b": hello")
            world.clock.set((FIRST + 4.2) * HOUR)
            async for message in listening:
                event, data = message.decode().split("\n")[:2]
                if event == "event: alarm":
                    return dict(json.loads(data.removeprefix("data: ")))
            raise AssertionError

        sent_event = client.run(first_alarm())
        answer = client.get(path, headers=AUTHORIZED).json()
    assert [event["state"] for event in answer["events"]] == ["raised"]
    assert sent_event == answer["events"][0] == world.notified[0].to_json()
    assert set(sent_event) == set(openapi()["components"]["schemas"]["AlarmEvent"]["properties"])
    late, moved = answer["alarms"]
    assert (late["alarm"], late["definition"]["above"], late["watched"][0]["state"]) == ("late", 0.3, "raised")
    assert [watched["category"] for watched in moved["watched"]] == ["early", "fine", "late", "(none)"]
    assert {watched["state"] for watched in moved["watched"]} == {"learning"}
    assert late["guarantee"] == (
        "at most one false alarm in 150 days on average, even if the truth is always at the threshold"
    )
    assert answer["guarantee"].startswith("at most one false alarm in 30 days on average of all 5 watched together")
    assert answer["false_alarms_a_day"] == pytest.approx(1 / 30)


def test_what_devices_are_sent_does_not_know_of_alarms() -> None:
    with_alarms, without = AlarmWorld(TEXT), AlarmWorld(HEAD + SHARES)
    assert with_alarms.collection.spec() == without.collection.spec()
    assert with_alarms.collection.collection_id == without.collection.collection_id
