"""What an oblivious shuffle costs a shuffler and the collector, per million reports, with a key of 3,072 bits.

Three shufflers run in this process, with their stores, messages and signatures. Masks are made before a batch closes;
the critical path is what is left from there to the batch that the collector takes.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from measure import Failure, Result

from hubbub import GRR, Random
from hubbub.client.upload import Unreachable
from hubbub.collection import ManualClock
from hubbub.collection.names import AnswerName
from hubbub.collection.shuffle_route import HomomorphicKey, ObliviousRoute, RouteShuffler, batch_name, layer_name
from hubbub.core.bounded_http import Response
from hubbub.protocols.ask import Ask
from hubbub.protocols.views.basic import Whole
from hubbub.service.ingest.frames import RefusedRequest
from hubbub.shuffle.device_shares import encrypt
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.oblivious import combine, split
from hubbub.shuffle.onion import OnionKey, open_layer, wrap
from hubbub.shuffler.batch_states import BatchStates
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.share_states import ShareStates
from hubbub.shuffler.store import ShufflerStore
from hubbub.wire.shares import HASH_BYTES, decode_message, decode_shared, seal_name

MILLION = 1_000_000
MOST_CRITICAL, MOST_TOTAL = 240.0, 708.0
NAME = AnswerName("popular", 0, 0, 1, 0)


class Party:
    """A shuffler without a network: a call of it is a request."""

    def __init__(self, number: int, route: ObliviousRoute, keys: ShufflerKeys, parties: list[Any], got: list[bytes]):
        self.store, self.seconds = ShufflerStore(":memory:"), Counter[str]()
        source, connect = _Source(), partial(_Call, parties, route)
        states = BatchStates(self.store, source, keys, None, connect, Random())  # type: ignore[arg-type]
        given = (states, self.store, source, keys, _Collector(got), connect, route, None)
        self.shares = ShareStates(*given)  # type: ignore[arg-type]

    def spend(self, what: str, work: Callable[..., Any], *given: Any) -> Any:
        """Do something; its CPU seconds without those of the others, which count for them."""
        begun, before = time.process_time(), _spent_by_all()
        try:
            return work(*given)
        finally:
            self.seconds[what] += time.process_time() - begun - (_spent_by_all() - before)


ALL: list[Party] = []


def _spent_by_all() -> float:
    return sum(sum(party.seconds.values()) for party in ALL)


class _Source:
    name = "bench"

    def ask(self, *_: object) -> Ask:
        return _ask()


class _Collection:
    lateness_seconds = 100


class _Collector:
    def __init__(self, got: list[bytes]) -> None:
        self.got = got

    def request(self, _method: str, _path: str, _headers: Mapping[str, str], body: bytes, **_: float) -> Response:
        self.got.append(body)
        return Response(200, {}, b"")


class _Call:
    def __init__(self, parties: list[Any], route: ObliviousRoute, url: str) -> None:
        self.to = parties[[shuffler.url for shuffler in route.shufflers].index(url)]

    def request(self, _method: str, _path: str, _headers: Mapping[str, str], body: bytes, **_: float) -> Response:
        return self.to.spend("critical", self._receive, body)  # type: ignore[no-any-return]

    def _receive(self, body: bytes) -> Response:
        try:
            self.to.shares.receive(decode_message(body), body)
        except RefusedRequest:  # it has not opened its shares yet
            return Response(425, {}, b"")
        return Response(200, {}, b"")


def _ask() -> Ask:
    return Ask(step=0, view=Whole(), mechanism=GRR(epsilon=2.0, domain=64))


def oblivious(quick: bool) -> Iterator[Result]:
    """CPU seconds of a shuffler and of the collector; the more the better is the average, as some work is done once."""
    count, key = 2_000 if quick else 10_000, DGKPrivate.generate()
    numbers = {name: f"{getattr(key.public, name):x}" for name in ("modulus", "g", "h")}
    public = HomomorphicKey(**numbers, subgroup_bits=key.public.subgroup_bits)
    keys, collector = [ShufflerKeys.generate() for _ in range(3)], OnionKey.generate()
    shufflers = tuple(RouteShuffler(f"http://{at}.example", **pair.public()) for at, pair in enumerate(keys))
    rules = {"collector_key": collector.public.hex(), "delta": 1e-6, "least": 2, "fakes": 0}
    route = ObliviousRoute(shufflers=shufflers, homomorphic_key=public, **rules)  # type: ignore[arg-type]
    parties: list[Any] = []
    got: list[bytes] = []
    parties += [Party(number, route, pair, parties, got) for number, pair in enumerate(keys)]
    ALL[:] = parties
    _fill(parties, route, key, count)
    name, clock = batch_name("bench", 1, NAME), ManualClock(10.0)
    for party in parties:
        party.shares._key._wide  # noqa: B018  the tables, which are made once
        if party.shares.needs_masks(party.store.batch(name)):
            while party.spend("masks", party.shares.make_masks, name, count):
                pass
        party.store.close_batch(name)
    while not got:
        for party in parties:
            row = party.store.batch(name)
            if row.state == "dropped":
                raise Failure(row.note)
            party.spend("critical", party.shares.hand_on, name, _Collection())
            for receiver in party.shares.receivers(name):
                with suppress(Unreachable):
                    party.spend("critical", party.shares.send, name, receiver, _Collection(), clock)
    times = MILLION / count
    critical = max(party.seconds["critical"] for party in parties) * times
    total = max(sum(party.seconds.values()) for party in parties) * times
    yield Result(what="shuffler, from the close to the batch", unit="s a million", ours=critical, most=MOST_CRITICAL)
    yield Result(what="shuffler, with masks made before", unit="s a million", ours=total, most=MOST_TOTAL)
    average = sum(sum(party.seconds.values()) for party in parties) * times / 3
    yield Result(what="the same, the average of three shufflers", unit="s a million", ours=average)
    yield Result(what="collector", unit="s a million", ours=_collected(got[0], key, collector, count) * times)
    yield Result(what="batch for the collector", unit="MB a million", ours=len(got[0]) * times / 1e6)
    start = time.process_time()
    for _ in range(50):
        encrypt(7, public)
    yield Result(what="device, encryption in plain Python", unit="s", ours=(time.process_time() - start) / 50)


def _fill(parties: list[Any], route: ObliviousRoute, key: DGKPrivate, count: int) -> None:
    """Store what devices would have sent."""
    layer, rng = layer_name(batch_name("bench", 1, NAME), _ask()), Random()
    size, parts = key.public.ciphertext_bytes, split(rng.uint64(count), 3, rng)
    ids = [rng.bytes(16) for _ in range(count)]
    name = batch_name("bench", 1, NAME)
    for place, (party, shuffler) in enumerate(zip(parties, route.shufflers, strict=True)):
        bodies = [int(number).to_bytes(8, "little").ljust(size, b"\0") for number in parts[place]]
        if place == 2:
            joined = key.public.to_bytes(key.public.encrypt(parts[place]))
            bodies = [joined[at : at + size] for at in range(0, len(joined), size)]
        with party.store.transaction():
            party.store.begin(name, 1, NAME, 0.0)
            for report_id, body in zip(ids, bodies, strict=True):
                sealed = wrap(body, [bytes.fromhex(shuffler.encryption_key)], layer, place=place)
                party.store.add(name, report_id, sealed)


def _collected(body: bytes, key: DGKPrivate, collector: OnionKey, count: int) -> float:
    """The CPU seconds of the collector."""
    start, batch = time.process_time(), decode_shared(body)
    parts = []
    for place, result in enumerate(batch.results):
        content = open_layer(result.sealed, collector, seal_name(batch.name, place, 3, "result"), place=0)
        assert content is not None
        parts.append(content[HASH_BYTES:])
    combined = combine(parts, count, key)
    assert len(combined.reports) == count
    return time.process_time() - start
