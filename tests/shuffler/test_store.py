"""The store of a shuffler: formats, one holder, deletion; clocks that jump, and how much is taken."""

import json
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hubbub.collection import shuffle_route
from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import UnknownFormat
from hubbub.service.base.limits import Ceilings, Limits
from hubbub.service.store import open_store
from hubbub.shuffler.store import ShufflerStore
from hubbub.wire.batches import ShuffledBatch, decode_shuffled, encode_shuffled
from hubbub.wire.upload import UPLOAD_TYPE, encode_upload
from tests.shuffler.shuffle_world import HOUR, PEOPLE, ShuffleWorld

GOLDEN = Path(__file__).parents[1] / "golden"
NAME, ANSWER = "survey:1:popular:0:7:1:0", AnswerName("popular", 0, 7, 1, 0)


def gathering(path: Path, *incoming: bytes) -> ShufflerStore:
    """A store in which a batch has begun."""
    store = ShufflerStore(path)
    with store.transaction():
        store.begin(NAME, 1, ANSWER, 28800.0, *incoming)
    return store


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("shuffler-*")), ids=lambda path: path.name)
def test_every_format_is_read(tmp_path: Path, folder: Path) -> None:
    shutil.copy(folder / "shuffler.db", tmp_path)
    expected = json.loads((folder / "expected.json").read_text())
    store = ShufflerStore(tmp_path / "shuffler.db")
    rows = [[row.name, row.state, row.note, (store.outgoing(row.name) or b"").hex()] for row in store.batches()]
    assert rows == expected["batches"]
    assert [onion.hex() for _, onion in store.reports(NAME)] == expected["onions"]
    assert store.counts() == expected["counts"]
    store.close()


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    ShufflerStore(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    database.close()
    with pytest.raises(UnknownFormat):
        ShufflerStore(tmp_path / "a.db")


def test_one_program_holds_it(tmp_path: Path) -> None:
    store = ShufflerStore(tmp_path / "a.db")
    with pytest.raises(InvalidValue, match=r"no other program holds.*locked"):
        ShufflerStore(tmp_path / "a.db", timeout=0.0)
    store.close()


def test_nothing_is_left_of_reports_that_were_handed_on(tmp_path: Path) -> None:
    """Neither in the file nor in its log: what is deleted is overwritten."""
    path, onion = tmp_path / "a.db", b"a report that nobody should find" * 20
    store = gathering(path)
    with store.transaction():
        store.add(NAME, b"i" * 16, onion)

    def rows() -> bool:
        return any(b"nobody should find" in file.read_bytes() for file in tmp_path.iterdir())

    assert rows()
    store.end(NAME, "handed", "")
    assert not rows()
    assert store.known(NAME, b"i" * 16) is not None  # a retry is still known
    store.forget([NAME])
    assert store.known(NAME, b"i" * 16) is None
    store.close()


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = gathering(path)
    assert {oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {"0o600"}
    store.close()


def test_a_file_that_is_damaged_or_no_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("a.db")  # errors shorten a long name
    gathering(path, random.Random(1).randbytes(50_000)).close()
    content = path.read_bytes()
    # But for the last page, which has the end of the batch: reports are sealed, and a changed one counts as unreadable.
    pages = [content[:at] + bytes(4096) + content[at + 4096 :] for at in range(0, len(content) - 4096, 4096)]
    for damaged in (*pages, content[:-4096], b"no database" * 1000):
        path.write_bytes(damaged)
        with pytest.raises(InvalidValue, match=r"store: got .*a\.db.*(damaged|malformed|not a database)"):
            ShufflerStore(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidValue, match=r"store: got .*a\.db"):
        ShufflerStore(path)


def reasons(told: list[dict[str, Any]]) -> list[str]:
    return [rejected["reason"] for answer in told for rejected in answer["rejected"]]


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
    monkeypatch.setattr(shuffle_route, "MOST_BATCH_BYTES", room * len(first.report))
    assert reasons(world.send([first, second, third])) == ["over_ceiling"]


def test_a_shuffler_takes_one_batch_of_a_name() -> None:
    world = ShuffleWorld()
    world.step()
    body = world.handed(world.urls[1])
    batch = decode_shuffled(body)
    before = ShuffledBatch(batch.collection, batch.version, batch.answer, [], batch.onions[batch.fakes :])
    signing = world.keys[0].signing.private
    other = before.stated(batch.onions[::-1], signing, unreadable=0, repeated=0, fakes=batch.fakes)
    assert world.hand(world.urls[1], encode_shuffled(other)).status == 409
    assert world.hand(world.urls[1], body).status == 200


def test_devices_send_to_the_first_shuffler_and_batches_go_to_the_others() -> None:
    world = ShuffleWorld()
    entries = world.entries(PEOPLE)
    frame = encode_upload("survey", 1, entries[:1], world.size)
    assert world.to(world.urls[1]).request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, frame).status == 404
    assert world.stores[1].batches() == []
    onions = [entry.report for entry in entries]
    batch = encode_shuffled(ShuffledBatch("survey", 1, entries[0].name, [], onions))  # reports without ids
    world.clock.set(8 * HOUR + 1)
    assert world.hand(world.urls[0], batch).status == 400
    assert world.stores[0].batches() == []


def test_the_collector_takes_a_batch_in_its_time_and_while_there_is_room() -> None:
    world = ShuffleWorld()
    world.step()
    body = world.handed()

    def begin(limits: Limits | None = None) -> None:
        """A collector that has not seen the batch takes the place of the one that has."""
        world.clock.set(7 * HOUR + 60)
        world.store = open_store("sqlite:///:memory:")
        world.collector = world.collect(limits=limits)
        world.collector.tick()

    begin()
    (ask,) = world.collector.board.open(world.collection.collection_id, world.clock.now())
    for now, refused in ((ask.opens - 1, 425), (ask.until, 410)):
        world.clock.set(now)
        assert world.hand("collector", body).status == refused
    world.clock.set(ask.until - 1)
    assert world.hand("collector", body).status == 200
    begin(Limits(ceilings=Ceilings(ask=len(PEOPLE))))
    assert world.hand("collector", body).status == 429  # there are fakes too
