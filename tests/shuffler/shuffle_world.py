"""A collection whose reports are shuffled: devices, shufflers and a collector in one process, on one clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from hubbub.authoring import load_collection
from hubbub.client import Client, Response, Unreachable
from hubbub.client.upload import OnionReports
from hubbub.collection import Collection, Keys, ManualClock
from hubbub.collection.names import AnswerName
from hubbub.random.source import Random
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import problem_of
from hubbub.service.ingest.frames import RefusedRequest
from hubbub.service.store import open_store
from hubbub.shuffle.onion import OnionKey
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.hop import ShufflerHop
from hubbub.shuffler.store import ShufflerStore
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload

KEYS = Keys(b"k" * 32)
HOUR = 3600
NOW = 7 * HOUR + 60.0
TEXT = """
name = "survey"
version = {version}
title = "A survey"
trust = "shuffle"

[schedule]
step = "1h"
lateness = "10m"

[privacy]
user = 100.0
minimum_batch = 20

[fields.theme]
kind = "categorical"
names = ["light", "dark"]

[questions.popular]
kind = "histogram"
field = "theme"
epsilon = 2.0

[shuffle]
collector_key = "{collector}"
delta = 1e-6
least = {least}
fakes = {fakes}
"""
SHUFFLER = """
[[shuffle.shufflers]]
url = "{url}"
encryption_key = "{encryption_key}"
signing_key = "{signing_key}"
"""


def shuffled_text(
    shufflers: Iterable[tuple[str, ShufflerKeys]],
    collector: OnionKey,
    *,
    least: int = 20,
    fakes: int = 5,
    version: int = 1,
    text: str = TEXT,
) -> str:
    """The file of a collection with these shufflers."""
    head = text.format(collector=collector.public.hex(), least=least, fakes=fakes, version=version)
    return head + "".join(SHUFFLER.format(url=url, **keys.public()) for url, keys in shufflers)


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
        seed: int = 1,
        now: float = 7 * HOUR + 60.0,
        **text: Any,
    ) -> None:
        self.folder, self.rng = folder, Random(seed=seed)
        self.keys = [ShufflerKeys.generate() for _ in range(shufflers)]
        self.urls = [f"http://shuffler-{number}.example" for number in range(shufflers)]
        self.onion_key, self.signing = OnionKey.generate(), KEYS
        self.given = text
        self.collection: Collection = load_collection(self.text())
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
        self.hops = [self.hop(number) for number in range(shufflers)]
        for hop in self.hops:
            hop.refresh()

    def text(self, **changes: Any) -> str:
        return shuffled_text(list(zip(self.urls, self.keys, strict=True)), self.onion_key, **{**self.given, **changes})

    def collect(self) -> Collector:
        return Collector(
            [self.collection], self.store, clock=self.clock, keys=KEYS, rng=self.rng, onion_key=self.onion_key
        )

    def hop(self, number: int, keys: ShufflerKeys | None = None) -> ShufflerHop:
        return ShufflerHop(
            self.collection.name,
            keys or self.keys[number],
            self.stores[number],
            self.to("collector"),
            KEYS.public,
            clock=self.clock,
            connect=self.to,
            rng=Random(seed=f"hop {number}"),
        )

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
            if path == "/v1/shuffled":
                return _ok(hop.receive(body))
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
        seal, mechanism = OnionReports(self.collection).seal, opened.ask.mechanism
        made = []
        for value in values:
            code = self.collection.encode("theme", value)
            report = mechanism.randomize([code], self.rng).to_bare()
            report_id = self.rng.bytes(16)
            made.append(Entry(*opened.name, report_id, seal(opened.name, opened.ask, report)))
        return made

    def send(self, entries: Iterable[Entry], **changes: Any) -> list[dict[str, Any]]:
        """Upload entries to the first shuffler, each in its own frame."""
        return [self.post(encode_upload("survey", self.collection.version, [entry], self.size)) for entry in entries]

    def post(self, frame: bytes) -> dict[str, Any]:
        response = self.to(self.urls[0]).request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, frame)
        told: dict[str, Any] = {"status": response.status, **json.loads(response.body)}
        return told

    @property
    def size(self) -> int:
        return self.collection.frame_bytes

    def close(self) -> None:
        """Go to the time at which the first shuffler takes its turn, and let everyone do what is due."""
        self.clock.set((self.clock.now() // HOUR + 1) * HOUR + self.collection.accepts_for + 1)
        self.tick()

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


def _ok(told: Any) -> Response:
    return Response(200, {}, json.dumps(told).encode())
