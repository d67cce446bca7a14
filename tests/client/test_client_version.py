"""New versions of a collection: in force at once, with all promises that were ever made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client
from hubbub.collection import Collection, ManualClock
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.ledger.promise import Budget
from tests.client.device import MEMO, answers, begin, device, live
from tests.client.local_server import TEXT, LocalServer, survey

WINDOW = TEXT.replace("event = 1.0\nuser = 20.0", "window = {epsilon = 4.0, steps = 4}\nuser = 20.0")


def serve(server: LocalServer, collection: Collection) -> LocalServer:
    """A server for the new version, at the address of the old."""
    fresh = LocalServer(collection, server.keys)
    server.__dict__.update(fresh.__dict__)
    return server


def days(client: Client, server: LocalServer, clock: ManualClock, steps: range) -> list[int]:
    reports = []
    for step in steps:
        begin(server, clock, step)
        reports.append(client.tick())
        client.upload()
    return reports


def test_a_new_version_begins_at_once_and_the_window_goes_on(folder: Path) -> None:
    server, clock = LocalServer(survey(WINDOW)), ManualClock()
    with device(folder, server, clock) as client:
        assert days(client, server, clock, range(5, 8)) == [1, 1, 1]
        serve(server, survey(WINDOW.replace("epsilon = 1.0", "epsilon = 0.5"), version="2"))
        assert days(client, server, clock, range(8, 9)) == [1]
        status = client.status()
        assert (status.version, status.spent) == (2, 35 * UNITS_PER_EPSILON // 10)
        assert status.window == (35 * UNITS_PER_EPSILON // 10, UNITS_PER_EPSILON // 2, 4 * UNITS_PER_EPSILON)
        assert status.user is not None
        assert status.user.limit == 20 * UNITS_PER_EPSILON


@pytest.mark.usefixtures("any_version")
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
        assert [promise.limit for promise in client.status().promises] == [UNITS_PER_EPSILON, 20 * UNITS_PER_EPSILON]


@pytest.mark.usefixtures("any_version")
def test_a_version_that_lifts_every_limit_lifts_none(folder: Path) -> None:
    """8 in any 7 days was promised; version 2 has steps of a second, and 8 in each: 2,662 was heard in a minute."""
    week = TEXT.replace("event = 1.0\nuser = 20.0", "window = {epsilon = 8.0, steps = 168}").replace(
        'kind = "histogram"\nfield = "theme"\nepsilon = 1.0',
        'kind = "stream"\nmethod = "LPU"\nw = 168\nfield = "theme"\nepsilon = 8.0',
    )
    server, clock = LocalServer(survey(week)), ManualClock()
    cost = 8 * UNITS_PER_EPSILON
    with device(folder, server, clock) as client:
        begin(server, clock, 5)
        client.tick()
        free = survey(TEXT, version="2", step='"1s"', event="8.0", epsilon="8.0", lateness='"1s"')
        free = replace(free, budget=Budget.of(event=8.0))
        serve(server, free)
        spent = client.status().spent
        for second in range(60):
            clock.set(6 * 3600.0 + second)
            server.begin(free.step_at(clock.now()))
            client.tick()
            client.upload()
            assert client.status().spent <= cost
        assert client.status().version == 2
        assert client.status().spent - spent <= cost
        assert sum(len(reports) for reports in server.reports.values()) <= 1
        clock.advance(168 * 3600)
        server.begin(free.step_at(clock.now()))
        client.tick()
        assert client.status().spent <= 2 * cost  # a week later once more


@pytest.mark.usefixtures("any_version")
def test_a_stream_of_changes_goes_on_across_versions(folder: Path) -> None:
    moves = TEXT.replace("event = 1.0\nuser = 20.0", "user = 20.0").replace(
        'kind = "histogram"\nfield = "theme"\nepsilon = 1.0',
        'kind = "changes"\nfield = "theme"\nepsilon = 1.0\nsteps = 8\nchanges = 2',
    )
    server, clock = LocalServer(survey(moves)), ManualClock()
    with device(folder, server, clock) as client:
        days(client, server, clock, range(24, 26))
        spent = client.status().spent
        with client._store.transaction():
            before = client._store._run("SELECT key, stream FROM states")
        serve(server, survey(moves.replace('"A survey"', '"Another title"'), version="2"))
        days(client, server, clock, range(26, 32))
        assert (client.status().version, client.status().spent) == (2, spent)
        with client._store.transaction():
            assert client._store._run("SELECT key, stream FROM states") == before
        # Steps of another length for a moment: the same step is not told twice, and nothing breaks.
        for version, step in (("3", '"30m"'), ("4", '"1h"')):
            serve(server, survey(moves, version=version, step=step))
            server.begin(server.collection.step_at(clock.now()))
            client._current.asks = client._current._pause = None  # look now, not when the step is over
            client.tick()
            client.upload()
            assert (client.status().version, client.status().spent) == (int(version), spent)
        # Another question under the same name is another stream: it must wait for the next horizon.
        serve(server, survey(moves.replace("changes = 2", "changes = 3"), version="5"))
        days(client, server, clock, range(32, 34))
        assert client.status().spent == 2 * spent
        serve(server, survey(moves.replace("changes = 2", "changes = 4"), version="6"))
        assert days(client, server, clock, range(34, 40)) == [0] * 6
        assert client.status().spent == 2 * spent


WEAKER: list[tuple[str, dict[str, Any]]] = [
    ("privacy.event", {"budget": Budget.of(event=2.0, user=20.0)}),
    ("privacy.minimum_batch", {"minimum_batch": 20}),
    ("privacy.minimum_arc", {"minimum_arc": 1 << 20}),
    ("schedule.retention", {"retention_days": 3650}),
]


@pytest.mark.parametrize(("where", "change"), WEAKER, ids=[where for where, _ in WEAKER])
def test_a_version_that_promises_less_is_refused_by_the_device(
    folder: Path, where: str, change: dict[str, Any]
) -> None:
    """All clauses are in `tests/collection/test_weaker.py`."""
    first = replace(survey(TEXT), minimum_batch=100)
    server, clock = LocalServer(first), ManualClock()
    with device(folder, server, clock) as client:
        assert days(client, server, clock, range(5, 6)) == [1]
        serve(server, replace(first, version=2, **change))
        assert days(client, server, clock, range(6, 8)) == [0, 0]
        status = client.status()
        assert (status.version, status.spent) == (1, UNITS_PER_EPSILON)
        assert status.counts["refused: weaker"] > 0
        assert status.trouble is not None
        assert status.trouble.startswith(f"weaker: {where}: ")
        assert status.trouble.endswith("to promise less, begin a new collection under a new name")
        clock.advance(86400)
        serve(server, replace(first, version=3))  # as much as before is a version again
        assert days(client, server, clock, range(40, 41)) == [1]
        assert client.status().version == 3


def test_memos_are_carried_over_and_not_paid_again(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    with device(folder, server, clock) as client:
        for step, home in ((5, 1), (6, 2)):
            live(client, server, clock, step, home)
        memos, spent = answers(client), client.status().spent
        serve(server, survey(MEMO.replace('"A survey"', '"Still a survey"'), version="2"))
        for step, home in ((8, 1), (9, 2), (10, 1)):
            assert live(client, server, clock, step, home) == 1
        assert client.status().version == 2
        assert client.status().spent == spent
        assert client.status().memos == {"page": 2}
        live(client, server, clock, 11, 4)
        assert client.status().spent > spent
        assert answers(client).keys() == {1, 2, 4}
        assert {key: answers(client)[key] for key in (1, 2)} == memos


def test_values_of_fields_that_changed_are_forgotten(folder: Path) -> None:
    server, clock = LocalServer(survey(MEMO)), ManualClock()
    with device(folder, server, clock) as client:
        live(client, server, clock, 5, 5)
        serve(server, survey(MEMO.replace("size = 6", "size = 3"), version="2"))
        begin(server, clock, 6)
        # Another domain is another mechanism, whose memos the first version kept nothing apart for.
        assert client.tick() == 0
        assert client.status().counts["refused: budget"] == 1
        assert answers(client) == {}
        with client._store.transaction():
            assert client._store.recorded("home") is None  # 5 is no value of the field any more


def test_another_process_changes_the_version(folder: Path) -> None:
    server, clock = LocalServer(survey(TEXT)), ManualClock()
    with device(folder, server, clock) as first, device(folder, server, clock) as second:
        assert days(first, server, clock, range(5, 6)) == [1]
        assert days(second, server, clock, range(6, 7)) == [1]
        serve(server, survey(TEXT, version="2"))
        begin(server, clock, 8)
        assert first.tick() == 1
        second.record("theme", "dark")  # by the version in force, which the other put there
        assert second.status().version == 2
        assert second.tick() == 0  # the ask is answered
        assert second.status().spent == first.status().spent == 3 * UNITS_PER_EPSILON
