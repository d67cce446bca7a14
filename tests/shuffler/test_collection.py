"""A collection whose reports are shuffled, from devices to the release."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hubbub import GRR
from hubbub.collection import ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Sketch
from hubbub.service.collector.collector import Collector
from hubbub.shuffle.onion import OnionKey
from hubbub.shuffler.hop import take_entries
from hubbub.shuffler.store import ShufflerStore
from tests.shuffler.shuffle_world import HOUR, ShuffleWorld

PEOPLE = 40


@pytest.fixture
def world() -> ShuffleWorld:
    return ShuffleWorld()


def values(n: int = PEOPLE) -> list[str]:
    return ["dark" if number % 4 else "light" for number in range(n)]


def test_devices_to_release(tmp_path: Path) -> None:
    """Real clients seal, pay and send to the first shuffler; the collector counts them once, without ids."""
    world = ShuffleWorld()
    devices = [world.device(tmp_path / str(number)) for number in range(22)]
    for number, device in enumerate(devices):
        device.record("theme", "dark" if number % 4 else "light")
        assert (device.tick(), device.upload()) == (1, 1)
        assert device.status().spent == 2 * 10**12  # the local epsilon, whatever is shuffled
    world.close()
    row = world.finish()
    payload = json.loads(row.payload)
    assert row.withheld is None
    assert payload["n"] == len(devices)
    ((_, batch),) = world.store.shuffled_batches(world.collection.collection_id, "popular", 9)
    assert (batch.n, batch.fakes, batch.unreadable, batch.repeated) == (32, 10, 0, 0)
    counts = {outcome: count for (_, outcome), count in world.collector.counts().items() if count}
    assert counts == {"accepted": 32}
    assert not world.store._read("SELECT * FROM id_pages")
    for device in devices:
        assert device.status().counts == {"sent": 1}
        device.close()


def test_fakes_are_taken_off_and_their_variance_is_told(world: ShuffleWorld) -> None:
    """Nine in ten are dark, and half of the batch is fake: the interval of the released share holds the truth."""
    world = ShuffleWorld(fakes=300)
    world.send(world.entries(["dark"] * 540 + ["light"] * 60))
    world.close()
    payload = json.loads(world.finish().payload)
    value, variance = np.array(payload["value"]), np.array(payload["variance"])
    assert payload["n"] == 600
    truth = np.array([0.1, 0.9, 0.0])
    assert np.all(np.abs(value - truth) < 4.5 * np.sqrt(variance))  # fixed seed; by chance below 1e-4
    ((ask, _),) = world.store.shuffled_batches(world.collection.collection_id, "popular", 1)
    sketch, grr = Sketch.from_bytes(ask.sketch), GRR(epsilon=2.0, domain=3)
    naive = grr.estimate(sketch.with_fakes(0))  # a planted bug: fakes are taken for people's reports
    assert np.any(np.abs(naive.value - truth) > 4.5 * np.sqrt(naive.variance))
    without = ShuffleWorld(fakes=0)
    without.send(without.entries(["dark"] * 540 + ["light"] * 60))
    without.close()
    plain = np.array(json.loads(without.finish().payload)["variance"])
    assert np.all(variance > 1.3 * plain)


def test_direct_uploads_are_refused(world: ShuffleWorld) -> None:
    from hubbub.wire.upload import UPLOAD_TYPE, encode_upload

    frame = encode_upload("survey", 1, world.entries(["dark"]), world.size)
    response = world.to("collector").request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, frame)
    assert response.status == 403
    assert b"not_shuffled" in response.body


def test_exactly_once_at_the_first_hop(world: ShuffleWorld) -> None:
    """The same bytes again are acknowledged and counted once; other bytes under an id are refused."""
    entries = world.entries(values())
    world.send(entries)
    again = world.send(entries[:3])
    assert [receipt["duplicates"] for receipt in again] == [1, 1, 1]
    other = world.entries(["light"])[0]
    import msgspec

    (receipt,) = world.send([msgspec.structs.replace(other, report_id=entries[0].report_id)])
    assert receipt["rejected"][0]["reason"] == "replay"
    world.close()
    assert world.send(entries[:1])[0]["duplicates"] == 1  # a retry after the close is known, too
    (late,) = world.send([msgspec.structs.replace(other, report_id=b"l" * 16)])
    assert late["rejected"][0]["reason"] == "late"
    assert json.loads(world.finish().payload)["n"] == PEOPLE


def test_a_small_batch_is_never_handed_on(world: ShuffleWorld) -> None:
    world.send(world.entries(values(19)))
    world.close()
    row = world.finish()
    assert row.withheld == "0 reports; at least 20 are needed"
    assert not [path for who, _, path, _ in world.seen if path == "/v1/shuffled"]
    (batch,) = world.hops[0].status()["batches"]  # type: ignore[misc]
    assert batch["state"] == "dropped"  # type: ignore[index]
    assert "too few reports" in batch["note"]  # type: ignore[index]
    assert "19" not in json.dumps(world.hops[0].status())  # which anyone may read
    assert world.stores[0].onions(batch["batch"]) == []  # type: ignore[index]


def rows_of(store: ShufflerStore) -> dict[str, list[tuple[object, ...]]]:
    """Everything in a store, as SQLite has it: with the numbers of rows, by which tables remember an order."""
    tables = [name for (name,) in store._run("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {}
    for table in tables:
        numbered = store._run("SELECT 1 FROM pragma_table_list(?) WHERE wr = 0", table)
        rows[table] = store._run(f"SELECT {'rowid, ' if numbered else ''}* FROM {table}")
    return rows


def test_nobody_keeps_when_or_in_which_order_reports_came(world: ShuffleWorld) -> None:
    """The same reports in another order, at another time, leave the same rows; the collector is given no ids."""
    entries = world.entries(values())
    world.send(entries)
    other, later = ShufflerStore(":memory:"), ManualClock(world.clock.now() + 1000.0)
    other.set_note("collection", world.stores[0].note("collection") or "")
    for entry in reversed(entries):
        assert take_entries([entry], world.collection, other, later).accepted == 1
    assert rows_of(other) == rows_of(world.stores[0])
    assert len(rows_of(other)["reports"]) == len(entries)
    world.close()
    posted = [body for who, method, path, body in world.seen if path == "/v1/shuffled" and who == "collector"]
    assert len(posted) == 1
    assert posted[0] is not None
    assert not any(entry.report_id in posted[0] for entry in entries)


def test_what_is_handed_on_is_in_another_order_than_what_came(world: ShuffleWorld) -> None:
    """Both shufflers permute. That 45 reports keep their order by chance has a probability of 1 in 45!."""
    from hubbub.collection.shuffle_route import layer_name
    from hubbub.shuffle.onion import peel
    from hubbub.wire.batches import decode_shuffled

    entries = world.entries(values())
    world.send(entries)
    (opened,) = world.collector.board.open(world.collection.collection_id, world.clock.now())
    came = [entry.report for entry in sorted(entries, key=lambda entry: entry.report_id)]
    world.close()
    for place, keys in enumerate(world.keys):
        to = world.urls[1] if place == 0 else "collector"
        (body,) = [body for who, _, path, body in world.seen if path == "/v1/shuffled" and who == to and body]
        batch = decode_shuffled(body)
        inside = peel(came, keys.encryption, layer_name(batch.name, opened.ask), place=place).inside
        handed = [onion for onion in batch.onions if onion in set(inside)]
        assert sorted(handed) == sorted(inside)  # every report of a person is handed on
        assert handed != inside
        came = batch.onions


def test_a_step_after_another(world: ShuffleWorld) -> None:
    for step in (7, 8):
        world.clock.set(step * HOUR + 60.0)
        world.collector.tick()
        world.send(world.entries(values()))
        world.close()
        assert json.loads(world.finish().payload)["n"] == PEOPLE
    assert [row.step for row in world.collector.releases("survey", "popular", first=0, last=99, most=9)] == [7, 8]


def test_a_collector_that_begins_again_knows_what_it_took(world: ShuffleWorld) -> None:
    world.send(world.entries(values()))
    world.close()
    (body,) = [body for who, _, path, body in world.seen if path == "/v1/shuffled" and who == "collector"]
    first = world.collector
    world.collector = world.collect()
    assert world.collector is not first
    again = world.to("collector").request("POST", "/v1/shuffled", {}, body)
    assert (again.status, json.loads(again.body)["accepted"]) == (200, PEOPLE + 10)
    assert json.loads(world.finish().payload)["n"] == PEOPLE


def test_the_privacy_page_and_the_api_tell_of_actual_batches(world: ShuffleWorld) -> None:
    """Local, central and collusion epsilons of the latest batch, and its numbers."""
    from hubbub.dashboard.app import ServiceReader
    from hubbub.dashboard.privacy import privacy_page
    from hubbub.service.http.service import Service

    world.send(world.entries(values()))
    world.close()
    reader = ServiceReader(Service(world.collector))
    page = reader.shuffled("survey").questions["popular"]
    assert page.batches[0].people == PEOPLE
    assert [row.who for row in page.latest][-1] == "the collector and all shufflers"
    alone, but_one, others, but_others, everyone = (row.epsilon for row in page.latest)
    assert alone < but_one < but_others < everyone == 2.0
    assert alone < others < everyone
    assert all(now.epsilon <= least.epsilon for now, least in zip(page.latest, page.smallest, strict=True))
    page = str(privacy_page(reader, world.collection))
    assert "Who must work together to see what" in page
    assert "pass 2 shufflers" in page


def test_a_collector_that_cannot_open_reports_does_not_begin(world: ShuffleWorld) -> None:
    """Its key must be the one that devices encrypt to: else a whole step would be lost before anyone knew."""
    for key in (None, OnionKey.generate()):
        with pytest.raises(InvalidValue, match="collector_key of survey"):
            Collector([world.collection], world.store, clock=world.clock, keys=world.signing, onion_key=key)
