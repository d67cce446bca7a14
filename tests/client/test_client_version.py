"""New versions of a collection: they wait for a clear window, and give no new life."""

from __future__ import annotations

from pathlib import Path

import pytest
from device import MEMO, answers, begin, device, live
from local_server import TEXT, LocalServer, survey

from hubbub.client import Client
from hubbub.client.accounts import lifetime_left
from hubbub.collection import Collection, ManualClock
from hubbub.core.event import UNITS_PER_EPSILON

WINDOW = TEXT.replace("event = 1.0\nuser = 20.0", "window = {epsilon = 4.0, steps = 4}\nuser = 20.0")


def serve(server: LocalServer, collection: Collection) -> LocalServer:
    """A server for the new version, at the address of the old."""
    fresh = LocalServer(collection, server.keys)
    server.__dict__.update(fresh.__dict__)
    return server


def days(client: Client, server: LocalServer, clock: ManualClock, steps: range) -> list[int]:
    made = []
    for step in steps:
        begin(server, clock, step)
        made.append(client.tick())
        client.upload()
    return made


def test_a_new_version_begins_when_the_window_is_clear(folder: Path) -> None:
    server, clock = LocalServer(survey(WINDOW)), ManualClock()
    with device(folder, server, clock) as client:
        assert days(client, server, clock, range(5, 9)) == [1, 1, 1, 1]
        serve(server, survey(WINDOW, version="2"))
        # Step 8 is in the window of steps 9 to 11.
        assert days(client, server, clock, range(9, 15)) == [0, 0, 0, 1, 1, 1]
        status = client.status()
        assert (status.version, status.spent) == (2, 7 * UNITS_PER_EPSILON)
        assert status.user is not None
        assert status.user.limit == 16 * UNITS_PER_EPSILON


def test_many_versions_share_one_life(folder: Path) -> None:
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    with device(folder, server, clock) as client:
        for version in range(1, 12):
            if version > 1:
                serve(server, survey(TEXT, version=str(version), user="9000.0"))
            days(client, server, clock, range(10 * version, 10 * version + 4))
        assert client.status().version == 11
        assert client.status().spent == 20 * UNITS_PER_EPSILON  # what was promised first
        assert days(client, server, clock, range(200, 203)) == [0, 0, 0]


@pytest.mark.parametrize(
    ("versions", "left"),
    [
        ([], 20),
        ([(1, 3, 20)], 17),
        ([(1, 3, None)], 17),
        ([(1, 3, 5), (2, 1, 90)], 1),
        ([(1, 30, 5)], 0),
    ],
)
def test_the_tightest_promise_holds(versions: list[tuple[int, int, int | None]], left: int) -> None:
    unit = UNITS_PER_EPSILON
    rows = [(version, spent * unit, None if most is None else most * unit) for version, spent, most in versions]
    assert lifetime_left(survey(TEXT), rows) == left * unit


def test_memos_are_carried_over_and_not_paid_again(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    with device(folder, server, clock) as client:
        for step, home in ((5, 1), (6, 2)):
            live(client, server, clock, step, home)
        kept, spent = answers(client), client.status().spent
        serve(server, survey(MEMO.replace('"A survey"', '"Still a survey"'), version="2"))
        for step, home in ((8, 1), (9, 2), (10, 1)):
            assert live(client, server, clock, step, home) == 1
        assert client.status().version == 2
        assert client.status().spent == spent
        assert client.status().memos == {"page": 2}
        live(client, server, clock, 11, 4)
        assert client.status().spent > spent
        assert answers(client).keys() == {4}
        assert kept.keys() == {1, 2}


def test_values_of_fields_that_changed_are_forgotten(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    with device(folder, server, clock) as client:
        live(client, server, clock, 5, 5)
        serve(server, survey(MEMO.replace("size = 6", "size = 3"), version="2"))
        begin(server, clock, 6)
        assert client.tick() == 1  # 5 is no value of the field any more: "(none)"
        assert answers(client).keys() == {3}


def test_another_process_changes_the_version(folder: Path) -> None:
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    with device(folder, server, clock) as one, device(folder, server, clock) as two:
        assert days(one, server, clock, range(5, 6)) == [1]
        assert days(two, server, clock, range(6, 7)) == [1]
        serve(server, survey(TEXT, version="2"))
        begin(server, clock, 8)
        assert one.tick() == 1
        two.record("theme", "dark")  # by the version in force, which the other put there
        assert two.status().version == 2
        assert two.tick() == 0  # the ask is answered
        assert two.status().spent == one.status().spent == 3 * UNITS_PER_EPSILON
