"""A collection whose reports are shuffled, from devices to the release."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from hubbub import GRR
from hubbub.collection import ManualClock
from hubbub.collection.shuffle_route import layer_name
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Sketch
from hubbub.dashboard.privacy import privacy_page
from hubbub.dashboard.reader import Reader
from hubbub.service.http.service import Service
from hubbub.shuffle.onion import OnionKey, peel
from hubbub.shuffler.intake import take_entries
from hubbub.shuffler.store import ShufflerStore
from hubbub.wire.batches import decode_shuffled
from hubbub.wire.upload import UPLOAD_TYPE, encode_upload
from tests.shared.in_process import rows_in
from tests.shuffler.shuffle_world import HOUR, PEOPLE, ShuffleWorld


@pytest.fixture
def world() -> ShuffleWorld:
    return ShuffleWorld()


def test_devices_to_release(world: ShuffleWorld, tmp_path: Path) -> None:
    """Real clients seal, pay and send to the first shuffler; the collector counts them once, without ids."""
    devices = [world.device(tmp_path / str(number)) for number in range(22)]
    for number, device in enumerate(devices):
        device.record("theme", "dark" if number % 4 else "light")
        assert (device.tick(), device.upload()) == (1, 1)
        assert device.status().spent == 2 * 10**12  # the local epsilon, whatever is shuffled
    world.close()
    assert world.released()["n"] == len(devices)
    batch = world.stored()
    assert (batch.n, batch.fakes, batch.unreadable, batch.repeated) == (32, 10, 0, 0)
    counts = {outcome: count for (_, outcome), count in world.collector.counts().items() if count}
    assert counts == {"accepted": 32}
    assert not rows_in(world.store, "SELECT * FROM id_pages")
    for device in devices:
        assert device.status().counts == {"sent": 1}
        device.close()


def test_fakes_are_taken_off_and_their_variance_is_told() -> None:
    """Nine in ten are dark, and half of the batch is fake: the interval of the released share holds the truth."""
    world = ShuffleWorld(fakes=300)
    world.step(["dark"] * 540 + ["light"] * 60)
    payload = world.released()
    value, variance = np.array(payload["value"]), np.array(payload["variance"])
    assert payload["n"] == 600
    truth = np.array([0.1, 0.9, 0.0])
    assert np.all(np.abs(value - truth) < 4.5 * np.sqrt(variance))  # fixed seed; by chance below 1e-4
    ((ask, _),) = world.store.shuffled_batches(world.collection.collection_id, "popular", 1)
    sketch, grr = Sketch.from_bytes(ask.sketch), GRR(epsilon=2.0, domain=3)
    naive = grr.estimate(sketch.with_fakes(0))  # a planted bug: fakes are taken for people's reports
    assert np.any(np.abs(naive.value - truth) > 4.5 * np.sqrt(naive.variance))
    without = ShuffleWorld(fakes=0)
    without.step(["dark"] * 540 + ["light"] * 60)
    plain = np.array(without.released()["variance"])
    assert np.all(variance > 1.3 * plain)


def test_direct_uploads_are_refused(world: ShuffleWorld) -> None:
    frame = encode_upload("survey", 1, world.entries(["dark"]), world.size)
    response = world.to("collector").request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, frame)
    assert response.status == 403
    assert b"not_shuffled" in response.body


def test_exactly_once_at_the_first_hop(world: ShuffleWorld) -> None:
    """The same bytes again are acknowledged and counted once; other bytes under an id are refused."""
    entries = world.entries(PEOPLE)
    world.send(entries)
    again = world.send(entries[:3])
    assert [receipt["duplicates"] for receipt in again] == [1, 1, 1]
    other = world.entries(["light"])[0]
    (receipt,) = world.send([msgspec.structs.replace(other, report_id=entries[0].report_id)])
    assert receipt["rejected"][0]["reason"] == "replay"
    world.close()
    assert world.send(entries[:1])[0]["duplicates"] == 1  # a retry after the close is known, too
    (late,) = world.send([msgspec.structs.replace(other, report_id=b"l" * 16)])
    assert late["rejected"][0]["reason"] == "late"
    assert world.released()["n"] == len(PEOPLE)


def test_a_small_batch_is_never_handed_on(world: ShuffleWorld) -> None:
    world.step(PEOPLE[:19])
    row = world.finish()
    assert row.withheld == "0 reports; at least 20 are needed"
    assert not [path for who, _, path, _ in world.seen if path == "/v1/shuffled"]
    batch = world.status()
    assert batch["state"] == "dropped"
    assert "too few reports" in batch["note"]
    assert "19" not in json.dumps(world.hops[0].status())  # which anyone may read
    assert world.stores[0].reports(batch["batch"]) == []


def rows_of(store: ShufflerStore) -> dict[str, list[tuple[object, ...]]]:
    """Everything in a store, as SQLite has it: with the numbers of rows, by which tables remember an order."""
    tables = [name for (name,) in store.run("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {}
    for table in tables:
        numbered = store.run("SELECT 1 FROM pragma_table_list(?) WHERE wr = 0", table)
        rows[table] = store.run(f"SELECT {'rowid, ' if numbered else ''}* FROM {table}")
    return rows


def test_nobody_keeps_when_or_in_which_order_reports_came(world: ShuffleWorld) -> None:
    """The same reports in another order, at another time, leave the same rows; the collector is given no ids."""
    entries = world.entries(PEOPLE)
    world.send(entries)
    other, later = ShufflerStore(":memory:"), ManualClock(world.clock.now() + 1000.0)
    other.set_note("collection", world.stores[0].note("collection") or "")
    for entry in reversed(entries):
        assert take_entries([entry], world.collection, other, later).accepted == 1
    assert rows_of(other) == rows_of(world.stores[0])
    assert len(rows_of(other)["reports"]) == len(entries)
    world.close()
    assert not any(entry.report_id in world.handed() for entry in entries)


def test_what_is_handed_on_is_in_another_order_than_what_came(world: ShuffleWorld) -> None:
    """Both shufflers permute. That 45 reports keep their order by chance has a probability of 1 in 45!."""
    entries = world.entries(PEOPLE)
    world.send(entries)
    (opened,) = world.collector.board.open(world.collection.collection_id, world.clock.now())
    came = [entry.report for entry in sorted(entries, key=lambda entry: entry.report_id)]
    world.close()
    for place, keys in enumerate(world.keys):
        batch = decode_shuffled(world.handed(world.urls[1] if place == 0 else "collector"))
        inside = peel(came, keys.encryption, layer_name(batch.name, opened.ask), place=place).inside
        handed = [onion for onion in batch.onions if onion in set(inside)]
        assert sorted(handed) == sorted(inside)  # every report of a person is handed on
        assert handed != inside
        came = batch.onions


def test_a_step_after_another(world: ShuffleWorld) -> None:
    for step in (7, 8):
        world.clock.set(step * HOUR + 60.0)
        world.collector.tick()
        world.step()
        assert world.released()["n"] == len(PEOPLE)
    assert [row.step for row in world.collector.releases("survey", "popular", first=0, last=99, most=9)] == [7, 8]


def test_a_collector_that_begins_again_knows_what_it_took(world: ShuffleWorld) -> None:
    world.step()
    body = world.handed()
    world.collector = world.collect()
    again = world.hand("collector", body)
    assert (again.status, json.loads(again.body)["accepted"]) == (200, len(PEOPLE) + 10)
    assert world.released()["n"] == len(PEOPLE)


def test_the_privacy_page_and_the_api_tell_of_actual_batches(world: ShuffleWorld) -> None:
    """Local, central and collusion epsilons of the latest batch, and its numbers."""
    world.step()
    reader = Reader(Service(world.collector))
    told = reader.shuffled("survey").questions["popular"]
    assert told.batches[0].people == len(PEOPLE)
    assert [row.who for row in told.latest][-1] == "the collector and all shufflers"
    alone, but_one, others, but_others, everyone = (row.epsilon for row in told.latest)
    assert alone < but_one < but_others < everyone == 2.0
    assert alone < others < everyone
    assert all(now.epsilon <= least.epsilon for now, least in zip(told.latest, told.smallest, strict=True))
    page = str(privacy_page(reader, world.collection))
    assert "Who must work together to see what" in page
    assert "pass 2 shufflers" in page


def test_a_collector_that_cannot_open_reports_does_not_begin(world: ShuffleWorld) -> None:
    """Its key must be the one that devices encrypt to: else a whole step would be lost before anyone knew."""
    for key in (None, OnionKey.generate()):
        with pytest.raises(InvalidValue, match="collector_key of survey"):
            world.collect(onion_key=key)
