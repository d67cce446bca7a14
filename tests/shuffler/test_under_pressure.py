"""Shufflers under pressure: a full disk, a clock that goes wrong, batches that are made to take memory."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hubbub.client import Response
from hubbub.collection.names import AnswerName
from hubbub.collection.sealing import open_sealed, seal
from hubbub.core.errors import DecodeError, HubbubError, InvalidValue
from hubbub.protocols.ask import Arc
from hubbub.service.base.limits import SenderLimits
from hubbub.service.http.guard import Senders
from hubbub.service.store import open_store
from hubbub.shuffle.onion import wrap
from hubbub.shuffler.app import ShufflerApp
from hubbub.shuffler.store import ShufflerStore
from hubbub.wire.batches import decode_shuffled
from hubbub.wire.upload import UPLOAD_TYPE, encode_upload
from tests.shared.loopback import running
from tests.shuffler.shuffle_world import HOUR, KEYS, POPULAR, Calling, ShuffleWorld

NAME = "survey:1:popular:0:7:1:0"


def test_a_full_disk_is_told_and_uploads_go_on_when_there_is_room(tmp_path: Path) -> None:
    world = ShuffleWorld(tmp_path)
    frames = [encode_upload("survey", 1, [entry], world.size) for entry in world.entries(["dark"] * 30)]
    file = world.stores[0]._file
    app = ShufflerApp(world.hops[0], Senders(SenderLimits(), world.clock)).app
    with running(app) as first:

        def post(frame: bytes) -> Any:
            return first.post("/v1/reports", content=frame, headers={"Content-Type": UPLOAD_TYPE})

        (pages,) = file.execute("PRAGMA page_count").fetchone()
        file.execute(f"PRAGMA max_page_count = {pages + 1}")
        told = [post(frame) for frame in frames]
        assert {answer.status_code for answer in told} == {200, 503}
        assert all("access-control-allow-origin" in answer.headers for answer in told)
        file.execute("PRAGMA max_page_count = 1000000")
        assert [post(frame).status_code for frame in frames] == [200] * 30
    for store in world.stores:
        store.close()
    again = ShufflerStore(tmp_path / "shuffler-0.db")
    assert [row.size for row in again.batches()] == [30]
    again.close()


def test_a_full_disk_at_the_turn_is_tried_again(tmp_path: Path) -> None:
    world = ShuffleWorld(tmp_path, fakes=300)
    world.send(world.entries(["dark"] * 30))
    file = world.stores[0]._file
    file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (pages,) = file.execute("PRAGMA page_count").fetchone()
    file.execute(f"PRAGMA max_page_count = {pages}")
    world.close()
    assert world.states() == ["closed"]
    assert "full" in world.hops[0].trouble
    file.execute("PRAGMA max_page_count = 1000000")
    world.tick()
    assert world.states() == ["handed"]


def test_an_ask_of_another_shape_stops_nobody() -> None:
    world = ShuffleWorld()
    world.send(world.entries(["dark"] * 30))
    true = world.collector_answers

    def broken(path: str, headers: Any, body: bytes | None) -> Response:
        answer = true(path, headers, body)
        if "/asks/" not in path:
            return answer
        spec = open_sealed(json.loads(answer.body), KEYS.public)
        del spec["asks"][0]["ask"]
        return answer._replace(body=json.dumps(seal(spec, KEYS.private)).encode())

    world.collector_answers = broken
    world.close()
    assert world.states() == ["closed"]
    assert world.hops[0].trouble
    world.collector_answers = true
    world.tick()
    assert world.states() == ["handed"]


def test_a_clock_that_goes_back_begins_no_batch_again() -> None:
    """Whoever saw two mixes of one batch, with and without some reports, would know whose the others are."""
    world = ShuffleWorld()
    entries = world.entries(["dark"] * 30)
    world.send(entries)
    world.close()
    world.tick()
    assert world.states() == world.states(1) == ["handed"]
    world.clock.set(9 * HOUR)
    world.tick()
    assert world.states() == world.states(1) == []
    body = world.handed(world.urls[1])
    world.clock.set(7 * HOUR + 120.0)
    assert [receipt["rejected"][0]["reason"] for receipt in world.send(entries[:25])] == ["late"] * 25
    world.clock.set(8 * HOUR + 120.0)
    assert world.hand(world.urls[1], body).status == 410
    world.clock.set(9 * HOUR + 60.0)
    world.collector.tick()
    assert world.send(world.entries(["dark"]))[0]["accepted"] == 1


def test_a_clock_that_is_ahead_loses_nothing() -> None:
    """The first shuffler takes its turn too early; the second waits until the batch closed by its own clock."""
    world = ShuffleWorld()
    begun = world.clock.now()

    def behind(*given: Any) -> Response:
        """The next shuffler, by whose clock it is still the time at which devices answered."""
        ahead = world.clock.now()
        world.clock.set(begun)
        try:
            return world.to(world.urls[1]).request(*given)
        finally:
            world.clock.set(ahead)

    world.hops[0] = world.hop(0, connect=lambda _: Calling(behind))
    world.send(world.entries(["dark"] * 30))
    world.turn()
    world.hops[0].tick()
    assert world.states() == ["made"]
    assert world.states(1) == []
    world.hops[0] = world.hop(0)
    world.tick()
    assert world.states() == world.states(1) == ["handed"]


@pytest.mark.parametrize("trust", ["shuffle", "local"])
def test_whoever_no_longer_shuffles_keeps_nothing(trust: str) -> None:
    """A version without this shuffler: what it gathered is dropped once, and then forgotten."""
    world = ShuffleWorld()
    world.send(world.entries(["dark"] * 30))
    route = world.collection.shuffle
    assert route is not None
    left = replace(route, shufflers=route.shufflers[1:]) if trust == "shuffle" else None
    world.collection = replace(world.collection, version=2, trust=trust, shuffle=left)
    world.store = open_store("sqlite:///:memory:")
    world.collector = world.collect()
    world.hops[0].refresh()
    world.hops[0].tick()
    world.hops[0].tick()
    assert world.states() == ["dropped"]
    assert world.stores[0].counts()["batches dropped"] == 1
    world.clock.set(9 * HOUR)
    world.hops[0].tick()
    assert world.states() == []


HEAD = [3, "survey", 1, "popular", 0, 7, 1, 0]


@pytest.mark.parametrize(
    "body",
    [
        [*HEAD, [], 1, bytes(1 << 20)],
        [*HEAD, [], 47, bytes(47 << 10)],
        [*HEAD, [[0] * 5 + [b""] * 2] * 100_000, 50, b""],
    ],
    ids=["tiny reports", "less than a layer", "statements"],
)
def test_a_batch_takes_no_more_memory_than_its_bytes(body: list[Any]) -> None:
    given = msgspec.msgpack.encode(body)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode_shuffled(given)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(given)
    finally:
        tracemalloc.stop()


def test_what_is_due_is_found_without_reading_whole_batches() -> None:
    store = ShufflerStore(":memory:")
    with store.transaction():
        store.begin(NAME, 1, AnswerName("popular", 0, 7, 1, 0), 1.0, bytes(10 << 20))
    tracemalloc.start()
    try:
        assert [row.state for row in store.batches()] == ["gathering"]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert len(store.incoming(NAME) or b"") == 10 << 20


def test_the_status_tells_nothing_of_a_batch_that_gathers() -> None:
    world = ShuffleWorld()
    before = world.hops[0].status()
    world.send(world.entries(["dark"] * 30))
    assert world.hops[0].status() == before
    world.close()
    assert world.hops[0].status()["counts"]["batches handed"] == 1
    assert world.status()["state"] == "handed"


def test_counts_before_and_after_a_small_batch_differ_by_no_size_of_it() -> None:
    """The counts of a shuffler whose small batch had 3 reports are those of one whose small batch had 7."""
    seen: list[Any] = []
    for few in (3, 7):
        world = ShuffleWorld()
        world.step(["dark"] * few)
        seen.append(world.hops[0].status())
        world.finish()
    assert seen[0] == seen[1]
    assert seen[0]["counts"] == {"batches dropped": 1}


def test_an_ask_of_a_tiny_arc_is_refused_by_shufflers() -> None:
    world = ShuffleWorld()
    (opened,) = world.collector.board.open(world.collection.collection_id, world.clock.now())
    world.send(world.entries(["dark"] * 30))
    assert world.collection.minimum_arc > 1
    opened.ask = replace(opened.ask, cohort=Arc(5, 1))
    world.close()
    assert world.status()["state"] == "dropped"
    assert "arc" in world.status()["note"]


@pytest.mark.parametrize("given", [{"fakes": 10**6}, {"least": 10**7}, {"fakes": 2**39}, {"fakes": 340_000}])
def test_a_batch_that_could_never_be_handed_on_is_not_asked_for(given: dict[str, Any]) -> None:
    """Nor can a collector make shufflers draw fakes without end."""
    with pytest.raises(HubbubError, match=r"least|fakes"):
        ShuffleWorld(questions={"popular": {**POPULAR, "mechanism": "OLH"}}, **given)


def test_a_key_that_hides_nothing_is_refused() -> None:
    with pytest.raises(InvalidValue, match="public keys"):
        wrap(b"report", [bytes(32)], "batch")
