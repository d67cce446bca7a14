"""A device whose collection divides reports into shares: what it sends to each shuffler, and when an answer is done."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubbub import GRR, OUE, SOLH, Random
from hubbub.authoring import check, promise
from hubbub.authoring.coalitions import coalitions_of
from hubbub.authoring.toml import load_collection, read_collection
from hubbub.client import Client, Response, Unreachable
from hubbub.collection import ManualClock, SignedCollection
from hubbub.collection.safety import UnsafeCollection
from hubbub.collection.shuffle_route import LAYER_BYTES, HomomorphicKey, ObliviousRoute, batch_name, layer_name
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
from hubbub.shuffle.device_shares import encrypt, read_plain_share
from hubbub.shuffle.onion import OnionKey, peel
from hubbub.shuffle.report_numbers import from_numbers, to_numbers
from hubbub.shuffler.config import ShufflerKeys
from hubbub.wire.upload import Upload, decode_upload
from tests.shared.dgk_keys import homomorphic_key, private_key
from tests.shared.in_process import KEYS, InProcess

SHUFFLERS = [ShufflerKeys.generate() for _ in range(3)]
TEXT = """
name = "survey"
version = 1
title = "A survey"
trust = "oblivious"

[schedule]
step = "1h"
lateness = "10m"

[privacy]
user = 100.0
minimum_batch = 20

[fields.theme]
kind = "ordinal"
size = 4

[questions.popular]
kind = "histogram"
field = "theme"
epsilon = 2.0
mechanism = "SOLH"

[shuffle]
collector_key = "{collector}"
delta = 1e-6
least = 1000
fakes = 200

[shuffle.homomorphic_key]
modulus = "{key.modulus}"
g = "{key.g}"
h = "{key.h}"
subgroup_bits = {key.subgroup_bits}
""" + "".join(
    f'[[shuffle.shufflers]]\nurl = "http://shuffler-{at}.example"\n'
    + "".join(f'{name} = "{key}"\n' for name, key in keys.public().items())
    for at, keys in enumerate(SHUFFLERS)
)


def text_of(old: str = "", new: str = "") -> str:
    text = TEXT.format(collector=OnionKey(b"c" * 32).public.hex(), key=homomorphic_key())
    assert old in text
    return text.replace(old, new, 1)


class Shufflers:
    """What shufflers at three addresses are sent. Those in `down` do not answer; others may refuse with a reason."""

    def __init__(self) -> None:
        self.frames: dict[str, list[bytes]] = {}
        self.down: set[str] = set()
        self.reasons: dict[str, str] = {}

    def connect(self, url: str) -> "Shufflers._To":
        return self._To(self, url)

    class _To:
        def __init__(self, shufflers: "Shufflers", url: str) -> None:
            self._shufflers, self._url = shufflers, url

        def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
            assert (method, path) == ("POST", "/v1/reports")
            assert body is not None
            self._shufflers.frames.setdefault(self._url, []).append(body)
            if self._url in self._shufflers.down:
                raise Unreachable("no answer")
            reason = self._shufflers.reasons.get(self._url)
            (entry,) = decode_upload(body).entries
            rejected = f'{{"id": "{entry.report_id.hex()}", "reason": "{reason}"}}' if reason else ""
            return Response(200, {}, f'{{"accepted": 1, "duplicates": 0, "rejected": [{rejected}]}}'.encode())


class World:
    """A collector, one device, and three shufflers that only take what they are sent."""

    def __init__(self, folder: Path, collection: Collection) -> None:
        self.collection, self.clock = collection, ManualClock(collection.opens(2) + 60)
        options = {"onion_key": OnionKey(b"c" * 32), "homomorphic_key": private_key()}
        self.server = InProcess(collection, self.clock, folder / "c.db", **options)
        self.server.collector.tick()
        self.shufflers, self.folder = Shufflers(), folder
        self.device = self.start()

    def start(self) -> Client:
        return Client(
            self.folder / "device",
            self.server,
            KEYS.public,
            clock=self.clock,
            monotonic=self.clock.now,
            jitter=0.0,
            collection=self.collection.name,
            connect=self.shufflers.connect,
        )

    def sent(self) -> list[list[Upload]]:
        """What each shuffler was sent, upload after upload."""
        urls = [f"http://shuffler-{at}.example" for at in range(3)]
        return [[decode_upload(body) for body in self.shufflers.frames.get(url, [])] for url in urls]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, load_collection(text_of()))


def report_of(world: World, shares: list[bytes], keys: HomomorphicKey) -> np.ndarray:
    """What the shares of one report add up to."""
    total = sum(read_plain_share(share, keys) for share in shares[:-1])
    (last,) = private_key().messages([int.from_bytes(shares[-1], "big")])
    assert last is not None
    return np.array([(total + last) % (1 << 64)], dtype=np.uint64)


def test_each_shuffler_gets_a_share_and_all_together_the_report(world: World) -> None:
    world.device.record("theme", 3)
    assert (world.device.tick(), world.device.upload()) == (1, 1)
    sent = world.sent()
    assert [len(uploads) for uploads in sent] == [1, 1, 1]
    entries = [uploads[0].entries[0] for uploads in sent]
    assert len({entry.report_id for entry in entries}) == 1
    assert {len(entry.report) for entry in entries} == {homomorphic_key().ciphertext_bytes + LAYER_BYTES}
    assert {len(bodies[0]) for bodies in world.shufflers.frames.values()} == {world.collection.frame_bytes}
    ask = next(world.collection.protocol("popular"))
    assert isinstance(ask, Ask)
    batch = layer_name(batch_name("survey", 1, entries[0].name), ask)
    shares = [
        peel([entries[at].report], keys.encryption, batch, place=at).inside[0] for at, keys in enumerate(SHUFFLERS)
    ]
    for at, keys in enumerate(SHUFFLERS):  # nobody else opens it, and nobody as another's share or of another batch
        assert peel([entries[at - 1].report], keys.encryption, batch, place=at).unreadable == 1
        assert peel([entries[at].report], keys.encryption, batch + "0", place=at).unreadable == 1
    mechanism = ask.mechanism
    assert isinstance(mechanism, SOLH)
    reports = from_numbers(mechanism, report_of(world, shares, homomorphic_key()))
    mechanism.accumulate(reports)  # it is a report


def test_an_answer_is_done_when_all_have_it_and_a_retry_sends_the_same_bytes(world: World) -> None:
    world.device.record("theme", 3)
    world.device.tick()
    world.shufflers.down = {"http://shuffler-1.example"}
    assert world.device.upload() == 0
    assert [len(uploads) for uploads in world.sent()] == [1, 1, 1]
    world.clock.set(world.clock.now() + 100)
    assert world.device.upload() == 0
    assert [len(uploads) for uploads in world.sent()] == [1, 2, 1]  # those that have it are not asked again
    world.device.close()
    world.device = world.start()  # after a restart nobody knows who had it: they acknowledge again
    world.shufflers.down = set()
    assert world.device.upload() == 1
    for uploads in world.sent():
        assert len({upload.entries[0].report for upload in uploads}) == 1
    assert world.device.upload() == 0


def test_a_share_that_one_shuffler_refuses_ends_the_answer(world: World) -> None:
    world.device.record("theme", 3)
    world.device.tick()
    world.shufflers.reasons = {"http://shuffler-2.example": "late"}
    assert world.device.upload() == 0
    frames = Counter({url: len(bodies) for url, bodies in world.shufflers.frames.items()})
    world.clock.set(world.clock.now() + 100)
    assert world.device.upload() == 0
    assert Counter({url: len(bodies) for url, bodies in world.shufflers.frames.items()}) == frames


def test_a_mechanism_without_numbers_is_refused_by_check_and_by_devices(tmp_path: Path) -> None:
    collection = read_collection(text_of('mechanism = "SOLH"', 'mechanism = "OUE"').replace("fakes = 200", "fakes = 0"))
    errors = [finding for finding in check(collection) if finding.level == "error"]
    assert [finding.where for finding in errors] == ["questions.popular"]
    assert "GRR and SOLH" in errors[0].text
    with pytest.raises(UnsafeCollection):
        load_collection(text_of('mechanism = "SOLH"', 'mechanism = "OUE"'))
    world = World(tmp_path, collection)
    world.device.record("theme", 3)
    assert (world.device.tick(), world.device.upload()) == (0, 0)
    assert world.device.status().spent == 0


@pytest.mark.parametrize("mechanism", [SOLH(epsilon=2.0, domain=4, buckets=8), GRR(epsilon=2.0, domain=5)])
def test_reports_and_numbers(mechanism: SOLH | GRR) -> None:
    reports = mechanism.randomize([0, 1, 2, 3] * 50, Random(seed=1))
    numbers = to_numbers(mechanism, reports, Random(seed=2))
    assert from_numbers(mechanism, numbers).to_bare() == reports.to_bare()


def test_encryption_without_a_library_is_that_of_the_server() -> None:
    for message in (0, 1, 2**63, 2**64 - 1):
        ciphers = [int.from_bytes(encrypt(message, homomorphic_key()), "big") for _ in range(2)]
        assert private_key().messages(ciphers) == [message, message]
        assert ciphers[0] != ciphers[1]


@pytest.mark.parametrize("share", [b"", b"\1" * 256, bytes(255), bytes(8) + b"\1" + bytes(247)])
def test_what_is_no_share_in_the_clear_is_refused(share: bytes) -> None:
    with pytest.raises(DecodeError, match="share"):
        read_plain_share(share, homomorphic_key())


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('trust = "oblivious"', 'trust = "shuffle"', "shuffle"),
        ('trust = "oblivious"', 'trust = "local"', "shuffle"),
        ("subgroup_bits = 256", "subgroup_bits = 12", "subgroup_bits"),
        ('modulus = "', 'modulus = "2', "g"),
        ('g = "', 'g = "0x', "g"),
        ("fakes = 200", "fakes = 2000000", "fakes"),
    ],
)
def test_a_route_that_is_none_is_refused(old: str, new: str, where: str) -> None:
    if where == "g" and old.startswith("modulus"):
        new = 'modulus = "1" # "'
        where = "modulus"
    with pytest.raises(InvalidValue, match=where):
        read_collection(text_of(old, new))


def test_two_shufflers_are_too_few() -> None:
    route = load_collection(text_of()).shuffle
    assert isinstance(route, ObliviousRoute)
    with pytest.raises(InvalidValue, match="3 to 7"):
        replace(route, shufflers=route.shufflers[:2])


def test_the_route_is_signed_and_read_back() -> None:
    collection = load_collection(text_of())
    assert SignedCollection.from_spec(collection.spec()).shuffle == collection.shuffle


def test_every_coalition_has_its_number() -> None:
    collection = load_collection(text_of())
    table = {coalition.who: coalition for coalition in coalitions_of(collection, "popular")}
    alone, few = table["the collector"], table["the collector and one of the shufflers"]
    assert alone.epsilon == few.epsilon < table["the collector and everyone else who takes part"].epsilon < 2
    for who in ("half of the shufflers or more", "one shuffler that marks a report which it wants to trace"):
        assert math.isclose(table[f"the collector and {who}"].epsilon, 2.0, rel_tol=1e-9)
    assert table["all shufflers, without the collector"].epsilon == 0
    text = promise(collection)
    assert all(coalition.text() in text for coalition in table.values())


def test_oue_reports_are_no_numbers() -> None:
    mechanism = OUE(epsilon=1.0, domain=4)
    reports = mechanism.randomize([1], Random(seed=1))
    with pytest.raises(InvalidValue, match="SOLH or GRR"):
        to_numbers(mechanism, reports, Random(seed=1))
