"""New versions of a collection, with all promises ever made; asks that a device cannot read or whose code fails."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hubbub import GRR
from hubbub.client import Client
from hubbub.client.store import Answer, Outbox
from hubbub.collection import seal
from hubbub.core.errors import DecodeError
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.core.reports import Reports
from hubbub.ledger.file import LedgerUnavailable
from hubbub.ledger.promise import Budget
from hubbub.mechanisms import MECHANISMS
from hubbub.random.source import Random
from tests.client.device import MEMO, World, answers, look_again, rows_of, store_of
from tests.client.local_server import KEYS, TEXT, survey
from tests.shared.small_collections import THEME, collection_text

WINDOW = TEXT.replace("event = 1.0\nuser = 20.0", "window = {epsilon = 4.0, steps = 4}\nuser = 20.0")


def days(here: World, client: Client, steps: range) -> list[int]:
    return [here.live(client, step) for step in steps]


def test_a_new_version_begins_at_once_and_the_window_goes_on(folder: Path) -> None:
    here = World(folder, WINDOW)
    with here.device() as client:
        assert days(here, client, range(5, 8)) == [1, 1, 1]
        here.serve(WINDOW.replace("epsilon = 1.0", "epsilon = 0.5"), version="2")
        assert days(here, client, range(8, 9)) == [1]
        status = client.status()
        assert (status.version, status.spent) == (2, 35 * UNITS_PER_EPSILON // 10)
        assert status.window == (35 * UNITS_PER_EPSILON // 10, UNITS_PER_EPSILON // 2, 4 * UNITS_PER_EPSILON)
        assert status.user is not None
        assert status.user.limit == 20 * UNITS_PER_EPSILON


@pytest.mark.usefixtures("any_version")
def test_many_versions_share_one_life(folder: Path) -> None:
    here = World(folder, TEXT)
    with here.device() as client:
        for version in range(1, 12):
            if version > 1:
                here.serve(TEXT, version=str(version), user="9000.0")
            days(here, client, range(10 * version, 10 * version + 4))
        assert client.status().version == 11
        assert client.status().spent == 20 * UNITS_PER_EPSILON  # what was promised first
        assert days(here, client, range(200, 203)) == [0, 0, 0]
        assert [promise.limit for promise in client.status().promises] == [UNITS_PER_EPSILON, 20 * UNITS_PER_EPSILON]


@pytest.mark.usefixtures("any_version")
def test_a_version_that_lifts_every_limit_lifts_none(folder: Path) -> None:
    """8 in any 7 days was promised; version 2 has steps of a second, and 8 in each: 2,662 was heard in a minute."""
    week = TEXT.replace("event = 1.0\nuser = 20.0", "window = {epsilon = 8.0, steps = 168}").replace(
        'kind = "histogram"\nfield = "theme"\nepsilon = 1.0',
        'kind = "stream"\nmethod = "LPU"\nw = 168\nfield = "theme"\nepsilon = 8.0',
    )
    here = World(folder, week)
    cost = 8 * UNITS_PER_EPSILON
    with here.device() as client:
        here.begin(5)
        client.tick()
        free = survey(TEXT, version="2", step='"1s"', event="8.0", epsilon="8.0", lateness='"1s"')
        free = replace(free, budget=Budget.of(event=8.0))
        here.serve(free)
        spent = client.status().spent
        for second in range(60):
            here.clock.set(6 * 3600.0 + second)
            here.server.begin(free.step_at(here.clock.now()))
            client.tick()
            client.upload()
            assert client.status().spent <= cost
        assert client.status().version == 2
        assert client.status().spent - spent <= cost
        assert sum(len(reports) for reports in here.server.reports.values()) <= 1
        here.clock.advance(168 * 3600)
        here.server.begin(free.step_at(here.clock.now()))
        client.tick()
        assert client.status().spent <= 2 * cost  # a week later once more


@pytest.mark.usefixtures("any_version")
def test_a_stream_of_changes_goes_on_across_versions(folder: Path) -> None:
    moves = TEXT.replace("event = 1.0\nuser = 20.0", "user = 20.0").replace(
        'kind = "histogram"\nfield = "theme"\nepsilon = 1.0',
        'kind = "changes"\nfield = "theme"\nepsilon = 1.0\nsteps = 8\nchanges = 2',
    )
    here = World(folder, moves)
    with here.device() as client:
        days(here, client, range(24, 26))
        spent = client.status().spent
        before = rows_of(client, "SELECT key, stream FROM states")
        here.serve(moves.replace('"A survey"', '"Another title"'), version="2")
        days(here, client, range(26, 32))
        assert (client.status().version, client.status().spent) == (2, spent)
        assert rows_of(client, "SELECT key, stream FROM states") == before
        # Steps of another length for a moment: the same step is not told twice, and nothing breaks.
        for version, step in (("3", '"30m"'), ("4", '"1h"')):
            here.serve(moves, version=version, step=step)
            here.server.begin(here.server.collection.step_at(here.clock.now()))
            look_again(client)
            client.tick()
            client.upload()
            assert (client.status().version, client.status().spent) == (int(version), spent)
        # Another question under the same name is another stream: it must wait for the next horizon.
        here.serve(moves.replace("changes = 2", "changes = 3"), version="5")
        days(here, client, range(32, 34))
        assert client.status().spent == 2 * spent
        here.serve(moves.replace("changes = 2", "changes = 4"), version="6")
        assert days(here, client, range(34, 40)) == [0] * 6
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
    """All clauses are in `tests/collection/test_safety.py`."""
    first = replace(survey(TEXT), minimum_batch=100)
    here = World(folder, first)
    with here.device() as client:
        assert days(here, client, range(5, 6)) == [1]
        here.serve(replace(first, version=2, **change))
        assert days(here, client, range(6, 8)) == [0, 0]
        status = client.status()
        assert (status.version, status.spent) == (1, UNITS_PER_EPSILON)
        assert status.counts["refused: weaker"] > 0
        assert status.trouble is not None
        assert status.trouble.startswith(f"weaker: {where}: ")
        assert status.trouble.endswith("to promise less, begin a new collection under a new name")
        here.clock.advance(86400)
        here.serve(replace(first, version=3))  # as much as before is a version again
        assert days(here, client, range(40, 41)) == [1]
        assert client.status().version == 3


def test_memos_are_carried_over_and_not_paid_again(folder: Path) -> None:
    here = World(folder, MEMO)
    with here.device() as client:
        for step, home in ((5, 1), (6, 2)):
            here.live(client, step, home=home)
        memos, spent = answers(client), client.status().spent
        here.serve(MEMO.replace('"A survey"', '"Still a survey"'), version="2")
        for step, home in ((8, 1), (9, 2), (10, 1)):
            assert here.live(client, step, home=home) == 1
        assert client.status().version == 2
        assert client.status().spent == spent
        assert client.status().memos == {"page": 2}
        here.live(client, 11, home=4)
        assert client.status().spent > spent
        assert answers(client).keys() == {1, 2, 4}
        assert {key: answers(client)[key] for key in (1, 2)} == memos


def test_values_of_fields_that_changed_are_forgotten(folder: Path) -> None:
    here = World(folder, MEMO)
    with here.device() as client:
        here.live(client, 5, home=5)
        here.serve(MEMO.replace("size = 6", "size = 3"), version="2")
        here.begin(6)
        # Another domain is another mechanism, whose memos the first version kept nothing apart for.
        assert client.tick() == 0
        assert client.status().counts["refused: budget"] == 1
        assert answers(client) == {}
        with store_of(client).transaction():
            assert store_of(client).recorded("home") is None  # 5 is no value of the field any more


def test_another_process_changes_the_version(folder: Path) -> None:
    here = World(folder, TEXT)
    with here.device() as first, here.device() as second:
        assert days(here, first, range(5, 6)) == [1]
        assert days(here, second, range(6, 7)) == [1]
        here.serve(TEXT, version="2")
        here.begin(8)
        assert first.tick() == 1
        second.record("theme", "dark")  # by the version in force, which the other put there
        assert second.status().version == 2
        assert second.tick() == 0  # the ask is answered
        assert second.status().spent == first.status().spent == 3 * UNITS_PER_EPSILON


POPULAR = {"kind": "histogram", "field": "theme", "epsilon": 1.0}
TWO = collection_text(
    privacy={"event": 2.0, "user": 20.0, "minimum_batch": 20},
    fields={"theme": THEME},
    questions={"popular": POPULAR, "again": POPULAR},
)
ASKS = "/v1/collections/survey/asks"
Change = Callable[[dict[str, Any]], object]
UNREADABLE: dict[str, tuple[str, Change]] = {
    "an unknown mechanism": ("mechanism", lambda ask: ask["mechanism"].update(mechanism="Nope")),
    "another mechanism's fields": ("ask", lambda ask: ask["mechanism"].update(buckets=2)),
    "an unknown view": ("view", lambda ask: ask.update(view={"kind": "nope"})),
    "no arc": ("cohort", lambda ask: ask.update(cohort={"start": -1, "length": 5})),
    "an unknown key": ("ask", lambda ask: ask.update(mystery=1)),
    "no ask": ("ask", lambda ask: ask.clear()),
}


class Failing(GRR):
    """A mechanism that fails on the device."""

    error: ClassVar[Exception] = OSError("no such device")

    def randomize(self, values: Any, rng: Random) -> Reports:
        raise self.error


def asked(here: World, change: Change, *, copies: int = 0) -> None:
    """Publish the asks of step 8, with the one of `popular` changed, or copied and the copies changed."""
    here.begin(8)
    document = json.loads(here.server.documents[ASKS]["payload"])
    (popular,) = (ask for ask in document["asks"] if ask["question"] == "popular")
    if copies:
        popular = {**json.loads(json.dumps(popular)), "part": 1}
        document["asks"].append(popular)
    change(popular["ask"])
    here.server.documents[ASKS] = seal(document, KEYS.private)


@pytest.fixture
def here(folder: Path) -> World:
    return World(folder, TWO)


@pytest.mark.parametrize("copies", [0, 1], ids=["alone", "with a part that can be read"])
@pytest.mark.parametrize(("reason", "change"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_ask_that_cannot_be_read_is_refused_alone(here: World, reason: str, change: Change, copies: int) -> None:
    asked(here, change, copies=copies)
    with here.device() as client:
        client.record("theme", "dark")
        assert (client.tick(), client.upload(), client.tick()) == (1, 1, 0)
        names = here.server.names.items()
        assert [name.question for name, ask_id in names if here.server.reports.get(ask_id)] == ["again"]
        assert client.status().counts == {f"refused: {reason}": 1, "sent": 1}
        assert client.status().spent == 10**12


def test_a_standing_ask_that_was_refused_for_its_other_part_stays_refused_out_of_reach(here: World) -> None:
    asked(here, lambda ask: ask.update(view={"kind": "nope"}), copies=1)
    with here.device() as client:
        assert client.tick() == 1
        here.server.faults = ["unreachable"] * 9
        here.clock.set(here.collection.opens(9) + 1.0)
        assert client.tick() == 1, "the other question alone"
        assert client.status().counts == {"refused: view": 2}


class Theirs(GRR):
    """A mechanism of another package that works."""


def ask_with(here: World, mechanism: GRR) -> None:
    """Sign a collection whose question `popular` is asked with a mechanism, and ask it."""
    spec = json.loads(json.dumps(here.collection.spec()))
    spec["terms"]["popular"]["mechanisms"] = [mechanism.spec_id]
    here.server.documents["/v1/collections/survey"] = seal(spec, KEYS.private)
    asked(here, lambda ask: ask.update(mechanism=json.loads(json.dumps(mechanism.spec()))))


@pytest.mark.parametrize("error", [OSError("no such device"), DecodeError("report", b"", "a report")], ids=repr)
def test_a_mechanism_of_another_package_that_fails_costs_nothing_and_stops_no_other_question(
    here: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setitem(MECHANISMS, "Failing", Failing)
    monkeypatch.setattr(Failing, "error", error)
    ask_with(here, Failing(epsilon=1.0, domain=3))
    with here.device() as client:
        client.record("theme", "dark")
        assert (client.tick(), client.upload(), client.tick()) == (1, 1, 0)
        assert client.status().counts == {"refused: mechanism": 1, "sent": 1}
        assert client.status().spent == 10**12
        for table in ("debits", "frozen", "states", "answers"):  # it leaves nothing behind
            assert "popular" not in str(rows_of(client, f"SELECT * FROM {table}")), table


def test_a_device_whose_disk_fails_does_not_take_that_for_an_error_of_another_packages_mechanism(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MECHANISMS, "Theirs", Theirs)
    ask_with(here, Theirs(epsilon=1.0, domain=3))
    add = Outbox.add

    def full(outbox: Outbox, answer: Answer, **options: Any) -> None:
        if answer.name.startswith("popular"):
            raise LedgerUnavailable("database or disk is full")
        add(outbox, answer, **options)

    with here.device() as client:
        client.record("theme", "dark")
        with monkeypatch.context() as context:
            context.setattr(Outbox, "add", full)
            with pytest.raises(LedgerUnavailable):
                client.tick()
        assert (client.status().counts, client.status().spent) == ({}, 0)
        assert (client.tick(), client.status().spent) == (2, 2 * 10**12)
