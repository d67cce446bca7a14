"""Moves a batch through its states, each of which is stored: gathering, closed, made, then handed on or dropped."""

import json
import math
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from hubbub.client.upload import Transport, Unreachable
from hubbub.collection import Clock, SignedCollection
from hubbub.collection.shuffle_route import LAYER_BYTES, ShuffleRoute, layer_name
from hubbub.core.bounded_http import Response
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.random.source import Random
from hubbub.service.base.logs import log
from hubbub.shuffle.onion import shuffle_onions
from hubbub.shuffle.report_numbers import uniform_reports
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.source import SignedSource
from hubbub.shuffler.store import ENDED, BatchRow, ShufflerStore
from hubbub.wire.batches import SHUFFLED_TYPE, ShuffledBatch, decode_shuffled, encode_shuffled


def take_turn(incoming: ShuffledBatch, ask: Ask, route: ShuffleRoute, keys: ShufflerKeys, rng: Random) -> ShuffledBatch:
    """The batch that a shuffler hands on: one layer less, with its fakes, permuted, with its signed statement.

    A batch with too few reports of people is refused (`InvalidValue`). Reports that cannot be opened, have a wrong
    size, or are repeated, are left out and counted.

    `incoming`: the reports, with the statements of the previous shufflers. `ask`: the ask that the reports answer. Its
    mechanism determines their size, and the fakes. `rng`: draws fakes and the permutation. Secure, except in tests.
    """
    place, mechanism = len(incoming.statements), ask.mechanism
    size = mechanism.report_bytes + LAYER_BYTES * (len(route.shufflers) + 1 - place)
    onions = [onion for onion in incoming.onions if len(onion) == size]
    fakes = _single(uniform_reports(mechanism, route.fakes, rng).to_bare(), mechanism) if route.fakes else []
    turn = shuffle_onions(
        onions,
        keys.encryption,
        layer_name(incoming.name, ask),
        place=place,
        rest=route.route[place + 1 :],
        fakes=fakes,
        least=route.least + incoming.fakes,
        rng=rng,
    )
    unreadable = turn.unreadable + len(incoming.onions) - len(onions)
    return incoming.stated(
        turn.inside, keys.signing.private, unreadable=unreadable, repeated=turn.repeated, fakes=route.fakes
    )


def _single(bare: bytes, mechanism: ReportFormat) -> list[bytes]:
    """The reports of a batch, one by one: bare batches have one column after the other."""
    reports = mechanism.read_bare(bare)
    return [reports[at : at + 1].to_bare() for at in range(len(reports))]


PATH = "/v1/shuffled"
"""The route on which shufflers and the collector take batches."""
MARGIN = 60.0
"""Seconds for which ids are kept after a batch is over: a retried upload is told "duplicate", not "late"."""
_LATER = frozenset({408, 425, 429, *range(500, 600)})


class BatchLate(HubbubError):
    """A batch that was dropped since nobody took it in time."""


class HopTransport(Transport, Protocol):
    """Carries requests that end in time, whatever the peer does."""

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        at_most: float = math.inf,
    ) -> Response:
        """The peer's response; `Unreachable` where there is none within `at_most` seconds."""
        ...


class BatchStates:
    """Moves the batches of one shuffler.

    Parameters
    ----------
    store, source, keys
        The store, the source of signed documents, and the keys of the shuffler.
    collector
        The transport to the collector, which takes the batches of the last shuffler.
    connect
        Makes a transport from the address of another shuffler.
    rng
        Draws permutations and fakes. Secure, except in tests.
    """

    def __init__(
        self,
        store: ShufflerStore,
        source: SignedSource,
        keys: ShufflerKeys,
        collector: HopTransport,
        connect: Callable[[str], HopTransport],
        rng: Random,
    ) -> None:
        self._collector = collector
        self._store, self._source, self._keys, self._connect, self._rng = store, source, keys, connect, rng
        self._making = threading.Lock()  # one batch at a time: they are large

    def settle(self, batch: BatchRow, collection: SignedCollection, now: float, trouble: str) -> None:
        """Close, drop or forget a batch whose time has come; `BatchLate` where nobody took it in time.

        `trouble`: why nobody took it yet, for the note of a batch that is dropped.
        """
        end = over(batch, collection)
        if batch.state in ENDED:
            if now >= end + MARGIN:
                self._store.forget([batch.name])
        elif batch.version != collection.version:
            self.drop(batch.name, f"outdated_version: version {collection.version} is served, with other keys")
        elif now >= end:
            self.drop(batch.name, f"nobody took it in time: {trouble}")
            raise BatchLate(f"{batch.name}: nobody took it in time: {trouble}")
        elif batch.state == "gathering" and (batch.digest is not None or now >= batch.closes + collection.accepts_for):
            self._store.close_batch(batch.name)

    def hand_on(self, name: str, collection: SignedCollection, clock: Clock) -> None:
        """Shuffle a closed batch and hand it on, or drop it; `Unreachable` if a request has to be repeated later.

        It may be dropped meanwhile, as its time is over: then nothing more is stored of it.
        """
        route = collection.shuffle
        assert isinstance(route, ShuffleRoute)  # as it was when the batch began: a version never changes
        try:
            batch = self._store.batch(name)
            if batch is not None and batch.state == "closed":
                self._make(batch, collection, route)
                batch = self._store.batch(name)
            if batch is not None and batch.state == "made":
                self._hand_on(batch, route, over(batch, collection) - clock.now())
        except Unreachable:
            raise
        except HubbubError as error:
            self.drop(name, str(error))

    def _make(self, batch: BatchRow, collection: SignedCollection, route: ShuffleRoute) -> None:
        ask = self._source.ask(batch.answer, collection)
        body = self._store.incoming(batch.name)
        if body is not None:
            incoming = decode_shuffled(body)
        else:
            onions = [onion for _, onion in self._store.reports(batch.name)]
            incoming = ShuffledBatch(collection.name, batch.version, batch.answer, [], onions)
        with self._making:
            outgoing = take_turn(incoming, ask, route, self._keys, self._rng)
        statement = outgoing.statements[-1]
        numbers = f"{statement.received} came, {statement.unreadable} unreadable, {statement.repeated} repeated"
        note = f"{numbers}, {statement.fakes} fakes"
        encoded = encode_shuffled(outgoing)
        with self._store.transaction():
            if not self._store.keep_outgoing(batch.name, encoded, note):
                return
            for name in ("unreadable", "repeated", "fakes"):
                self._store.count(name, getattr(statement, name))

    def _hand_on(self, batch: BatchRow, route: ShuffleRoute, seconds: float) -> None:
        place = route.place_of(self._keys.encryption.public, self._keys.signing.public)
        last = place + 1 == len(route.shufflers)
        transport = self._collector if last else self._connect(route.shufflers[place + 1].url)
        outgoing = self._store.outgoing(batch.name)
        if outgoing is None:
            return
        post(transport, PATH, SHUFFLED_TYPE, outgoing, seconds)
        self.end(batch.name, "handed", batch.note)

    def drop(self, name: str, why: str) -> None:
        """End a batch that nobody will take."""
        self.end(name, "dropped", why)

    def end(self, name: str, state: str, note: str) -> None:
        """End a batch, once, and log it."""
        if self._store.end(name, state, note):
            log(state, batch=name, note=note, counts=self._store.counts())


def post(transport: HopTransport, path: str, kind: str, body: bytes, seconds: float) -> None:
    """Send something that has to be taken: `Unreachable` if that may go better later, `InvalidValue` if not."""
    response = transport.request("POST", path, {"Content-Type": kind}, body, at_most=seconds)
    if response.status in _LATER:
        raise Unreachable(f"POST {path}: status {response.status}")
    if response.status != 200:
        raise InvalidValue("batch", f"status {response.status}", _detail(response.body))


def over(batch: BatchRow, collection: SignedCollection) -> float:
    """The time from which nobody takes a batch any more."""
    return batch.closes + collection.lateness_seconds


def _detail(body: bytes) -> str:
    """Why a batch was refused, as the problem document says."""
    try:
        problem = json.loads(body)
        return str(problem.get("detail") or problem.get("title"))[:200]
    except (ValueError, RecursionError, AttributeError):
        return "a batch that is taken"
