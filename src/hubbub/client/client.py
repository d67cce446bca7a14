"""The device's side: fetch asks, check the ledger, randomise, queue, send."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hubbub.client.documents import Documents, trusted_keys
from hubbub.client.folder import FILE, collection_in, set_aside
from hubbub.client.respond import CurrentDocuments, Responder
from hubbub.client.status import ClientStatus, status_of
from hubbub.client.store import DeviceStore
from hubbub.client.upload import HttpTransport, Transport, Unreachable, Uploader, uniform
from hubbub.collection import Clock, SystemClock
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.ledger.clock import since_boot
from hubbub.random.source import Random

if TYPE_CHECKING:
    from hubbub.client.models import ModelFunction, Models, Updates

_PATH = "/v1/collections"


def only_collection(transport: Transport) -> str:
    """The name of the only collection that a server has."""
    response = transport.request("GET", _PATH, {"Accept": "application/json"})
    try:
        body: Any = json.loads(response.body)
        names = [str(collection["name"]) for collection in body["collections"]]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise Unreachable(f"GET {_PATH}: status {response.status}, {error!r}") from error
    if len(names) != 1:
        raise InvalidValue("collection", None, f"one of {', '.join(names[:20])}" if names else "a collection's name")
    return names[0]


def recover(
    folder: Path, clock: Clock, monotonic: Callable[[], float] = since_boot, collection: str | None = None
) -> None:
    """Rename what is left of the database, and make a new one in which every promise is spent at this moment.

    Promises for life stay spent for good. Promises of a window are spent until it has passed in trusted time.

    Parameters
    ----------
    folder
        A client's folder whose database is missing or cannot be used; any other folder is refused.
    clock, monotonic
        The device's time.
    collection
        The collection's name, where no file in the folder holds it.
    """
    name = collection_in(folder) or collection
    rng = Random()
    if name is not None and (folder / FILE).exists():
        try:
            DeviceStore(folder, name, rng, clock, monotonic).close()
        except HubbubError:
            pass
        else:
            raise InvalidValue("folder", str(folder), "one whose database is lost: this one can be used")
    if name is None:
        raise InvalidValue("folder", str(folder), "the folder of a client")
    set_aside(folder)
    DeviceStore(folder, name, rng, clock, monotonic, lost=True).close()


class NotReady(HubbubError):
    """There is no collection yet: the server was never reached, or sent no document that the client accepts."""


class Client:
    """One device's client of one collection. Its whole state is in its folder, which several processes may share.

    Parameters
    ----------
    folder
        Where its files are; made if it does not exist.
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
    connect
        Makes a transport from an address: reports that are shuffled go to the first shuffler, not to the server.

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
        connect: Callable[[str], Transport] = HttpTransport,
    ) -> None:
        self._clock: Clock = SystemClock() if clock is None else clock
        self._rng = Random() if rng is None else rng
        path, keys = Path(folder), trusted_keys(public_key)
        transport = HttpTransport(server) if isinstance(server, str) else server
        name = collection or collection_in(path) or only_collection(transport)
        self._store = DeviceStore(path, name, self._rng, self._clock, monotonic)
        sending: dict[str, Any] = {"per_frame": per_frame, "jitter": jitter, "form": form, "connect": connect}
        self._uploader = Uploader(self._store, transport, self._rng, **sending)
        self._responder = Responder(self._store, self._rng)
        documents = Documents(self._store, transport, keys, name)
        self._documents = documents
        self._models: Models | None = None
        self._current = CurrentDocuments(self._store, documents, self._rng, jitter=jitter)
        self._lock = threading.RLock()  # recording never waits for it, so never for the network

    def record(self, field: str, value: Any) -> None:
        """Record the value of a field. The last value of a step counts; a value outside the field's domain is refused.

        Most questions see the value recorded in their step, and "(none)" where there is none. Questions with memos and
        questions of changes, which are for values that persist, see the value recorded last.
        """
        if self._current.collection is None:
            with self._lock:
                self._current.refresh(self._clock.now())
        for _ in range(2):  # once more where another process has put a new version in force
            collection = self._current.collection
            if collection is None:
                break
            code = collection.encode(field, value)
            with self._store.transaction():
                if self._current.in_force(collection):
                    self._store.record(field, self._clock.now(), code)
                    return
            with self._lock:
                self._current.load()
        raise self._not_ready()

    def on_model(self, question: str, function: ModelFunction) -> None:
        """Have a function compute this device's part of a model that devices train together.

        It is called once in each round that the device answers, within `tick`: with the bytes of the public model
        (32-bit floats, little-endian), it returns the vector by which the model should change. The vector is then
        clipped and randomised. If the function raises or returns no vector of the field, the device answers with zeros.
        """
        self._trained().functions[question] = function

    def _trained(self) -> Models:
        """What trains models: few collections have any, and devices of the others do not load it."""
        if self._models is None:
            from hubbub.client.models import Models

            self._models = Models(self._store, self._documents, self._rng)
        return self._models

    def tick(self, *, wait: float = 0.0) -> int:
        """Fetch asks if they are due, answer those of the present step, and return how many new reports there are.

        With `wait`, an ask is answered only after that part of its time has passed, so that values recorded until then
        count. The wait is the same for all asks: when a device answers must not depend on what it recorded.
        """
        with self._lock:
            now = self._clock.now()
            self._current.refresh(now)
            collection = self._current.collection
            asks = None if collection is None else self._current.asks_of(collection.step_at(now))
            updates: Updates = {}
            if collection is not None and asks is not None and any(published.needs_model for published in asks.asks):
                updates = self._trained().updates(collection, asks, now, wait)
            return self._responder.respond(self._current, now, wait, updates)

    def upload(self) -> int:
        """Send the queued answers that are due, and return how many reports were acknowledged."""
        with self._lock:
            collection = self._current.collection
            if collection is None:
                return 0
            with self._store.transaction():
                in_force = self._current.in_force(collection)
                waiting = self._store.outbox.waiting() if in_force else []
                answers = self._store.answers()
            self._store.count_outside(answers)
            if not in_force:  # another process changed the version: the queued answers belong to that one
                self._current.load()
            return self._uploader.upload(collection, waiting, self._clock.now())

    def run_forever(self, stop: threading.Event | None = None, *, wait: float = 0.75) -> None:
        """Tick and upload until `stop` is set. The last error is shown by `status`, and the work is tried again."""
        stop = threading.Event() if stop is None else stop
        while not stop.is_set():
            try:
                self.tick(wait=wait)
                self.upload()
            except HubbubError as error:
                self._current.trouble = str(error)
            stop.wait(self._pace())

    def status(self) -> ClientStatus:
        """What was spent, what remains, and what waits to be sent."""
        with self._lock:
            collection = self._current.collection
            if collection is None:
                raise self._not_ready()
            return status_of(self._store, collection, (self._models and self._models.trouble) or self._current.trouble)

    def close(self) -> None:
        """Close the files; a `with` block does it too."""
        with self._lock:
            self._store.close()

    @staticmethod
    def recover(folder: str | os.PathLike[str], *, clock: Clock | None = None) -> None:
        """Start again in a folder whose database was lost: all that may have been spent counts as spent.

        Limits for life are spent for good, and limits of a window until the window has passed. The client never does
        this by itself.
        """
        recover(Path(folder), SystemClock() if clock is None else clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _not_ready(self) -> NotReady:
        return NotReady(f"no collection yet: {self._current.trouble or 'the server was not asked'}")

    def _pace(self) -> float:
        collection = self._current.collection
        step = 60.0 if collection is None else float(collection.step_seconds)
        return min(60.0, max(0.05, step / 50)) * (0.5 + uniform(self._rng))
