"""A collection whose reports are shuffled: devices, shufflers and a collector in one process, on one clock."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

from hubbub.authoring import load_collection
from hubbub.client import Client, Response, Unreachable
from hubbub.client.upload import sealer_for
from hubbub.collection import Keys, ManualClock
from hubbub.collection.names import AnswerName
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import problem_of
from hubbub.service.store import open_store
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.onion import OnionKey
from hubbub.shuffler.batch_states import HopTransport
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.hop import ShufflerHop
from hubbub.shuffler.store import ShufflerStore
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.shared.asks import randomizer
from tests.shared.small_collections import THEME, collection_text

KEYS = Keys(b"k" * 32)
HOUR = 3600
PEOPLE = ["dark" if number % 4 else "light" for number in range(40)]
"""What people hold, unless a test says otherwise."""
POPULAR = {"kind": "histogram", "field": "theme", "epsilon": 2.0}


class Calling:
    """A transport that is a function, and takes no time."""

    def __init__(self, answer: Callable[[str, str, Mapping[str, str], bytes | None], Response]) -> None:
        self._answer = answer

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None, *, at_most: float = 0.0
    ) -> Response:
        return self._answer(method, path, headers, body)


class ShuffleWorld:
    """Everyone who takes part. `network` may be replaced: it sees every request between them, and may change it."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        shufflers: int = 2,
        now: float = 7 * HOUR + 60.0,
        homomorphic_key: DGKPrivate | None = None,
        **text: Any,
    ) -> None:
        self.rng, self.homomorphic_key = Random(seed=1), homomorphic_key
        self.keys = [ShufflerKeys.generate() for _ in range(shufflers)]
        self.urls = [f"http://shuffler-{number}.example" for number in range(shufflers)]
        self.onion_key = OnionKey.generate()
        self.collection: Collection = load_collection(self.text(**text))
        self.clock = ManualClock(now)
        self.store = open_store("sqlite:///:memory:")
        self.collector = self.collect()
        self.stores = [
            ShufflerStore(":memory:" if folder is None else folder / f"shuffler-{number}.db")
            for number in range(shufflers)
        ]
        self.seen: list[tuple[str, str, str, bytes | None]] = []
        self.tamper: Callable[[str, str, str, bytes | None], bytes | None] = lambda to, method, path, body: body
        self.down: set[str] = set()
        self.collector_answers: Callable[[str, Mapping[str, str], bytes | None], Response] = self._collector
        self.hops: list[Any] = [self.hop(number) for number in range(shufflers)]
        """Shufflers; a test may put others in their place, which have the same methods."""
        for hop in self.hops:
            hop.refresh()

    def text(self, *, least: int = 20, fakes: int = 5, **changes: Any) -> str:
        """The file of the collection."""
        shufflers = [{"url": url, **keys.public()} for url, keys in zip(self.urls, self.keys, strict=True)]
        given: dict[str, Any] = {
            "trust": "shuffle",
            "privacy": {"user": 100.0, "minimum_batch": 20},
            "fields": {"theme": THEME},
            "questions": {"popular": POPULAR},
            "shuffle": {
                "collector_key": self.onion_key.public.hex(),
                "delta": 1e-6,
                "least": least,
                "fakes": fakes,
                "shufflers": shufflers,
            },
        }
        if self.homomorphic_key is not None:
            key = self.homomorphic_key.public
            numbers = {name: f"{getattr(key, name):x}" for name in ("modulus", "g", "h")}
            given["trust"] = "oblivious"
            given["shuffle"]["homomorphic_key"] = {**numbers, "subgroup_bits": key.subgroup_bits}
        return collection_text(**{**given, **changes})

    def collect(self, **options: Any) -> Collector:
        """A collector that begins with the store."""
        given: dict[str, Any] = {"clock": self.clock, "keys": KEYS, "rng": self.rng, "onion_key": self.onion_key}
        given["homomorphic_key"] = self.homomorphic_key
        return Collector([self.collection], self.store, **{**given, **options})

    def hop(self, number: int, collector: HopTransport | None = None, **options: Any) -> ShufflerHop:
        """A shuffler that begins with its store."""
        given: dict[str, Any] = {"clock": self.clock, "connect": self.to, "rng": Random(seed=f"hop {number}")}
        own = "survey", self.keys[number], self.stores[number], collector or self.to("collector"), KEYS.public
        return ShufflerHop(*own, **{**given, **options})

    # -- the network ------------------------------------------------------------------------------------------

    def to(self, who: str) -> Calling:
        """A transport to a shuffler, by its address, or to the collector."""

        def request(method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
            self.seen.append((who, method, path, body))
            if who in self.down:
                raise Unreachable(f"{who} does not answer")
            body = self.tamper(who, method, path, body)
            return self.answer(who, method, path, headers, body)

        return Calling(request)

    def answer(self, who: str, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        try:
            if who == "collector":
                return self.collector_answers(path, headers, body)
            hop = self.hops[self.urls.index(who)]
            assert body is not None
            if path in ("/v1/shuffled", "/v1/shuffling"):
                return _ok(hop.receive(body) if path == "/v1/shuffled" else hop.receive_message(body))
            receipt = hop.take(headers["Content-Type"], body)
            rejected = [{"id": report, "reason": reason} for report, reason in receipt.rejected]
            return _ok({"accepted": receipt.accepted, "duplicates": receipt.duplicates, "rejected": rejected})
        except Unreachable as error:
            return Response(503, {}, json.dumps({"detail": str(error)}).encode())
        except Exception as error:
            problem = problem_of(error)
            return Response(problem.status, {}, problem.body())

    def _collector(self, path: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        collector = self.collector
        if body is not None and path == "/v1/shuffled":
            frame = collector.admit_shuffled(body)
            (receipt,) = collector.ingest([frame])
            if receipt.rejected:
                raise RefusedRequest(receipt.rejected[0][1], receipt.rejected[0][0])
            assert frame.shuffled is not None
            return _ok(asdict(frame.shuffled.receipt()))
        if body is not None:
            collector.admit(headers["Content-Type"], body)
            return _ok({})
        parts = path.split("/")
        if "/models/" in path:
            content = collector.model(parts[3], parts[5])
            return Response(404 if content is None else 200, {}, content or b"")
        if len(parts) == 6:
            document = collector.ask_of(parts[3], AnswerName.read(parts[5]))
            return Response(404, {}, b"{}") if document is None else Response(200, {}, document.body)
        document = (collector.asks if path.endswith("/asks") else collector.specs)[parts[3]]
        return Response(200, {"etag": document.etag}, document.body)

    # -- what happens -----------------------------------------------------------------------------------------

    def device(self, folder: Path, **options: Any) -> Client:
        given = {"clock": self.clock, "monotonic": self.clock.now, "jitter": 0.0, "collection": "survey"}
        return Client(folder, self.to("collector"), KEYS.public, **{"connect": self.to, **given, **options})

    @property
    def answer_name(self) -> AnswerName:
        return AnswerName("popular", 0, int(self.clock.now() // HOUR), 1, 0)

    def entries(self, values: Iterable[str], question: str = "popular") -> list[Entry]:
        """What devices with these values send, each sealed as a device seals it."""
        rounds = self.collector.board.open(self.collection.collection_id, self.clock.now())
        (opened,) = (opened for opened in rounds if opened.name.question == question)
        seal, mechanism = sealer_for(self.collection, self.rng).seal, randomizer(opened.ask)
        made = []
        for value in values:
            code = self.collection.encode("theme", value)
            report = mechanism.randomize([code], self.rng).to_bare()
            report_id = self.rng.bytes(16)
            made.append(Entry(*opened.name, report_id, seal(opened.name, opened.ask, report)))
        return made

    def send(self, entries: Iterable[Entry]) -> list[dict[str, Any]]:
        """Upload entries to the shufflers that devices send to, each in its own frame."""
        assert self.collection.shuffle is not None
        receivers = range(len(self.collection.shuffle.receivers))
        return [self.post(self.frame(entry, place), place) for entry in entries for place in receivers]

    def frame(self, entry: Entry, place: int) -> bytes:
        """The upload of what one shuffler gets of an entry."""
        assert self.collection.shuffle is not None
        size = len(entry.report) // len(self.collection.shuffle.receivers)
        piece = msgspec.structs.replace(entry, report=entry.report[place * size : (place + 1) * size])
        return encode_upload("survey", self.collection.version, [piece], self.size)

    def post(self, frame: bytes, place: int = 0) -> dict[str, Any]:
        response = self.to(self.urls[place]).request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, frame)
        told: dict[str, Any] = {"status": response.status, **json.loads(response.body)}
        return told

    @property
    def size(self) -> int:
        return self.collection.frame_bytes

    def turn(self, step: int = 8) -> None:
        """The time at which the first shuffler takes its turn, after a step."""
        self.clock.set(step * HOUR + self.collection.accepts_for + 1)

    def close(self) -> None:
        """Go to the time at which the first shuffler takes its turn, and let everyone do what is due."""
        self.turn(int(self.clock.now() // HOUR + 1))
        self.tick()

    def step(self, values: Iterable[str] = PEOPLE) -> None:
        """Devices send reports of these values, and everyone does what is due."""
        self.send(self.entries(values))
        self.close()

    def tick(self) -> None:
        for hop in self.hops:
            hop.tick()

    def finish(self) -> Any:
        """Go past the lateness; the last release."""
        self.clock.set((self.clock.now() // HOUR) * HOUR + self.collection.lateness_seconds + 1)
        self.tick()
        self.collector.tick()
        (row,) = self.collector.releases("survey", "popular", first=0, last=1 << 40, most=1)
        return row

    def released(self) -> Any:
        """What the last release says."""
        return json.loads(self.finish().payload)

    # -- what can be seen afterwards --------------------------------------------------------------------------

    def status(self, number: int = 0) -> Any:
        """What a shuffler tells anyone of its one batch."""
        (batch,) = self.hops[number].status()["batches"]
        return batch

    def states(self, number: int = 0) -> list[str]:
        """The states of a shuffler's batches."""
        return [row.state for row in self.stores[number].batches()]

    def handed(self, who: str = "collector") -> bytes:
        """The batch that a party was given."""
        bodies = {body for to, _, path, body in self.seen if to == who and path == "/v1/shuffled"}
        (body,) = bodies  # however often it was sent: one order, one set of fakes
        assert body is not None
        return body

    def hand(self, who: str, body: bytes) -> Response:
        """Hand a batch to a party."""
        return self.to(who).request("POST", "/v1/shuffled", {}, body)

    def stored(self) -> Any:
        """What the collector stored of the one batch that it took."""
        ((_, batch),) = self.store.shuffled_batches(self.collection.collection_id, "popular", 9)
        return batch


def _ok(told: Any) -> Response:
    return Response(200, {}, json.dumps(told).encode())
