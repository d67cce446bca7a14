"""Out of reach: a device keeps answering standing asks, and sends the answers when it can."""

from __future__ import annotations

from pathlib import Path

from hubbub.client import Client
from hubbub.collection import ManualClock
from tests.client.device import device
from tests.client.local_server import survey
from tests.client.test_client_cover import TURNS, Watched
from tests.shared.in_process import InProcess
from tests.shared.small_collections import THEME, collection_text

TEXT = collection_text(
    schedule={"step": "1h", "lateness": "50m", "retention": "2d"},
    privacy={"event": 2.0, "user": 9.0, "minimum_batch": 20},
    fields={"theme": THEME, "home": {"kind": "ordinal", "size": 4}},
    questions={
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 0.5},
        "place": {"kind": "memo", "field": "home", "epsilon": 0.5, "permanent": 1.0},
    },
)


def world(folder: Path, text: str) -> tuple[InProcess, Watched, ManualClock, Client]:
    collection = survey(text)
    clock = ManualClock(collection.opens(7) + 60.0)
    server = InProcess(collection, clock, folder / "store.db")
    wire = Watched(server)
    client = device(folder / "device", wire, clock)
    client.record("theme", "dark")
    client.tick()
    client.upload()
    return server, wire, clock, client


def test_what_stands_is_answered_queued_and_debited_and_counts_once_it_arrives(folder: Path) -> None:
    server, wire, clock, client = world(folder, TEXT)
    collection = server.collector.collections["survey"]
    assert client.status().counts == {"sent": 2}
    spent = client.status().spent
    wire.cut = True
    for step in (8, 9):
        clock.set(collection.opens(step) + 600.0)
        server.collector.tick()
        client.record("theme", "light")
        assert client.tick() == 2
        assert client.tick() == 0  # each once
        assert client.upload() == 0
        assert client.status().queued == 2 * (step - 7)
        assert client.status().spent > spent  # the histogram is paid for; the memo costs nothing again
        spent = client.status().spent
    client.close()
    client = device(folder / "device", wire, clock)  # what waits survives a restart
    assert client.status().queued == 4
    assert client.tick() == 0
    wire.cut = False
    clock.advance(600.0)
    server.collector.tick()
    sent = [client.upload()]
    clock.advance(600.0)
    client.tick()
    sent.append(client.upload())
    assert sum(sent) == 4
    assert client.status().spent == spent
    clock.set(collection.opens(10) + collection.lateness_seconds + 1.0)
    server.collector.tick()
    assert dict(server.collector.counts()) == {(collection.collection_id, "accepted"): 6}
    for name in collection.questions:
        rows = server.collector.releases("survey", name, first=0, last=99, most=99)
        assert [row.withheld for row in rows if row.step in (7, 8, 9)] == ["1 reports; at least 20 are needed"] * 3
    client.close()
    server.store.close()


def test_what_comes_too_late_is_dropped_and_stays_paid_for(folder: Path) -> None:
    server, wire, clock, client = world(folder, TEXT)
    collection = server.collector.collections["survey"]
    wire.cut = True
    clock.set(collection.opens(8) + 600.0)
    assert client.tick() == 2
    spent = client.status().spent
    wire.cut = False
    clock.set(collection.opens(9) + collection.lateness_seconds + 1.0)
    server.collector.tick()
    assert client.upload() == 0
    assert client.status().counts == {"sent": 2, "late": 2}
    assert client.status().spent == spent
    client.close()
    server.store.close()


def test_only_within_the_budget_and_for_so_long(folder: Path) -> None:
    server, wire, clock, client = world(folder, TEXT)
    collection = server.collector.collections["survey"]
    wire.cut = True
    reports = {"popular": 0, "place": 0}
    for step in range(8, 7 + 60):
        clock.set(collection.opens(step) + 600.0)
        before = client.status().spent
        new = client.tick()
        paid = client.status().spent > before
        reports["popular"] += paid
        reports["place"] += new - paid
    # Half of the nine units of a life are for the histogram, at half a unit each; one was answered before.
    assert reports["popular"] == 8
    # A memo costs nothing: it goes on until the ask was heard of two days ago, for which reports are kept.
    assert reports["place"] == 48
    assert client.status().counts["refused: budget"] >= 1
    client.close()
    server.store.close()


def test_what_does_not_stand_is_not_guessed(folder: Path) -> None:
    """Whose turn it is in a step that was not heard of, a device cannot know.

    Only a device whose turn it was last time could guess that it is again. Of 60 devices one has its turn, but for once
    in 10^7 times.
    """
    server, wire, clock, client = world(folder, TURNS)
    for number in range(60):
        if client.status().counts.get("sent"):
            break
        client.close()
        client = device(folder / str(number), wire, clock)
        client.tick()
        client.upload()
    assert client.status().counts["sent"] == 1
    wire.cut = True
    for step in range(8, 16):  # two windows: there is budget again
        clock.set(server.collector.collections["survey"].opens(step) + 600.0)
        assert client.tick() == 0
    assert client.status().queued == 0
    client.close()
    server.store.close()


def test_a_server_that_is_reached_and_not_believed_is_not_out_of_reach(folder: Path) -> None:
    server, _, clock, client = world(folder, TEXT)
    clock.set(server.collector.collections["survey"].opens(8) + 600.0)
    server.collector.asks["survey"] = server.collector.specs["survey"]  # signed, and no asks
    assert client.tick() == 0
    assert client.status().counts["refused: document"] == 1
    client.close()
    server.store.close()
