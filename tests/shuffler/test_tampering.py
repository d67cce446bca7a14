"""One party that does not do as it should: it is found out, or bounded as docs/threat-model.md says; and bad input."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hubbub import GRR
from hubbub.authoring import load_collection
from hubbub.collection.shuffle_route import ShuffleRoute, layer_name
from hubbub.protocols.views.basic import Clipped
from hubbub.random.source import Random
from hubbub.service.store import open_store
from hubbub.shuffle.onion import peel, wrap
from hubbub.shuffler.config import ShufflerKeys
from hubbub.wire.batches import ShuffledBatch, decode_shuffled, encode_shuffled
from hubbub.wire.upload import encode_upload
from tests.shared.in_process import rows_in
from tests.shuffler.shuffle_world import HOUR, PEOPLE, ShuffleWorld


def tampered(change: Any, *, at: str = "collector", world: ShuffleWorld | None = None) -> tuple[ShuffleWorld, Any]:
    """A run in which a party changes the batch that it hands on to another; the release."""
    world = world or ShuffleWorld()
    to = at if at == "collector" else world.urls[int(at)]

    def tamper(who: str, method: str, path: str, body: bytes | None) -> bytes | None:
        if who == to and path == "/v1/shuffled" and body is not None:
            return encode_shuffled(change(world, decode_shuffled(body)))
        return body

    world.tamper = tamper
    world.step()
    return world, world.finish()


def restated(world: ShuffleWorld, batch: ShuffledBatch, onions: list[bytes], **fields: int) -> ShuffledBatch:
    """What a dishonest last shuffler signs itself for other reports than it should hand on."""
    last = batch.statements[-1]
    numbers = {"unreadable": last.unreadable, "repeated": last.repeated, "fakes": last.fakes, **fields}
    before = msgspec.structs.replace(batch, statements=batch.statements[:-1], onions=[b""] * last.received)
    return before.stated(onions, world.keys[len(batch.statements) - 1].signing.private, **numbers)


def route_of(world: ShuffleWorld) -> list[bytes]:
    """The keys of all who remove a layer."""
    route = world.collection.shuffle
    assert isinstance(route, ShuffleRoute)
    return route.route


def layers(world: ShuffleWorld, batch: ShuffledBatch) -> str:
    """What the layers of a batch are bound to."""
    (opened,) = (ask for ask in world.collector.board.asks.values() if ask.name == batch.answer)
    return layer_name(batch.name, opened.ask)


def checked(world: ShuffleWorld, count: int) -> None:
    """Send reports of the collector's own."""
    frame, uploads = world.collector.spot_check("survey", world.answer_name, count, Random(seed=2))
    world.collector.ingest([frame])
    assert [world.post(upload)["accepted"] for upload in uploads] == [1] * count


def dropped(world: ShuffleWorld, number: int = -1) -> str:
    """Why a shuffler, the last one or another, gave the batch up."""
    batch = world.status(number)
    assert batch["state"] == "dropped"
    return str(batch["note"])


# -- the network, or anyone without a key ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda onions: onions[:-1],
        lambda onions: [*onions, onions[0]],
        lambda onions: [bytes(len(onions[0])), *onions[1:]],
        lambda onions: [onion[:-1] for onion in onions],
        lambda onions: onions[::-1],
    ],
    ids=["drop", "duplicate", "replace", "truncate", "reorder"],
)
@pytest.mark.parametrize("at", ["1", "collector"])
def test_what_is_changed_on_the_way_is_refused(at: str, change: Any) -> None:
    world, row = tampered(lambda world, batch: msgspec.structs.replace(batch, onions=change(batch.onions)), at=at)
    assert row.withheld == "0 reports; at least 20 are needed"
    assert "the very reports" in dropped(world, 0 if at == "1" else 1)


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
        before = msgspec.structs.replace(batch, statements=batch.statements[:-1], onions=[b""] * (len(PEOPLE) + 5 - 3))
        private = world.keys[-1].signing.private
        return before.stated(batch.onions[3:], private, unreadable=0, repeated=0, fakes=5)

    world, _ = tampered(change)
    assert "which shuffler 0 handed on" in dropped(world)


def test_dropping_is_seen_in_what_a_shuffler_has_to_say() -> None:
    """A shuffler may call reports unreadable that are not: the number is in its signed statement, and counted."""
    _, row = tampered(lambda world, batch: restated(world, batch, batch.onions[3:], unreadable=3))
    assert json.loads(row.payload)["n"] == len(PEOPLE) - 3


def test_duplicates_are_counted_once() -> None:
    """A last shuffler that hands on a report twice, in the place of another: the collector keeps one of them."""

    def change(world: ShuffleWorld, batch: ShuffledBatch) -> ShuffledBatch:
        return restated(world, batch, [batch.onions[0], batch.onions[0], *batch.onions[2:]])

    world, row = tampered(change)
    batch = world.stored()
    assert (batch.n, batch.repeated) == (len(PEOPLE) + 10 - 1, 1)
    assert json.loads(row.payload)["n"] == len(PEOPLE) - 1


def test_reports_of_another_batch_cannot_be_opened() -> None:
    """A shuffler that puts in onions that were made for another step, or another collection: they are unreadable."""

    def change(world: ShuffleWorld, batch: ShuffledBatch) -> ShuffledBatch:
        other = wrap(b"\x00", route_of(world)[2:], layers(world, batch) + "0", place=2)
        return restated(world, batch, [other, *batch.onions[1:]])

    world, _ = tampered(change)
    batch = world.stored()
    assert batch.unreadable == 1


def test_replaced_reports_are_as_many_as_a_spot_check_may_find() -> None:
    """A shuffler that replaces reports by its own: nobody can tell, but the collector's own reports are missed."""

    def change(world: ShuffleWorld, batch: ShuffledBatch) -> ShuffledBatch:
        forged = [wrap(b"\x01", route_of(world)[2:], layers(world, batch), place=2) for _ in range(30)]
        return restated(world, batch, [*forged, *batch.onions[30:]])

    world = ShuffleWorld()
    checked(world, 15)
    _, row = tampered(change, world=world)
    batch = world.stored()
    assert batch.checks == 15
    assert 0 < batch.lost < 15  # 30 of 65 at random: all 15 would be there with probability below 1e-4
    assert json.loads(row.payload)["n"] == len(PEOPLE) + batch.lost


def test_spot_checks_are_nobodys_reports() -> None:
    world = ShuffleWorld()
    checked(world, 7)
    world.step()
    batch = world.stored()
    assert (batch.n, batch.checks, batch.lost) == (len(PEOPLE) + 10, 7, 0)
    assert not rows_in(world.store, "SELECT * FROM spot_checks")
    assert world.released()["n"] == len(PEOPLE)


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
    world.step()
    body = world.handed(world.urls[1])
    batch = decode_shuffled(body)
    first = world.keys[0].encryption
    for place in range(3):
        assert not peel(batch.onions, first, layers(world, batch), place=place).inside


# -- a dishonest collector ------------------------------------------------------------------------------------------


def test_a_collector_that_publishes_another_ask_is_refused() -> None:
    """An ask whose mechanism is not in the signed terms would give away who answers it: no shuffler goes along."""
    world = ShuffleWorld()
    world.send(world.entries(PEOPLE))
    for opened in world.collector.board.asks.values():
        opened.ask = replace(opened.ask, mechanism=GRR(epsilon=8.0, domain=3))
    world.close()
    batch = world.status()
    assert "signed terms" in batch["note"]


def test_whoever_was_asked_otherwise_is_left_out() -> None:
    """A collector that asks one device by another mechanism of the terms: its report is not opened, by anybody."""
    world = ShuffleWorld()
    world.send(world.entries(PEOPLE))
    (opened,) = world.collector.board.open(world.collection.collection_id, world.clock.now())
    honest, special = opened.ask, replace(opened.ask, view=Clipped(0.0, 1.0))
    opened.ask = special
    world.send(world.entries(["dark"]))
    opened.ask = honest
    world.close()
    batch = world.status()
    assert batch["note"] == "41 came, 1 unreadable, 0 repeated, 5 fakes"


def test_another_batch_under_a_name_is_refused() -> None:
    world = ShuffleWorld()
    world.step()
    body = world.handed()
    batch = decode_shuffled(body)
    other = encode_shuffled(restated(world, batch, batch.onions[::-1]))
    assert world.hand("collector", other).status == 409
    assert world.hand("collector", body).status == 200
    assert world.released()["n"] == len(PEOPLE)


# -- bad input ------------------------------------------------------------------------------------------------------


def test_a_batch_under_the_minimum_is_refused_by_everyone() -> None:
    """A first shuffler that hands on too few: the second one drops them, unopened; and so does the collector."""
    world = ShuffleWorld()
    lower_minimum(world, 0)
    world.step(PEOPLE[:5])
    assert "at least 25" in dropped(world)
    lower_minimum(world, 1)
    assert world.finish().withheld

    both = ShuffleWorld()
    lower_minimum(both, 0)
    lower_minimum(both, 1)
    both.step(PEOPLE[:5])
    assert "too few reports of people; at least 20" in dropped(both)
    counts = {outcome: count for (_, outcome), count in both.collector.counts().items() if count}
    assert counts == {"under_minimum": 15}


def lower_minimum(world: ShuffleWorld, number: int) -> None:
    """Have a shuffler go by another minimum than was signed."""
    object.__setattr__(world.hops[number].collection.shuffle, "least", 2)


def test_hostile_uploads_cost_nobody_else_anything() -> None:
    """Truncated, repeated, wrongly encrypted and unasked reports are refused or left out, one by one."""
    world = ShuffleWorld()
    good = world.entries(PEOPLE)
    world.send(good)
    first, step = good[0].report, world.answer_name.step
    hostile: list[dict[str, Any]] = [
        {"report": first[:-1]},
        {"report": first[:20]},
        {"report": first},
        {"report": bytes(len(first))},
        {"round": 2},
        {"step": step + 1},
    ]
    receipts = world.send(
        msgspec.structs.replace(good[0], report_id=bytes([number]) * 16, **changes)
        for number, changes in enumerate(hostile)
    )
    reasons = [receipt["rejected"][0]["reason"] if receipt["rejected"] else None for receipt in receipts]
    assert reasons == ["malformed", "malformed", None, None, "unknown_ask", "too_early"]
    assert world.post(b"hostile")["status"] == 400
    world.close()
    batch = world.status()
    assert batch["note"] == "42 came, 1 unreadable, 1 repeated, 5 fakes"
    assert world.released()["n"] == len(PEOPLE)


def test_a_shuffler_with_other_keys_takes_nothing() -> None:
    world = ShuffleWorld()
    world.keys[0] = ShufflerKeys.generate()
    world.hops[0] = world.hop(0)
    assert world.send(world.entries(["dark"]))[0]["status"] == 400


def test_keys_that_rotate_while_a_batch_gathers() -> None:
    """A new version with other keys: what waits for the old one is dropped, and never opened."""
    world = ShuffleWorld()
    world.send(world.entries(PEOPLE))
    world.keys[1] = ShufflerKeys.generate()
    world.collection = load_collection(world.text(version=2))
    world.collector = world.collect()
    world.hops[0].refresh()
    world.hops[1] = world.hop(1)
    world.hops[1].refresh()
    assert world.post(encode_upload("survey", 1, [], world.size))["status"] == 410
    world.tick()
    waited = world.status()
    assert waited["state"] == "dropped"
    assert "outdated_version" in waited["note"]
    world.clock.set(8 * HOUR + 60.0)
    world.collector.tick()
    world.step(PEOPLE[:30])
    assert world.released()["n"] == 30


@pytest.mark.parametrize("change", ["local", "fakes", "shufflers"])
def test_a_version_with_a_weaker_shuffle_is_refused_by_devices(tmp_path: Path, change: str) -> None:
    """Whatever a collector signs later: reports never go out with less between than people agreed to."""
    world = ShuffleWorld()
    device = world.device(tmp_path)
    device.record("theme", "dark")
    assert (device.tick(), device.upload()) == (1, 1)
    route = world.collection.shuffle
    assert route is not None
    weaker = {
        "local": replace(world.collection, version=2, trust="local", shuffle=None),
        "fakes": replace(world.collection, version=2, shuffle=replace(route, fakes=4)),
        "shufflers": replace(world.collection, version=2, shuffle=replace(route, shufflers=route.shufflers[:1])),
    }[change]
    world.collection, world.store = weaker, open_store("sqlite:///:memory:")
    world.collector = world.collect()
    world.clock.set(8 * HOUR + 60.0)
    world.collector.tick()
    device.record("theme", "dark")
    sent = len(world.seen)
    assert (device.tick(), device.upload()) == (0, 0)
    assert all(body is None for *_, body in world.seen[sent:])
    assert device.status().counts["refused: weaker"] > 0
    device.close()
    world.store.close()


@pytest.mark.parametrize("silent_party", ["1", "collector"])
def test_a_party_that_never_answers(silent_party: str) -> None:
    """The batch is kept, tried again, and given up when the lateness is over: nothing of it was opened."""
    world = ShuffleWorld()
    world.send(world.entries(PEOPLE))
    world.turn()
    world.down.add("collector" if silent_party == "collector" else world.urls[1])
    world.tick()
    world.tick()
    batch = world.status()
    assert batch["state"] == ("closed" if silent_party == "collector" else "made")
    if silent_party == "1":
        world.down.clear()
        world.tick()
        assert world.released()["n"] == len(PEOPLE)
        return
    row = world.finish()
    batch = world.status()
    assert batch["state"] == "dropped"
    assert "does not answer" in batch["note"]
    assert row.withheld
