"""The status of a client: what was spent, what remains, and what waits to be sent."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from hubbub.client.documents import Documents
from hubbub.client.folder import collection_in
from hubbub.client.store import RECOVERED, DeviceStore, StoredState
from hubbub.client.upload import Unreachable
from hubbub.collection import Clock, SignedCollection, SystemClock
from hubbub.collection.terms import ASKS
from hubbub.core.bounded_http import Response
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.ledger.clock import TICKS, since_boot
from hubbub.ledger.promise import WHOLE, Spending
from hubbub.random.source import Random


@dataclass(frozen=True)
class PromiseStatus:
    """What is spent of one promise about the whole collection, made by any version.

    `seconds` is the length of its window; None for a promise for life.
    """

    seconds: float | None
    spent: int
    remaining: int
    limit: int


@dataclass(frozen=True)
class ClientStatus:
    """What a client has spent, sent and queued. Spending is in units of 1e-12 epsilon.

    Parameters
    ----------
    collection, version, step
        The collection that it answers, the version in force, and the present step.
    promises
        Every promise about the whole collection that the device keeps, from all versions that it ever had in force.
    event, window, user
        The promise with the least remaining for a step, a window and a life, where there is one.
    spent
        All that was ever spent, under every version.
    memos
        The number of permanent answers, by question; without those of a stored state that cannot be read.
    queued
        How many reports wait to be sent.
    counts
        How often each outcome of a report happened, and each reason for refusing an ask or a document.
    trouble
        The last error, if nothing has succeeded since.
    recovered
        The Unix time at which the database was made again after it was lost: every promise until then counts as spent.
    """

    collection: str
    version: int
    step: int
    promises: tuple[PromiseStatus, ...]
    event: Spending | None
    window: Spending | None
    user: Spending | None
    spent: int
    memos: Mapping[str, int]
    queued: int
    counts: Mapping[str, int]
    trouble: str | None = None
    recovered: float | None = None


def status_of(store: DeviceStore, collection: SignedCollection, trouble: str | None = None) -> ClientStatus:
    """The status, from the file."""
    with store.transaction():
        book = store.book
        spendings = [(promise, book.spending(promise)) for promise in book.promises() if promise.scope == WHOLE]
        scarcest: dict[str, Spending] = {}
        for promise, spending in spendings:
            least = scarcest.setdefault(promise.unit, spending)
            scarcest[promise.unit] = min(least, spending, key=attrgetter("remaining"))
        recovered = store.note(RECOVERED)
        return ClientStatus(
            collection=collection.name,
            version=collection.version,
            step=book.now().step,
            promises=tuple(
                PromiseStatus(promise.steps * promise.interval / TICKS or None, *spending)
                for promise, spending in spendings
            ),
            event=scarcest.get("event"),
            window=scarcest.get("window"),
            user=scarcest.get("user"),
            spent=book.rows.total() if recovered is None else book.rows.attributed(),
            memos={
                name: count
                for name, terms in collection.terms.items()
                if terms.account != ASKS and (count := _memos_in(store.state(terms.account))) is not None
            },
            queued=sum(bool(answer.report) for answer in store.outbox.waiting()),
            counts=store.outbox.counts(),
            trouble=trouble,
            recovered=None if recovered is None else float(recovered),
        )


def read_status(folder: str | os.PathLike[str], clock: Clock | None = None) -> ClientStatus:
    """The status of a folder, without reaching any server.

    Example:
        >>> read_status("no such folder")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: folder: got 'no such folder'; allowed: the folder of a client
    """
    path = Path(folder)
    name = collection_in(path)
    if name is None:
        raise InvalidValue("folder", str(folder), "the folder of a client")
    store = DeviceStore(path, name, Random(), clock or SystemClock(), since_boot)
    try:
        collection = Documents(store, _Nowhere(), (), name).collection(trusted=False)
        if collection is None:
            with store.transaction():
                in_force = store.in_force()
            allowed = "a client that has reached its server"
            if in_force is not None:
                version = in_force[0]
                allowed = f"a client that can read its kept document of version {version}: it will ask its server again"
            raise InvalidValue("folder", str(folder), allowed)
        store.book.clock = store.clock_of(collection)
        return status_of(store, collection)
    finally:
        store.close()


def _memos_in(stored: StoredState | None) -> int | None:
    if stored is None:
        return 0
    from hubbub.mechanisms.memoised import memos_in  # only devices with memos load it

    try:
        return memos_in(stored.state)
    except DecodeError:  # the ask that needs the state is refused and counted; the rest of the status is known
        return None


class _Nowhere:
    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        raise Unreachable("no server is asked")
