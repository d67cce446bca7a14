"""The device's side: fetch asks, check the ledger, randomise, queue, send."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from hubbub.client.accounts import Accounts
from hubbub.client.admit import admit, on_arc, phase_of
from hubbub.client.answer import Answerer
from hubbub.client.backoff import Backoff, Delay, uniform
from hubbub.client.documents import Asks, Documents, Published, Refused, trusted_keys
from hubbub.client.names import only_collection
from hubbub.client.status import ClientStatus, status_of
from hubbub.client.store import Store, collection_in
from hubbub.client.transport import HttpTransport, Transport, Unreachable
from hubbub.client.upload import Uploader
from hubbub.client.version import adopt
from hubbub.collection import Clock, Collection, SystemClock
from hubbub.core.errors import HubbubError
from hubbub.core.random import Random
from hubbub.privacy.device_clock import since_boot
from hubbub.protocols.cohort import place_on_circle

__all__ = ["Client", "NotReady"]

_PHASES = 2  # asks that a question may have in a step
_POLLS = 20  # times a step to look for an ask that is not there yet


class NotReady(HubbubError):
    """There is no collection yet: the server was never reached, or nothing it said could be believed."""


class Client:
    """One device's client of one collection. All it knows is in its folder; several processes may share it.

    Parameters
    ----------
    folder
        Where its files are, made if need be.
    server
        The server's address, or a `Transport`.
    public_key
        The key, or keys, that the collection's documents are signed with: 32 bytes, or 64 hexadecimal digits.
    collection
        The collection's name; not needed where the folder has one, or the server has only one.
    clock, monotonic
        The time of day, and seconds since boot.
    rng
        The randomness: leave it out on a device.
    per_frame
        How many reports an upload holds; all uploads have one size.
    jitter
        Over which part of a step requests are spread; 0 makes them at once.
    form
        How uploads are spelt: "msgpack" or "json".

    Example:
        >>> import tempfile
        >>> from hubbub.collection import Keys
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Client(folder, "http://localhost:9", Keys.new().public, collection="themes") as client:
        ...         client.tick(), client.upload()
        (0, 0)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        server: str | Transport,
        public_key: bytes | str | Iterable[bytes | str],
        *,
        collection: str | None = None,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = since_boot,
        rng: Random | None = None,
        per_frame: int = 1,
        jitter: float = 0.1,
        form: str = "msgpack",
    ) -> None:
        self._folder, self._monotonic = Path(folder), monotonic
        self._clock: Clock = SystemClock() if clock is None else clock
        self._rng = Random() if rng is None else rng
        self._jitter = jitter
        transport = HttpTransport(server) if isinstance(server, str) else server
        keys = trusted_keys(public_key)
        name = collection or collection_in(self._folder) or only_collection(transport)
        self._store = Store(self._folder, name, self._rng)
        self._documents = Documents(self._store, transport, keys, name)
        self._uploader = Uploader(self._store, transport, self._rng, per_frame=per_frame, jitter=jitter, form=form)
        self._lock = threading.RLock()
        self._backoff = Backoff(self._rng)
        self._pause: Delay | None = None
        self._done: set[tuple[str, str]] = set()
        self._trouble: str | None = None
        self._asks: Asks | None = self._documents.asks()
        self._collection: Collection | None = None
        self._accounts: Accounts | None = None
        self._load()

    # -- what a program calls ---------------------------------------------------------------------------------

    def record(self, field: str, value: Any) -> None:
        """Record the value of a field; the last one of a step counts. One that the field does not have is refused.

        Questions of a step see what was recorded in it, and "(none)" where nothing was. Questions with memos, which are
        for values that persist, see what was last recorded.
        """
        if self._collection is None:
            with self._lock:
                self._refresh(self._clock.now())
        for _ in range(2):  # once more where another process has put a new version in force
            collection = self._collection
            if collection is None:
                break
            code = collection.encode(field, value)
            with self._store.transaction():
                if self._is_in_force(collection):
                    self._store.record(field, collection.step_at(self._clock.now()), code)
                    return
            with self._lock:
                self._load()
        raise self._not_ready()

    def tick(self, *, wait: float = 0.0) -> int:
        """Read the clock, fetch asks if they are due, and answer those of this step; how many new reports there are.

        With `wait`, an ask is answered only after that part of its time has passed, so that what is recorded until
        then counts. When a device answers must not depend on what it recorded: so the wait is the same for all.
        """
        with self._lock:
            now = self._clock.now()
            self._refresh(now)
            return 0 if self._collection is None else self._answer(self._collection, now, wait)

    def upload(self) -> int:
        """Send what waits and is due; how many reports were acknowledged."""
        with self._lock:
            if self._collection is None or self._accounts is None:
                return 0
            return self._uploader.upload(self._collection, self._accounts, self._clock.now())

    def run_forever(self, stop: threading.Event | None = None, *, wait: float = 0.75) -> None:
        """Tick and upload until `stop` is set. What goes wrong is kept for `status`, and tried again."""
        stop = threading.Event() if stop is None else stop
        while not stop.is_set():
            try:
                self.tick(wait=wait)
                self.upload()
            except HubbubError as error:
                self._trouble = str(error)
            stop.wait(self._pace())

    def status(self) -> ClientStatus:
        """What was spent, what remains, what waits."""
        with self._lock:
            if self._collection is None or self._accounts is None:
                raise self._not_ready()
            waiting = len(self._uploader.pending(self._accounts))
            return status_of(self._store, self._collection, self._accounts, waiting, self._trouble)

    def close(self) -> None:
        """Close the files; a `with` block does it too."""
        with self._lock:
            if self._accounts is not None:
                self._accounts.close()
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- documents --------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Take up the version that is in force, which another process may have changed."""
        with self._store.transaction():
            in_force = self._store.in_force()
        collection = self._documents.collection()
        if collection is None or in_force != (collection.version, collection.collection_id):
            return
        if self._collection is not None and self._collection.collection_id == collection.collection_id:
            return
        if self._accounts is not None:
            self._accounts.close()
        self._accounts = Accounts(self._folder, self._store, collection, self._clock, self._monotonic, self._rng)
        self._collection = collection

    def _refresh(self, now: float) -> None:
        if not self._backoff.ready(now):
            return
        try:
            if self._collection is None:
                self._fetch_collection()
            if self._collection is not None:
                self._fetch_asks(self._collection, now)
            self._backoff.succeeded()
            self._trouble = None
        except (Unreachable, Refused) as error:
            self._trouble = str(error)
            self._backoff.failed(now)
            if isinstance(error, Refused):
                with self._store.transaction():
                    self._store.count(f"refused: {error.reason}")

    def _fetch_collection(self) -> None:
        with self._store.transaction():
            in_force = self._store.in_force()
        self._documents.fetch_collection(in_force)
        adopt(self._folder, self._store, self._documents, self._clock, self._monotonic, self._rng)
        self._load()

    def _fetch_asks(self, collection: Collection, now: float) -> None:
        asks, step = self._asks, collection.step_at(now)
        if asks is not None and asks.step == step and now < asks.closes and self._is_asked(asks):
            self._pause = None
            return
        if self._pause is None:  # a new step or phase: not every device at once
            spread = 0.0 if asks is None else self._jitter * collection.step_seconds / 2
            self._pause = Delay(now, uniform(self._rng) * spread)
        if not self._pause.over(now):
            return
        self._asks = self._documents.fetch_asks() or self._documents.asks()
        self._pause = Delay(now, (0.5 + uniform(self._rng)) * collection.step_seconds / _POLLS)
        if self._asks is not None and not self._is_asked(self._asks):
            self._fetch_collection()

    def _is_asked(self, asks: Asks) -> bool:
        return self._collection is not None and asks.collection_id == self._collection.collection_id

    def _is_in_force(self, collection: Collection) -> bool:
        return self._store.in_force() == (collection.version, collection.collection_id)

    # -- answers ----------------------------------------------------------------------------------------------

    def _answer(self, collection: Collection, now: float, wait: float) -> int:
        accounts, asks = self._accounts, self._asks
        assert accounts is not None
        step = accounts.observe()
        if asks is None or not self._is_asked(asks) or asks.step != step or step < 0:
            return 0
        with self._store.transaction():  # while this is held, no other process changes the version in force
            if self._is_in_force(collection):
                return sum(self._answer_one(collection, accounts, asks, each, now, wait) for each in _few(asks))
        self._load()
        return 0

    def _answer_one(
        self, collection: Collection, accounts: Accounts, asks: Asks, published: Published, now: float, wait: float
    ) -> int:
        ask_id, step = published.ask.ask_id, asks.step
        if (ask_id, "") in self._done:
            return 0
        try:
            admit(collection, published, step)
            opens, closes = phase_of(collection, published.question, step, now)
            if collection.questions[published.question].adaptive and now >= asks.closes:
                return 0  # of a phase that is over
            if now < opens + wait * (closes - opens):
                return 0
            made = False
            if on_arc(published, place_on_circle(self._store.device_key, collection.collection_id)):
                self._store.expect(ask_id, step, closes)
                made = Answerer(collection, self._store, accounts, self._rng).answer(published, step)
            self._note(ask_id, "")
            return int(made)
        except Refused as error:
            if self._note(ask_id, error.reason):
                self._store.count(f"refused: {error.reason}")
            return 0

    def _note(self, ask_id: str, what: str) -> bool:
        """Note what became of an ask; whether that is news."""
        news = (ask_id, what) not in self._done
        if len(self._done) > 1 << 12:
            self._done.clear()
        self._done.add((ask_id, what))
        return news

    def _not_ready(self) -> NotReady:
        return NotReady(f"no collection yet: {self._trouble or 'the server was not asked'}")

    def _pace(self) -> float:
        step = 60.0 if self._collection is None else float(self._collection.step_seconds)
        return min(60.0, max(0.05, step / 50)) * (0.5 + uniform(self._rng))


def _few(asks: Asks) -> list[Published]:
    """At most as many asks of a question as a step has phases: more are none that a protocol makes."""
    counted: dict[str, int] = {}
    few = []
    for published in asks.published:
        counted[published.question] = counted.get(published.question, 0) + 1
        if counted[published.question] <= _PHASES:
            few.append(published)
    return few
