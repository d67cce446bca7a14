"""The documents that a client works with now: the collection in force, and the latest asks."""

from __future__ import annotations

from dataclasses import replace

from hubbub.client.admit import open_studies
from hubbub.client.adopt import adopt, check_version
from hubbub.client.backoff import Backoff, Delay, uniform
from hubbub.client.documents import AskDocument, ClientRefusal, Documents
from hubbub.client.store import DeviceStore
from hubbub.client.transport import Unreachable
from hubbub.collection import Collection
from hubbub.core.random import Random

_POLLS = 20  # times a step to look for an ask that is not there yet


class CurrentDocuments:
    """The collection in force and its latest asks, updated from the server and from the folder, which processes share.

    Parameters
    ----------
    store, documents
        The device's file, and the documents that it stores or fetches.
    rng
        The device's randomness.
    jitter
        Over which part of half a step fetches are spread.
    """

    def __init__(self, store: DeviceStore, documents: Documents, rng: Random, *, jitter: float) -> None:
        self._store, self._documents, self._rng, self._jitter = store, documents, rng, jitter
        self._backoff = Backoff(rng)
        self._pause: Delay | None = None
        self._out_of_reach = False
        self.trouble: str | None = None
        self.asks: AskDocument | None = documents.asks()
        self.collection: Collection | None = None
        self.load()

    def load(self) -> None:
        """Load the version in force, which another process may have changed."""
        with self._store.transaction():
            in_force = self._store.in_force()
        collection = self._documents.collection()
        if in_force is None:
            return
        if collection is None or in_force != (collection.version, collection.collection_id):
            # The promises are in the ledger: it is safe to fetch the document again.
            self.trouble = f"the kept document of version {in_force[0]} cannot be read, or is not signed by a known key"
            self.collection = None
            return
        self.collection = collection
        self._store.book.clock = self._store.clock_of(collection)

    def in_force(self, collection: Collection) -> bool:
        """Whether a collection is the one in force. Called in a transaction: until that ends, no process changes it."""
        return self._store.in_force() == (collection.version, collection.collection_id)

    def asks_of(self, step: int) -> AskDocument | None:
        """The asks of a step of the collection in force; None where they are not known.

        While the server is out of reach, standing asks (which are the same in every step) and the asks of studies are
        taken from the last document, for as long as the collection keeps reports.
        """
        asks, collection = self.asks, self.collection
        if asks is None or collection is None or not _belongs_to(asks, collection) or asks.step > step:
            return None
        if asks.step == step:
            return asks
        age = (step - asks.step) * collection.step_seconds
        if not self._out_of_reach or age > collection.retention_days * 86400:
            return None
        studies = {name for name, terms in collection.terms.items() if terms.study is not None}
        standing = [
            published._replace(ask=replace(published.ask, step=step))
            for published in asks.asks
            if published.ask.standing
        ]
        of_studies = [published for published in asks.asks if published.question in studies]
        unreadable = [  # what is refused for an unreadable part is refused in every step
            ask if ask.name.question in studies else ask._replace(name=ask.name._replace(step=step))
            for ask in asks.unreadable
        ]
        return asks._replace(step=step, asks=(*standing, *of_studies), unreadable=tuple(unreadable))

    def refresh(self, now: float) -> None:
        """Fetch the documents that are due. After an error, remember it as `trouble`, and wait before the next try."""
        if not self._backoff.ready(now):
            return
        try:
            if self.collection is None:
                self._fetch_collection()
            if self.collection is None or not self._fetch_asks(self.collection, now):
                return
            self._backoff.succeeded()
            self._out_of_reach, self.trouble = False, None
        except (Unreachable, ClientRefusal) as error:
            self._out_of_reach, self.trouble = isinstance(error, Unreachable), str(error)
            self._backoff.failed(now)
            if isinstance(error, ClientRefusal):
                with self._store.transaction():
                    self._store.outbox.count(f"refused: {error.reason}")

    def _fetch_collection(self) -> None:
        with self._store.transaction():
            in_force = self._store.in_force()
        fetched = self._documents.fetch_collection()
        if fetched is not None:
            offered, document = fetched
            check_version(in_force, offered)
            adopt(self._store, offered, document, self._documents.collection(trusted=False))
        self.load()

    def _fetch_asks(self, collection: Collection, now: float) -> bool:
        """Fetch asks if they are due; whether they were."""
        if self._has_asks(collection, now):
            self._pause = None
            return False
        pace = _shortest_round(collection)
        if self._pause is None:  # a new step or round: not every device at once
            spread = 0.0 if self.asks is None else self._jitter * pace / 2
            self._pause = Delay(now, uniform(self._rng) * spread)
        if not self._pause.over(now):
            return False
        self.asks = self._documents.fetch_asks() or self._documents.asks()
        self._pause = Delay(now, (0.5 + uniform(self._rng)) * pace / _POLLS)
        if self.asks is not None and not _belongs_to(self.asks, collection):
            self._fetch_collection()
        return True

    def _has_asks(self, collection: Collection, now: float) -> bool:
        """Whether the latest asks are of this step, not yet closed, and include the present round of every study."""
        asks = self.asks
        if (
            asks is None
            or not _belongs_to(asks, collection)
            or asks.step != collection.step_at(now)
            or now >= asks.closes
        ):
            return False
        rounds = {(published.question, published.run, published.round) for published in asks.asks}
        return rounds.issuperset(open_studies(collection, now))


def _shortest_round(collection: Collection) -> float:
    lengths = [
        collection.step_seconds if terms.study is None else terms.study.round_seconds
        for terms in collection.terms.values()
    ]
    return float(min(lengths))


def _belongs_to(asks: AskDocument, collection: Collection) -> bool:
    return (asks.collection, asks.version) == (collection.name, collection.version)
