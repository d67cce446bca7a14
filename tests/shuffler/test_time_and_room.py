"""When shufflers and the collector take reports and batches, how many, and which of two of one name."""

from __future__ import annotations

import pytest

from hubbub.service.base.limits import Ceilings, Limits
from hubbub.service.collector.collector import Collector
from hubbub.service.store import open_store
from hubbub.shuffler import hop as intake
from hubbub.wire.batches import ShuffledBatch, decode_shuffled, encode_shuffled
from hubbub.wire.upload import UPLOAD_TYPE, encode_upload
from tests.shuffler.shuffle_world import HOUR, KEYS, ShuffleWorld

PEOPLE = ["dark", "light"] * 20


def reasons(told: list[dict[str, object]]) -> list[str]:
    return [rejected["reason"] for answer in told for rejected in answer["rejected"]]  # type: ignore[attr-defined]


def handed_on(world: ShuffleWorld, who: str) -> bytes:
    """The batch that a party was given."""
    (body,) = [body for to, _, path, body in world.seen if to == who and path == "/v1/shuffled"]
    assert body is not None
    return body


def status(world: ShuffleWorld, who: str, body: bytes) -> int:
    return world.to(who).request("POST", "/v1/shuffled", {}, body).status


def test_reports_are_taken_in_their_time() -> None:
    world = ShuffleWorld()
    entries, last = world.entries(["dark"]), 8 * HOUR + world.collection.accepts_for
    for now, reason in ((7 * HOUR - 1, "too_early"), (last, "late")):
        world.clock.set(now)
        assert reasons(world.send(entries)) == [reason]
    world.clock.set(last - 1)
    assert world.send(entries)[0]["accepted"] == 1


def test_a_closed_batch_takes_no_report_though_the_clock_goes_back() -> None:
    world = ShuffleWorld()
    *entries, another = world.entries(PEOPLE)
    world.send(entries)
    world.close()
    world.clock.set(7 * HOUR + 60)
    assert reasons(world.send([another])) == ["late"]


def test_a_batch_takes_as_many_reports_as_can_be_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ShuffleWorld()
    first, second, third = world.entries(["dark"] * 3)
    assert world.collection.shuffle is not None
    room = 2 + world.collection.shuffle.all_fakes
    monkeypatch.setattr(intake, "MOST_BATCH_BYTES", room * len(first.report))
    assert reasons(world.send([first, second, third])) == ["over_ceiling"]


def test_a_shuffler_takes_one_batch_of_a_name() -> None:
    world = ShuffleWorld()
    world.send(world.entries(PEOPLE))
    world.close()
    body = handed_on(world, world.urls[1])
    batch = decode_shuffled(body)
    before = ShuffledBatch(batch.collection, batch.version, batch.answer, [], batch.onions[batch.fakes :])
    signing = world.keys[0].signing.private
    other = before.stated(batch.onions[::-1], signing, unreadable=0, repeated=0, fakes=batch.fakes)
    assert status(world, world.urls[1], encode_shuffled(other)) == 409
    assert status(world, world.urls[1], body) == 200


def test_devices_send_to_the_first_shuffler_and_batches_go_to_the_others() -> None:
    world = ShuffleWorld()
    entries = world.entries(PEOPLE)
    frame = encode_upload("survey", 1, entries[:1], world.size)
    assert world.to(world.urls[1]).request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, frame).status == 404
    assert world.stores[1].batches() == []
    onions = [entry.report for entry in entries]
    batch = encode_shuffled(ShuffledBatch("survey", 1, entries[0].name, [], onions))  # reports without ids
    world.clock.set(8 * HOUR + 1)
    assert status(world, world.urls[0], batch) == 400
    assert world.stores[0].batches() == []


def test_the_collector_takes_a_batch_in_its_time_and_while_there_is_room() -> None:
    world = ShuffleWorld()
    world.send(world.entries(PEOPLE))
    world.close()
    body = handed_on(world, "collector")

    def begin(limits: Limits | None = None) -> Collector:
        """A collector that has not seen the batch."""
        world.clock.set(7 * HOUR + 60)
        collector = Collector(
            [world.collection],
            open_store("sqlite:///:memory:"),
            clock=world.clock,
            keys=KEYS,
            onion_key=world.onion_key,
            limits=limits,
        )
        collector.tick()
        return collector

    world.collector = begin()
    (ask,) = world.collector.board.open(world.collection.collection_id, world.clock.now())
    for now, refused in ((ask.opens - 1, 425), (ask.until, 410)):
        world.clock.set(now)
        assert status(world, "collector", body) == refused
    world.clock.set(ask.until - 1)
    assert status(world, "collector", body) == 200
    world.collector = begin(Limits(ceilings=Ceilings(ask=len(PEOPLE))))
    assert status(world, "collector", body) == 429  # there are fakes too
