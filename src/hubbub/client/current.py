"""What a client goes by: the collection in force, and the latest asks."""

from __future__ import annotations

from dataclasses import replace

from hubbub.client.admit import open_studies
from hubbub.client.adopt import adopt, check_version
from hubbub.client.backoff import Backoff, Delay, uniform
from hubbub.client.documents import Asks, Documents, Refused
from hubbub.client.store import DeviceStore
from hubbub.client.transport import Unreachable
from hubbub.collection import Collection
from hubbub.core.random import Random

_POLLS = 20  # times a step to look for an ask that is not there yet


class Current:
    """Kept up to date from the folder, which other processes share, and from the server.

    Parameters
    ----------
    store, documents
        Where everything is.
    rng
        The device's randomness.
    jitter
        Over which part of half a step fetches are spread.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from hubbub.client.transport import HttpTransport
        >>> from hubbub.collection import ManualClock
        >>> clock = ManualClock()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = DeviceStore(Path(folder), "themes", Random(), clock, clock.now)
        ...     documents = Documents(store, HttpTransport("http://localhost:9"), (bytes(32),), "themes")
        ...     current = Current(store, documents, Random(), jitter=0.1)
        ...     current.refresh(clock.now())
        ...     current.collection, current.trouble is None
        ...     store.close()
        (None, False)
    """

    def __init__(self, store: DeviceStore, documents: Documents, rng: Random, *, jitter: float) -> None:
        self._store, self._documents, self._rng, self._jitter = store, documents, rng, jitter
        self._backoff = Backoff(rng)
        self._pause: Delay | None = None
        self._out_of_reach = False
        self.trouble: str | None = None
        self.asks: Asks | None = documents.asks()
        self.collection: Collection | None = None
        self.load()

    def load(self) -> None:
        """Take up the version that is in force, which another process may have changed."""
        with self._store.transaction():
            in_force = self._store.in_force()
        collection = self._documents.collection()
        if in_force is None:
            return
        if collection is None or in_force != (collection.version, collection.collection_id):
            # The promises are in the ledger: it is safe to ask for the document again.
            self.trouble = f"the kept document of version {in_force[0]} cannot be read, or is not signed by a known key"
            self.collection = None
            return
        self.collection = collection
        self._store.book.clock = self._store.clock_of(collection)

    def in_force(self, collection: Collection) -> bool:
        """Whether a collection is the one in force; asked inside a transaction, it stays so to the end of it."""
        return self._store.in_force() == (collection.version, collection.collection_id)

    def asked(self, step: int) -> Asks | None:
        """The asks of a step of the collection in force: those that were fetched or, out of reach, those that stand.

        A standing ask is the same in every step. It is believed for as long as the collection keeps reports.
        """
        asks, collection = self.asks, self.collection
        if asks is None or collection is None or not _same(asks, collection) or asks.step > step:
            return None
        if asks.step == step:
            return asks
        unheard = (step - asks.step) * collection.step_seconds
        if not self._out_of_reach or unheard > collection.retention_days * 86400:
            return None
        standing = [ask._replace(ask=replace(ask.ask, step=step)) for ask in asks.published if ask.ask.standing]
        studies = [ask for ask in asks.published if getattr(collection.terms.get(ask.question), "study", None)]
        return asks._replace(step=step, published=(*standing, *studies))

    def refresh(self, now: float) -> None:
        """Fetch what is due. Trouble is noted, counted if the server is to blame, and waited out."""
        if not self._backoff.ready(now):
            return
        try:
            if self.collection is None:
                self._fetch_collection()
            if self.collection is None or not self._fetch_asks(self.collection, now):
                return
            self._backoff.succeeded()
            self._out_of_reach, self.trouble = False, None
        except (Unreachable, Refused) as error:
            self._out_of_reach, self.trouble = isinstance(error, Unreachable), str(error)
            self._backoff.failed(now)
            if isinstance(error, Refused):
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
        """Fetch asks if it is time; whether it was."""
        if self._known(collection, now):
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
        if self.asks is not None and not _same(self.asks, collection):
            self._fetch_collection()
        return True

    def _known(self, collection: Collection, now: float) -> bool:
        """Whether the asks of this moment are there: of this step, none of them over, and all that have to be."""
        asks = self.asks
        if asks is None or not _same(asks, collection) or asks.step != collection.step_at(now) or now >= asks.closes:
            return False
        have = {(published.question, published.run, published.round) for published in asks.published}
        return have.issuperset(open_studies(collection, now))


def _shortest_round(collection: Collection) -> float:
    lengths = [
        collection.step_seconds if terms.study is None else terms.study.round_seconds
        for terms in collection.terms.values()
    ]
    return float(min(lengths))


def _same(asks: Asks, collection: Collection) -> bool:
    return (asks.collection, asks.version) == (collection.name, collection.version)
