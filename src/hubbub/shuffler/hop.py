"""One shuffler of a collection: it gathers, takes its turn when a batch's time is over, and hands on until it is heard.

It is driven by `take` and `receive`, which answer requests, and by `tick`, which does what is due. Whatever it does is
in its store first: a shuffler that is killed goes on where it was, with the same order and the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from hubbub.client.upload import HttpTransport
from hubbub.collection import Clock, SignedCollection
from hubbub.collection.shuffle_route import ObliviousRoute, Route, ShuffleRoute
from hubbub.core.errors import DecodeError, HubbubError
from hubbub.core.spec import Json
from hubbub.random.source import Random
from hubbub.service.base.limits import Receipt, RefusedRequest
from hubbub.service.ingest.frames import Served, read_frame
from hubbub.shuffler.batch_states import BatchStates, HopTransport
from hubbub.shuffler.config import ShufflerKeys
from hubbub.shuffler.intake import closing, is_asked, take_entries
from hubbub.shuffler.source import SignedSource
from hubbub.shuffler.store import BatchRow, ShufflerStore
from hubbub.wire.batches import check_batch, decode_shuffled
from hubbub.wire.shares import decode_message
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from hubbub.shuffle.dgk import DGKPublic
    from hubbub.shuffler.share_states import ShareStates


REFRESH = 30.0
"""Seconds between one look for a new version of the collection and the next."""
MOST_AT_WORK = 4
"""How many batches are made or handed on at the same time, each of up to 64 MB."""
_LOOK, _MASKS = "collection", "masks"

_SHOWN = ("batches received", "batches handed", "batches dropped", "unreadable", "repeated", "incomplete", "fakes")
"""The counts that anyone may see: of batches, and of what was in those that were large enough."""


class ShufflerHop:
    """A shuffler of one collection.

    Parameters
    ----------
    keys
        The keys of this shuffler; the signed collection tells its place on the route by them.
    collector
        The collector, which serves the signed collection and its asks.
    trusted
        The keys with which these are signed.
    rng
        Draws permutations and fakes; given in tests only.
    start
        Begins work that may wait for another program: a thread of its own, or at once, as in tests.
    workers
        Makes processes that hold the homomorphic key of a collection, in which masks are made; None makes masks in
        this process.
    """

    def __init__(
        self,
        collection: str,
        keys: ShufflerKeys,
        store: ShufflerStore,
        collector: HopTransport,
        trusted: bytes | Iterable[bytes],
        *,
        clock: Clock,
        connect: Callable[[str], HopTransport] = HttpTransport,
        rng: Random | None = None,
        start: Callable[[Callable[[], None]], None] = lambda work: work(),
        workers: Callable[[DGKPublic], Executor] | None = None,
    ) -> None:
        self.name, self._keys, self._store, self._clock = collection, keys, store, clock
        self._source = SignedSource(collection, collector, trusted)
        self._states = BatchStates(store, self._source, keys, collector, connect, rng or Random())
        self._collector, self._connect, self._workers = collector, connect, workers
        self._shares: ShareStates | None = None
        self._looked: float | None = None
        self._turn, self._start = threading.Lock(), start
        self._at_work: set[str] = set()
        self._tried: Counter[str] = Counter()
        self.trouble = ""
        """The last error, as a text."""
        document = store.note("collection")
        self.collection: SignedCollection | None = None
        if document is not None:
            self._serve(self._source.read(document))

    # -- requests ---------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Fetch the collection, or a newer version of it; older versions are refused."""
        self._looked = self._clock.now()
        offered, document = self._source.fetch(self.collection)
        with self._store.transaction():
            self._store.set_note("collection", document)
        self._serve(offered)

    def _serve(self, collection: SignedCollection) -> None:
        """Take a collection or a newer version of it. Shares need a library that layers do without."""
        route = collection.shuffle
        if isinstance(route, ObliviousRoute) and (self._shares is None or self._shares.route != route):
            from hubbub.shuffler.share_states import ShareStates

            self.close()
            given = (self._states, self._store, self._source, self._keys, self._collector, self._connect)
            self._shares = ShareStates(*given, route, self._workers)
        self.collection = collection

    def close(self) -> None:
        """End the processes that make masks."""
        if self._shares is not None:
            self._shares.close()

    def take(self, kind: str, body: bytes) -> Receipt:
        """Store the reports of a device's upload: layers at the first shuffler only, shares at each."""
        collection, route, place = self._serving()
        if route.shufflers[place] not in route.receivers:
            raise RefusedRequest("unknown_collection", "devices send to the first shuffler; this is another")
        if kind not in (UPLOAD_TYPE, JSON_TYPE):
            raise RefusedRequest("malformed", f"content type {kind[:80]!r}; allowed: {UPLOAD_TYPE}, {JSON_TYPE}")
        frame = read_frame(kind, body, Served({collection.name: collection}))
        return take_entries(frame.entries, collection, self._store, self._clock)

    def take_all(self, uploads: Sequence[tuple[str, bytes]]) -> list[Receipt | HubbubError]:
        """Store several uploads in one transaction; returns the receipt or the error of each."""
        outcomes: list[Receipt | HubbubError] = []
        with self._store.transaction():
            for kind, body in uploads:
                try:
                    outcomes.append(self.take(kind, body))
                except HubbubError as error:  # which is raised before anything of the upload is kept
                    outcomes.append(error)
        return outcomes

    def receive(self, body: bytes) -> dict[str, Json]:
        """Store a batch from the previous shuffler. The same bytes again are acknowledged again."""
        collection, route, place = self._serving()
        batch = decode_shuffled(body)
        Served({collection.name: collection}).find(batch.collection, batch.version, len(batch.onions))
        if not isinstance(route, ShuffleRoute) or place == 0 or not is_asked(collection, batch.answer):
            raise DecodeError("batch", batch.name, "one of a shuffler that hands on to this one")
        check_batch(batch, route, place)  # before any request is made for it
        receipt: dict[str, Json] = {"batch": batch.name, "received": len(batch.onions)}
        before = self._store.batch(batch.name)
        if before is not None:
            if before.digest != hashlib.sha256(body).digest():
                raise RefusedRequest("replay", batch.name)
            return receipt
        closes = closing(collection, batch.answer)
        now = self._clock.now()
        if closes <= self._store.forgotten or now >= closes + collection.lateness_seconds:
            raise RefusedRequest("late", batch.name)
        if now < closes:
            raise RefusedRequest("too_early", batch.name)  # one of two clocks is wrong: the sender tries again
        check_batch(batch, route, place, self._source.ask(batch.answer, collection).mechanism.report_bytes)
        with self._store.transaction():
            self._store.begin(batch.name, batch.version, batch.answer, closes, body)
            self._store.count("batches received")
        return receipt

    def receive_message(self, body: bytes) -> dict[str, Json]:
        """Store a message from another shuffler of shares. The same bytes again are acknowledged again."""
        collection, route, _ = self._serving()
        message = decode_message(body)
        Served({collection.name: collection}).find(message.collection, message.version, 1)
        if self._shares is None or not isinstance(route, ObliviousRoute) or not is_asked(collection, message.answer):
            raise DecodeError("message", message.name, "one about a batch of shares")
        receipt: dict[str, Json] = {"batch": message.name, "topic": message.topic}
        closes = closing(collection, message.answer)
        if self._store.batch(message.name) is None and self._clock.now() >= closes + collection.accepts_for:
            late = closes <= self._store.forgotten
            raise RefusedRequest("late" if late else "under_minimum", "no share of this batch came here")
        self._shares.receive(message, body)
        return receipt

    # -- work that is due ------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due. An error with a batch is shown by `status`, and tried again while there is time.

        Batches are closed, dropped and forgotten here, without a request: another program that does not answer delays
        none of it. Whatever makes requests is begun by `start`, for each batch by itself.
        """
        with self._turn:
            if self._looked is None or not 0 <= self._clock.now() - self._looked < REFRESH:
                self._begin(_LOOK, self.refresh)
            collection = self.collection
            if collection is None:
                return
            for batch in self._store.batches():
                trouble = "there is no answer yet" if batch.name in self._at_work else self.trouble
                with self._telling(batch.name):
                    self._states.settle(batch, collection, self._clock.now(), trouble)
            batches = self._store.batches()
            due = [batch for batch in batches if batch.state in ("closed", "listed", "made")]
            if isinstance(collection.shuffle, ObliviousRoute):
                self._begin_shares(batches, collection, collection.shuffle)
                due = [batch for batch in due if batch.state != "made"]
            self._tried = Counter({batch.name: self._tried[batch.name] for batch in due})
            due = [batch for batch in due if batch.name not in self._at_work]
            due.sort(key=lambda batch: self._tried[batch.name])  # a batch that nobody takes is tried after the others
            names = {batch.name for batch in batches}
            for batch in due[: MOST_AT_WORK - len(self._at_work & names)]:
                self._tried[batch.name] += 1
                self._begin(batch.name, partial(self._hand_on, batch.name, collection))

    def _hand_on(self, name: str, collection: SignedCollection) -> None:
        if self._shares is not None and isinstance(collection.shuffle, ObliviousRoute):
            self._shares.hand_on(name, collection)
        else:
            self._states.hand_on(name, collection, self._clock)

    def _begin_shares(self, batches: Sequence[BatchRow], collection: SignedCollection, route: ObliviousRoute) -> None:
        """Begin to send messages, to every receiver by itself: one that is slow holds up no other. And make masks."""
        assert self._shares is not None
        for batch in batches:
            for receiver in self._shares.receivers(batch.name) if batch.state in ("listed", "made") else ():
                to = f" to {receiver}"
                if sum(name.endswith(to) for name in self._at_work) < MOST_AT_WORK:
                    work = partial(self._shares.send, batch.name, receiver, collection, self._clock)
                    self._begin(batch.name + to, work)
        for batch in batches:
            if _MASKS not in self._at_work and self._shares.needs_masks(batch):
                self._begin(_MASKS, partial(self._shares.make_masks, batch.name, batch.size + route.fakes))

    def status(self) -> dict[str, Json]:
        """The batches and their states, what was counted of batches that ended, and the last error.

        Anyone may read it. Nothing is shown of a batch that still gathers: somebody who watches a device send could
        otherwise learn whether its upload had a report. No count includes the reports of a batch that was too small
        to be handed on.
        """
        batches: list[Json] = [
            {"batch": row.name, "state": row.state, "note": row.note}
            for row in self._store.batches()
            if row.state != "gathering"
        ]
        version = None if self.collection is None else self.collection.version
        stored: dict[str, Json] = json.loads(self._store.note("counts") or "{}")
        counts: dict[str, Json] = {name: count for name, count in stored.items() if name in _SHOWN}
        head: dict[str, Json] = {"collection": self.name, "version": version}
        return {**head, "batches": batches, "counts": counts, "trouble": self.trouble}

    def _serving(self) -> tuple[SignedCollection, Route, int]:
        """The collection, its shuffle route, and the place of this shuffler on it."""
        collection = self.collection
        if collection is None or collection.shuffle is None:
            raise RefusedRequest("unknown_collection", "there is no collection yet whose reports are shuffled here")
        place = collection.shuffle.place_of(self._keys.encryption.public, self._keys.signing.public)
        return collection, collection.shuffle, place

    def _begin(self, name: str, work: Callable[[], object]) -> None:
        """Begin work under a name, unless it still goes on."""

        def run() -> None:
            try:
                with self._telling(name):
                    work()
            finally:
                self._at_work.discard(name)

        if name not in self._at_work:
            self._at_work.add(name)
            try:
                self._start(run)
            except RuntimeError:  # there are too many threads
                self._at_work.discard(name)
                raise

    @contextmanager
    def _telling(self, name: str) -> Iterator[None]:
        """Keep an error of the block as a text, for `status`."""
        try:
            yield
        except HubbubError as error:
            self.trouble = str(error)
        except Exception as error:  # such as a full disk: the other batches go on
            self.trouble = f"{name}: {type(error).__name__}: {error}"
