"""What a report is called: by names that every device knows, so that nothing on the wire can be a device's own."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub import OLH, Random
from hubbub.authoring import load_collection
from hubbub.client import Client, Response
from hubbub.collection import ManualClock, seal
from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Ask
from hubbub.questions.collection import Collection
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.open_asks import Board, OpenAsk, signed_asks
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.upload import UPLOAD_TYPE, Entry, decode_upload, encode_upload
from tests.service.exact_world import EXACT, exact_collection, upload_frame
from tests.service.web import THEMES
from tests.shared.in_process import KEYS, World

ID = b"i" * 16


def two_collections() -> tuple[Collector, list[Collection]]:
    """Two collections on one server, which ask the same of everyone in the same steps."""
    both = [exact_collection(), replace(exact_collection(version=3), name="other")]
    return Collector(both, SqliteStore(":memory:"), clock=ManualClock(1000.0), keys=KEYS), both


def entry(report_id: bytes = ID, **changed: Any) -> Entry:
    name = AnswerName("all", 0, 10, 1, 0)._replace(**changed)
    return Entry(*name, report_id, EXACT.randomize([5], Random(seed=1)).to_bare())


def counted(collector: Collector, collection: Collection) -> int:
    return sum(ask.sketch.n for key, ask in collector.board.asks.items() if key.collection == collection.collection_id)


def test_a_report_for_one_collection_is_not_accepted_by_another():
    """The two have the very same asks: nothing but the name that the report says tells them apart."""
    collector, (first, second) = two_collections()
    keys = [open_ask.key for open_ask in collector.board.asks.values()]
    assert len(keys) == 2
    assert len({key.ask for key in keys}) == 1
    frame = collector.admit(UPLOAD_TYPE, encode_upload("exact", 1, [entry()], first.frame_bytes))
    assert collector.ingest([frame])[0].accepted == 1
    assert (counted(collector, first), counted(collector, second)) == (1, 0)
    # The same id in the other is neither a duplicate nor a replay there: the two know nothing of each other.
    frame = collector.admit(UPLOAD_TYPE, encode_upload("other", 3, [entry()], second.frame_bytes))
    assert collector.ingest([frame])[0].accepted == 1
    assert (counted(collector, first), counted(collector, second)) == (1, 1)


@pytest.mark.parametrize(
    ("name", "version", "reason"),
    [
        ("other", 1, "outdated_version"),
        ("other", 2, "outdated_version"),
        ("other", 4, "unknown_collection"),
        ("exact", 3, "unknown_collection"),
        ("nobody", 1, "unknown_collection"),
    ],
)
def test_a_report_of_another_version_is_refused(name: str, version: int, reason: str):
    collector, (first, second) = two_collections()
    with pytest.raises(RefusedRequest, match=reason):
        collector.admit(UPLOAD_TYPE, encode_upload(name, version, [entry()], first.frame_bytes))
    assert counted(collector, first) + counted(collector, second) == 0


def test_each_round_of_a_step_has_its_own_name():
    world, outcomes = World(exact_collection(adaptive=True), 1000.0), []
    for now in (1000.0, 1049.0, 1060.0):
        for open_ask in world.at(now).open:
            frame = upload_frame(world.collection, open_ask.ask, [ID], [7])
            (receipt,) = world.collector.ingest([frame])
            outcomes.append((str(open_ask.name), receipt.accepted, receipt.duplicates))
    assert outcomes == [("all:0:10:1:0", 1, 0), ("all:0:10:1:0", 0, 1), ("all:0:10:2:0", 1, 0)]
    # The first round is over: its name is known, and late, for as long as the ask is stored.
    late = upload_frame(world.collection, Ask(mechanism=EXACT, step=10, standing=True), [b"j" * 16], [7])
    assert world.collector.ingest([late])[0].rejected == [((b"j" * 16).hex(), "late")]
    assert world.at(1500.0).collector.ingest([late])[0].rejected == [((b"j" * 16).hex(), "late")]


def test_two_asks_of_one_name_cannot_be_open():
    collector, _ = two_collections()
    board, (open_ask, _) = Board(collector.store, Random()), collector.board.asks.values()
    board.add(open_ask)
    other = OpenAsk(**{**vars(open_ask), "key": open_ask.key._replace(ask="f" * 32)})
    with pytest.raises(InvalidValue, match="a name that no other ask has"):
        board.add(other)
    assert list(board.asks) == [open_ask.key]
    board.drop(open_ask.key)
    assert (board.asks, board.find(open_ask.place)) == ({}, None)


# -- what a server could vary from device to device ----------------------------------------------------------------


class Varied:
    """A server that gives a device an asks document of its own, and keeps what the device sends."""

    def __init__(self, collection: Collection, **change: Any) -> None:
        self.collection, self.sent = collection, list[bytes]()
        ask = next(collection.protocol("popular"))
        assert isinstance(ask, Ask)
        self.ask = replace(ask, step=10, **change)
        (open_ask,) = World(collection, 1000.0).open
        published = OpenAsk(**{**vars(open_ask), "ask": self.ask})
        self.asks = signed_asks(collection, [published], step=10, until=1100.0, private=KEYS.private).body

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        if method == "POST":
            assert body is not None
            self.sent.append(body)
            return Response(200, {}, b'{"accepted": 1, "duplicates": 0, "rejected": []}')
        sealed = json.dumps(seal(self.collection.spec(), KEYS.private)).encode()
        return Response(200, {}, self.asks if path.endswith("/asks") else sealed)


@pytest.mark.parametrize("form", ["msgpack", "json"])
def test_nothing_that_a_device_sends_names_the_ask_it_was_given(form: str, tmp_path: Path):
    """Two devices alike, given different asks of one name: the bytes they send are the same at every position."""
    one_question = THEMES[: THEMES.index("[questions.old]")]
    collection = load_collection(one_question)
    servers = [
        Varied(collection, cohort=EVERYONE, standing=True),
        Varied(collection, cohort=EVERYONE, standing=False),
        Varied(collection, cohort=Arc(5, CIRCLE - 1), standing=False),
        Varied(collection, cohort=Arc(CIRCLE // 2, CIRCLE), standing=True),
    ]
    assert len({server.ask.ask_id for server in servers}) == len(servers)
    clock = ManualClock(1000.0)
    options: dict[str, Any] = {"collection": "themes", "clock": clock, "monotonic": clock.now, "jitter": 0.0}
    for number, server in enumerate(servers):
        place = tmp_path / str(number)
        with Client(place, server, KEYS.public, rng=Random(seed=3), form=form, **options) as client:
            client.record("theme", "dark")
            assert client.tick() == 1
            assert client.upload() == 1
    (sent,), *others = (server.sent for server in servers)
    for (other,) in others:
        assert [at for at in range(len(sent)) if sent[at] != other[at]] == []
    hashes = [collection.collection_id] + [server.ask.ask_id for server in servers]
    hashes += [server.ask.mechanism.spec_id for server in servers]
    assert not any(spelt in sent for known in hashes for spelt in (known.encode(), bytes.fromhex(known)))


def test_reports_of_different_epsilons_differ_in_their_values_alone():
    """What a mechanism is, which an ask may choose from a signed set, is not on the wire either."""
    name, frames = AnswerName("popular", 0, 10, 1, 0), []
    for epsilon in (0.25, 0.5, 1.0, 2.0):
        mechanism = OLH(epsilon=epsilon, domain=1000)
        report = mechanism.randomize([7], Random(seed=1)).to_bare()
        frames.append(encode_upload("themes", 2, [Entry(*name, ID, report)], 1024))
    first = frames[0]
    begins = first.index(ID) + len(ID)
    ends = begins + 2 + len(decode_upload(first).entries[0].report)
    for frame in frames[1:]:
        assert first[:begins] + first[ends:] == frame[:begins] + frame[ends:]
