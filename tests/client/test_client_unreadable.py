"""Asks that a device cannot read, or whose mechanism fails: they are refused, and other questions are answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hubbub import GRR
from hubbub.client import Client
from hubbub.client.store import Answer, Outbox
from hubbub.collection import ManualClock, seal
from hubbub.core.errors import DecodeError
from hubbub.core.reports import Reports
from hubbub.ledger.file import LedgerUnavailable
from hubbub.mechanisms import MECHANISMS
from hubbub.random.source import Random
from tests.client.device import device
from tests.client.local_server import KEYS, TEXT, LocalServer, survey

TWO = (
    TEXT.replace("event = 1.0", "event = 2.0")
    + """
[questions.again]
kind = "histogram"
field = "theme"
epsilon = 1.0
"""
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


def asked(server: LocalServer, clock: ManualClock, change: Change, *, copies: int = 0) -> None:
    """Publish the asks of step 8, with the one of `popular` changed, or copied and the copies changed."""
    clock.set(server.collection.opens(8) + 1.0)
    server.begin(8)
    document = json.loads(server.documents[ASKS]["payload"])
    (popular,) = (ask for ask in document["asks"] if ask["question"] == "popular")
    if copies:
        popular = {**json.loads(json.dumps(popular)), "part": 1}
        document["asks"].append(popular)
    change(popular["ask"])
    server.documents[ASKS] = seal(document, KEYS.private)


@pytest.fixture
def world(folder: Path) -> Iterator[tuple[LocalServer, ManualClock, Client]]:
    server, clock = LocalServer(survey(TWO)), ManualClock()
    client = device(folder, server, clock)
    yield server, clock, client
    client.close()


@pytest.mark.parametrize("copies", [0, 1], ids=["alone", "with a part that can be read"])
@pytest.mark.parametrize(("reason", "change"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_ask_that_cannot_be_read_is_refused_alone(
    world: tuple[LocalServer, ManualClock, Client], reason: str, change: Change, copies: int
) -> None:
    server, clock, client = world
    asked(server, clock, change, copies=copies)
    client.record("theme", "dark")
    assert (client.tick(), client.upload(), client.tick()) == (1, 1, 0)
    assert [name.question for name, ask_id in server.names.items() if server.reports.get(ask_id)] == ["again"]
    assert client.status().counts == {f"refused: {reason}": 1, "sent": 1}
    assert client.status().spent == 10**12


def test_a_standing_ask_that_was_refused_for_its_other_part_stays_refused_out_of_reach(
    world: tuple[LocalServer, ManualClock, Client],
) -> None:
    server, clock, client = world
    asked(server, clock, lambda ask: ask.update(view={"kind": "nope"}), copies=1)
    assert client.tick() == 1
    server.faults = ["unreachable"] * 9
    clock.set(server.collection.opens(9) + 1.0)
    assert client.tick() == 1, "the other question alone"
    assert client.status().counts == {"refused: view": 2}


class Theirs(GRR):
    """A mechanism of another package that works."""


def ask_with(server: LocalServer, clock: ManualClock, mechanism: GRR) -> None:
    """Sign a collection whose question `popular` is asked with a mechanism, and ask it."""
    spec = json.loads(json.dumps(server.collection.spec()))
    spec["terms"]["popular"]["mechanisms"] = [mechanism.spec_id]
    server.documents["/v1/collections/survey"] = seal(spec, KEYS.private)
    asked(server, clock, lambda ask: ask.update(mechanism=json.loads(json.dumps(mechanism.spec()))))


@pytest.mark.parametrize("error", [OSError("no such device"), DecodeError("report", b"", "a report")], ids=repr)
def test_a_mechanism_of_another_package_that_fails_costs_nothing_and_stops_no_other_question(
    world: tuple[LocalServer, ManualClock, Client], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setitem(MECHANISMS, "Failing", Failing)
    monkeypatch.setattr(Failing, "error", error)
    server, clock, client = world
    ask_with(server, clock, Failing(epsilon=1.0, domain=3))
    client.record("theme", "dark")
    assert (client.tick(), client.upload(), client.tick()) == (1, 1, 0)
    assert client.status().counts == {"refused: mechanism": 1, "sent": 1}
    assert client.status().spent == 10**12


def test_a_mechanism_of_another_package_that_fails_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MECHANISMS, "Failing", Failing)
    server, clock = LocalServer(survey()), ManualClock()
    client = device(folder, server, clock)
    ask_with(server, clock, Failing(epsilon=1.0, domain=3))
    client.record("theme", "dark")
    assert client.tick() == 0
    assert client.status().counts == {"refused: mechanism": 1}
    for table in ("debits", "totals", "frozen", "states", "answers"):
        assert client._store._run(f"SELECT * FROM {table}") == [], table
    client.close()


def test_a_device_whose_disk_fails_does_not_take_that_for_an_error_of_another_packages_mechanism(
    world: tuple[LocalServer, ManualClock, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MECHANISMS, "Theirs", Theirs)
    server, clock, client = world
    ask_with(server, clock, Theirs(epsilon=1.0, domain=3))
    client.record("theme", "dark")
    add = Outbox.add

    def full(outbox: Outbox, answer: Answer, **options: Any) -> None:
        if answer.name.startswith("popular"):
            raise LedgerUnavailable("database or disk is full")
        add(outbox, answer, **options)

    with monkeypatch.context() as context:
        context.setattr(Outbox, "add", full)
        with pytest.raises(LedgerUnavailable):
            client.tick()
    assert (client.status().counts, client.status().spent) == ({}, 0)
    assert (client.tick(), client.status().spent) == (2, 2 * 10**12)
