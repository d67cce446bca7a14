"""One party that does not do as it should: it is found out, or bounded as docs/threat-model.md says; and bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hubbub.authoring import load_collection
from hubbub.collection.shuffle_route import LAYER_BYTES, layer_name
from hubbub.protocols.views.basic import Clipped
from hubbub.random.source import Random
from hubbub.service.store import open_store
from hubbub.shuffle import onion
from hubbub.shuffle.onion import peel, wrap
from hubbub.shuffler.config import ShufflerKeys
from hubbub.wire.batches import ShuffledBatch, decode_shuffled, encode_shuffled
from hubbub.wire.upload import encode_upload
from tests.shuffler.shuffle_world import KEYS, ShuffleWorld

PEOPLE = 40


def values(n: int = PEOPLE) -> list[str]:
    return ["dark" if number % 4 else "light" for number in range(n)]


def tampered(change: Any, *, at: str = "collector", **given: Any) -> tuple[ShuffleWorld, Any]:
    """A run in which a party changes the batch that it hands on to another; the release."""
    world = ShuffleWorld(**given)
    to = at if at == "collector" else world.urls[int(at)]

    def tamper(who: str, method: str, path: str, body: bytes | None) -> bytes | None:
        if who == to and path == "/v1/shuffled" and body is not None:
            return encode_shuffled(change(world, decode_shuffled(body)))
        return body

    world.tamper = tamper
    world.send(world.entries(values()))
    world.close()
    return world, world.finish()


def restated(world: ShuffleWorld, batch: ShuffledBatch, onions: list[bytes], **said: int) -> ShuffledBatch:
    """What a dishonest last shuffler signs itself for other reports than it should hand on."""
    last = batch.statements[-1]
    numbers = {"unreadable": last.unreadable, "repeated": last.repeated, "fakes": last.fakes, **said}
    before = msgspec.structs.replace(batch, statements=batch.statements[:-1], onions=[b""] * last.received)
    return before.stated(onions, world.keys[len(batch.statements) - 1].signing.private, **numbers)


def layers(world: ShuffleWorld, batch: ShuffledBatch) -> str:
    """What the layers of a batch are bound to."""
    (opened,) = (ask for ask in world.collector.board.asks.values() if ask.name == batch.answer)
    return layer_name(batch.name, opened.ask)


def checked(world: ShuffleWorld, count: int) -> None:
    """Send reports of the collector's own."""
    frame, uploads = world.collector.spot_check("survey", world.answer_name, count, Random(seed=2))
    world.collector.ingest([frame])
    assert [world.post(upload)["accepted"] for upload in uploads] == [1] * count


def dropped(world: ShuffleWorld) -> str:
    """Why the last shuffler gave the batch up."""
    (batch,) = world.hops[-1].status()["batches"]  # type: ignore[misc]
    assert batch["state"] == "dropped"  # type: ignore[index]
    return str(batch["note"])  # type: ignore[index]


def test_the_size_of_a_layer_is_one_number() -> None:
    assert LAYER_BYTES == onion.LAYER_BYTES


# -- the network, or anyone without a key ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda onions: onions[:-1], "the very reports"),
        (lambda onions: [*onions, onions[0]], "the very reports"),
        (lambda onions: [bytes(len(onions[0])), *onions[1:]], "the very reports"),
        (lambda onions: [onion[:-1] for onion in onions], "the very reports"),
        (lambda onions: onions[::-1], "the very reports"),
    ],
    ids=["drop", "duplicate", "replace", "truncate", "reorder"],
)
@pytest.mark.parametrize("at", ["1", "collector"])
def test_what_is_changed_on_the_way_is_refused(at: str, change: Any, why: str) -> None:
    world, row = tampered(lambda world, batch: msgspec.structs.replace(batch, onions=change(batch.onions)), at=at)
    assert row.withheld == "0 reports; at least 20 are needed"
    (batch,) = world.hops[0 if at == "1" else 1].status()["batches"]  # type: ignore[misc]
    assert batch["state"] == "dropped"  # type: ignore[index]
    assert why in batch["note"]  # type: ignore[index]


def test_a_statement_that_was_changed_is_refused() -> None:
    def change(world: ShuffleWorld, batch: ShuffledBatch) -> ShuffledBatch:
        first = msgspec.structs.replace(batch.statements[0], unreadable=1, handed=batch.statements[0].handed - 1)
        return msgspec.structs.replace(batch, statements=[first, *batch.statements[1:]])

    world, _ = tampered(change)
    assert "signature" in dropped(world)


# -- a dishonest shuffler, with its own key -------------------------------------------------------------------------


def test_a_shuffler_that_lies_about_its_length_is_found_out() -> None:
    """It drops reports and says nothing of it: its numbers do not add up."""
    world, row = tampered(lambda world, batch: restated(world, batch, batch.onions[3:]))
    assert "numbers that add up" in dropped(world)
    assert row.withheld


def test_a_shuffler_that_says_other_fakes_is_found_out() -> None:
    world, _ = tampered(lambda world, batch: restated(world, batch, batch.onions[3:], fakes=2))
    assert "5, as is signed" in dropped(world)


def test_a_shuffler_that_says_it_received_less_is_found_out() -> None:
    def change(world: ShuffleWorld, batch: ShuffledBatch) -> ShuffledBatch:
        before = msgspec.structs.replace(batch, statements=batch.statements[:-1], onions=[b""] * (PEOPLE + 5 - 3))
        private = world.keys[-1].signing.private
        return before.stated(batch.onions[3:], private, unreadable=0, repeated=0, fakes=5)

    world, _ = tampered(change)
    assert "which shuffler 0 handed on" in dropped(world)


def test_dropping_is_seen_in_what_a_shuffler_has_to_say() -> None:
    """A shuffler may call reports unreadable that are not: the number is in its signed statement, and counted."""
    _, row = tampered(lambda world, batch: restated(world, batch, batch.onions[3:], unreadable=3))
    assert json.loads(row.payload)["n"] == PEOPLE - 3


def test_duplicates_are_counted_once() -> None:
    """A last shuffler that hands on a report twice, in the place of another: the collector keeps one of them."""

    def change(world: ShuffleWorld, batch: ShuffledBatch) -> ShuffledBatch:
        return restated(world, batch, [batch.onions[0], batch.onions[0], *batch.onions[2:]])

    world, row = tampered(change)
    ((_, batch),) = world.store.shuffled_batches(world.collection.collection_id, "popular", 1)
    assert (batch.n, batch.repeated) == (PEOPLE + 10 - 1, 1)
    assert json.loads(row.payload)["n"] == PEOPLE - 1


def test_reports_of_another_batch_cannot_be_opened() -> None:
    """A shuffler that puts in onions that were made for another step, or another collection: they are unreadable."""

    def change(world: ShuffleWorld, batch: ShuffledBatch) -> ShuffledBatch:
        other = wrap(b"\x00", world.collection.shuffle.route[2:], layers(world, batch) + "0", place=2)  # type: ignore[union-attr]
        return restated(world, batch, [other, *batch.onions[1:]])

    world, _ = tampered(change)
    ((_, batch),) = world.store.shuffled_batches(world.collection.collection_id, "popular", 1)
    assert batch.unreadable == 1


def test_replaced_reports_are_as_many_as_a_spot_check_may_find() -> None:
    """A shuffler that replaces reports by its own: nobody can tell, but the collector's own reports are missed."""
    world = ShuffleWorld()
    checked(world, 15)

    def tamper(who: str, method: str, path: str, body: bytes | None) -> bytes | None:
        if who != "collector" or path != "/v1/shuffled" or body is None:
            return body
        batch = decode_shuffled(body)
        forged = [wrap(b"\x01", world.collection.shuffle.route[2:], layers(world, batch), place=2) for _ in range(30)]  # type: ignore[union-attr]
        return encode_shuffled(restated(world, batch, [*forged, *batch.onions[30:]]))

    world.tamper = tamper
    world.send(world.entries(values()))
    world.close()
    ((_, batch),) = world.store.shuffled_batches(world.collection.collection_id, "popular", 1)
    assert batch.checks == 15
    assert 0 < batch.lost < 15  # 30 of 65 at random: all 15 would be there with probability below 1e-4
    assert json.loads(world.finish().payload)["n"] == PEOPLE + batch.lost


def test_spot_checks_are_nobodys_reports() -> None:
    world = ShuffleWorld()
    checked(world, 7)
    world.send(world.entries(values()))
    world.close()
    ((_, batch),) = world.store.shuffled_batches(world.collection.collection_id, "popular", 1)
    assert (batch.n, batch.checks, batch.lost) == (PEOPLE + 10, 7, 0)
    assert not world.store._read("SELECT * FROM spot_checks")
    assert json.loads(world.finish().payload)["n"] == PEOPLE


def test_reports_of_another_size_are_refused() -> None:
    """A size of its own would be a mark that the collector sees."""
    world, _ = tampered(lambda world, batch: restated(world, batch, [onion[:-1] for onion in batch.onions]))
    assert "49 bytes each" in dropped(world)


def test_injected_reports_do_not_add_up() -> None:
    world, _ = tampered(lambda world, batch: restated(world, batch, [*batch.onions, bytes(len(batch.onions[0]))]))
    assert "numbers that add up" in dropped(world)


# -- a dishonest first shuffler, who alone meets devices ------------------------------------------------------------


def test_a_first_shuffler_cannot_read_what_it_hands_on() -> None:
    world = ShuffleWorld()
    world.send(world.entries(values()))
    world.close()
    (body,) = [body for who, _, path, body in world.seen if who == world.urls[1] and path == "/v1/shuffled"]
    batch = decode_shuffled(body or b"")
    first = world.keys[0].encryption
    for place in range(3):
        assert not peel(batch.onions, first, layers(world, batch), place=place).inside


# -- a dishonest collector ------------------------------------------------------------------------------------------


def test_a_collector_that_publishes_another_ask_is_refused() -> None:
    """An ask whose mechanism is not in the signed terms would give away who answers it: no shuffler goes along."""
    world = ShuffleWorld()
    world.send(world.entries(values()))
    from hubbub import GRR

    for opened in world.collector.board.asks.values():
        opened.ask = replace(opened.ask, mechanism=GRR(epsilon=8.0, domain=3))
    world.close()
    (batch,) = world.hops[0].status()["batches"]  # type: ignore[misc]
    assert "signed terms" in batch["note"]  # type: ignore[index]


def test_whoever_was_asked_otherwise_is_left_out() -> None:
    """A collector that asks one device by another mechanism of the terms: its report is not opened, by anybody."""
    world = ShuffleWorld()
    world.send(world.entries(values()))
    (opened,) = world.collector.board.open(world.collection.collection_id, world.clock.now())
    honest, special = opened.ask, replace(opened.ask, view=Clipped(0.0, 1.0))
    opened.ask = special
    world.send(world.entries(["dark"]))
    opened.ask = honest
    world.close()
    (batch,) = world.hops[0].status()["batches"]  # type: ignore[misc]
    assert batch["note"] == "41 came, 1 unreadable, 0 repeated, 5 fakes"  # type: ignore[index]


def test_another_batch_under_a_name_is_refused() -> None:
    world = ShuffleWorld()
    world.send(world.entries(values()))
    world.close()
    (body,) = [body for who, _, path, body in world.seen if who == "collector" and path == "/v1/shuffled"]
    batch = decode_shuffled(body or b"")
    other = encode_shuffled(restated(world, batch, batch.onions[::-1]))
    assert world.to("collector").request("POST", "/v1/shuffled", {}, other).status == 409
    assert world.to("collector").request("POST", "/v1/shuffled", {}, body).status == 200
    assert json.loads(world.finish().payload)["n"] == PEOPLE


# -- bad input ------------------------------------------------------------------------------------------------------


def test_a_batch_under_the_minimum_is_refused_by_everyone() -> None:
    """A first shuffler that hands on too few: the second one drops them, unopened; and so does the collector."""
    world = ShuffleWorld(least=20)
    object.__setattr__(world.hops[0].collection.shuffle, "least", 2)  # type: ignore[union-attr]
    world.send(world.entries(values(5)))
    world.close()
    (batch,) = world.hops[1].status()["batches"]  # type: ignore[misc]
    assert "at least 25" in batch["note"]  # type: ignore[index]
    object.__setattr__(world.hops[1].collection.shuffle, "least", 2)  # type: ignore[union-attr]
    assert world.finish().withheld

    both = ShuffleWorld(least=20)
    for hop in both.hops:
        object.__setattr__(hop.collection.shuffle, "least", 2)  # type: ignore[union-attr]
    both.send(both.entries(values(5)))
    both.close()
    assert "too few reports of people; at least 20" in dropped(both)
    counts = {outcome: count for (_, outcome), count in both.collector.counts().items() if count}
    assert counts == {"under_minimum": 15}


def test_hostile_uploads_cost_nobody_else_anything() -> None:
    """Truncated, repeated, wrongly encrypted and unasked reports are refused or left out, one by one."""
    world = ShuffleWorld()
    good = world.entries(values())
    world.send(good)
    cut = msgspec.structs.replace(good[0], report_id=b"a" * 16, report=good[0].report[:-1])
    short = msgspec.structs.replace(good[0], report_id=b"b" * 16, report=good[0].report[:20])
    twin = msgspec.structs.replace(good[0], report_id=b"c" * 16)
    wrong = msgspec.structs.replace(good[0], report_id=b"d" * 16, report=bytes(len(good[0].report)))
    unasked = msgspec.structs.replace(good[0], report_id=b"e" * 16, round=2)
    early = msgspec.structs.replace(good[0], report_id=b"f" * 16, step=world.answer_name.step + 1)
    receipts = world.send([cut, short, twin, wrong, unasked, early])
    reasons = [receipt["rejected"][0]["reason"] if receipt["rejected"] else None for receipt in receipts]
    assert reasons == ["malformed", "malformed", None, None, "unknown_ask", "too_early"]
    assert world.post(b"hostile")["status"] == 400
    world.close()
    (batch,) = world.hops[0].status()["batches"]  # type: ignore[misc]
    assert batch["note"] == "42 came, 1 unreadable, 1 repeated, 5 fakes"  # type: ignore[index]
    assert json.loads(world.finish().payload)["n"] == PEOPLE


def test_a_shuffler_with_other_keys_takes_nothing() -> None:
    world = ShuffleWorld()
    world.hops[0] = world.hop(0, ShufflerKeys.generate())
    assert world.send(world.entries(["dark"]))[0]["status"] == 400


def test_keys_that_rotate_while_a_batch_gathers() -> None:
    """A new version with other keys: what waits for the old one is dropped, and never opened."""
    world = ShuffleWorld()
    world.send(world.entries(values()))
    world.keys[1] = ShufflerKeys.generate()
    world.collection = load_collection(world.text(version=2))
    world.collector = world.collect()
    world.hops[0].refresh()
    world.hops[1] = world.hop(1)
    world.hops[1].refresh()
    assert world.post(encode_upload("survey", 1, [], world.size))["status"] == 410
    world.tick()
    (waited,) = world.hops[0].status()["batches"]  # type: ignore[misc]
    assert waited["state"] == "dropped"  # type: ignore[index]
    assert "outdated_version" in waited["note"]  # type: ignore[index]
    world.clock.set(8 * 3600 + 60.0)
    world.collector.tick()
    world.send(world.entries(values(30)))
    world.close()
    assert json.loads(world.finish().payload)["n"] == 30


@pytest.mark.parametrize("change", [None, {"fakes": 4}, {"shufflers": 1}], ids=str)
def test_a_version_with_a_weaker_shuffle_is_refused_by_devices(tmp_path: Path, change: dict[str, int] | None) -> None:
    """Whatever a collector signs later: reports never go out with less between than people agreed to."""
    world = ShuffleWorld()
    device = world.device(tmp_path)
    device.record("theme", "dark")
    assert (device.tick(), device.upload()) == (1, 1)
    route = world.collection.shuffle
    assert route is not None
    if change is None:
        weaker = replace(world.collection, version=2, trust="local", shuffle=None)
    else:
        fewer = {"shufflers": route.shufflers[:1]} if "shufflers" in change else change
        weaker = replace(world.collection, version=2, shuffle=replace(route, **fewer))  # type: ignore[arg-type]
    world.collection, world.store = weaker, open_store("sqlite:///:memory:")
    world.collector = hostile = world.collect()
    world.clock.set(8 * 3600 + 60.0)
    hostile.tick()
    device.record("theme", "dark")
    sent = len(world.seen)
    assert (device.tick(), device.upload()) == (0, 0)
    assert all(body is None for *_, body in world.seen[sent:])
    counts = device.status().counts
    assert counts["refused: weaker"] > 0
    device.close()
    world.store.close()


def test_a_version_that_changes_is_refused() -> None:
    world = ShuffleWorld()
    world.collection = load_collection(world.text(least=30))
    from hubbub.service.rounds.ask_publisher import signed_collection

    world.collector.specs["survey"] = signed_collection(world.collection, KEYS.private)
    with pytest.raises(Exception, match="a version never changes"):
        world.hops[0].refresh()


@pytest.mark.parametrize("gone", ["1", "collector"])
def test_a_party_that_never_answers(gone: str) -> None:
    """The batch is kept, tried again, and given up when the lateness is over: nothing of it was opened."""
    world = ShuffleWorld()
    world.send(world.entries(values()))
    world.clock.set(8 * 3600 + world.collection.accepts_for + 1)
    world.down.add("collector" if gone == "collector" else world.urls[1])
    world.tick()
    world.tick()
    (batch,) = world.hops[0].status()["batches"]  # type: ignore[misc]
    assert batch["state"] == ("closed" if gone == "collector" else "made")  # type: ignore[index]
    if gone == "1":
        world.down.clear()
        world.tick()
        assert json.loads(world.finish().payload)["n"] == PEOPLE
        return
    row = world.finish()
    (batch,) = world.hops[0].status()["batches"]  # type: ignore[misc]
    assert batch["state"] == "dropped"  # type: ignore[index]
    assert "does not answer" in batch["note"]  # type: ignore[index]
    assert row.withheld
