"""Signed documents: what a client believes of what a server says, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from hubbub.client.store import DeviceStore, Document
from hubbub.client.transport import Response, Transport, Unreachable
from hubbub.collection import Collection, open_sealed
from hubbub.collection.formats import ASKS
from hubbub.collection.names import AnswerName
from hubbub.collection.safety import open_collection
from hubbub.collection.sealing import tag_of
from hubbub.core.errors import DecodeError, HubbubError, InvalidValue
from hubbub.core.migrations import UnknownFormat
from hubbub.core.spec import integer
from hubbub.protocols.ask import Ask


class Refused(HubbubError):
    """Something the server said that the client does not go along with: a short reason, and what it was about."""

    def __init__(self, reason: str, about: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}: {about}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, str(self))


class Published(NamedTuple):
    """One ask of a document, the question it belongs to, and which part of which round of which run it is."""

    question: str
    ask: Ask
    round: int = 1
    run: int = 0
    part: int = 0

    @property
    def name(self) -> AnswerName:
        """What an answer to it is called."""
        return AnswerName(self.question, self.run, self.ask.step, self.round, self.part)


class UnreadableAsk(NamedTuple):
    """An ask that this device cannot read, such as one with an unknown mechanism: its name, and why."""

    name: AnswerName
    refusal: Refused


class Asks(NamedTuple):
    """A document of asks: whose, of which step, and until when it stands."""

    collection: str
    version: int
    step: int
    published: tuple[Published, ...]
    closes: float
    unreadable: tuple[UnreadableAsk, ...] = ()


def trusted_keys(given: bytes | str | Iterable[bytes | str]) -> tuple[bytes, ...]:
    """The trusted public keys, from bytes or hexadecimal digits; several while a key is being changed.

    Example:
        >>> trusted_keys("6b" * 32) == trusted_keys([b"k" * 32])
        True
    """
    several = [given] if isinstance(given, bytes | str) else list(given)
    keys = []
    for key in several:
        try:
            raw = bytes.fromhex(key) if isinstance(key, str) else bytes(key)
        except ValueError:
            raw = b""
        if len(raw) != 32:
            raise DecodeError("public_key", key, "32 bytes, or 64 hexadecimal digits")
        keys.append(raw)
    if not keys:
        raise DecodeError("public_key", given, "at least one key")
    return tuple(keys)


class Documents:
    """Fetches documents, keeps them, and reads them back; only what is signed by a trusted key counts.

    Parameters
    ----------
    store
        Where they are kept.
    transport
        Where they come from.
    keys
        The trusted public keys.
    name
        The collection's name.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from hubbub.collection import Keys, ManualClock, seal
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.core.random import Random
        >>> keys = Keys.new()
        >>> class Server:
        ...     def request(self, method, path, headers, body=None):
        ...         sealed = seal(load_collection(EXAMPLE).spec(), keys.private)
        ...         return Response(200, {}, json.dumps(sealed).encode())
        >>> clock = ManualClock()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = DeviceStore(Path(folder), "themes", Random(), clock, clock.now)
        ...     documents = Documents(store, Server(), (keys.public,), "themes")
        ...     documents.fetch_collection()[0].version, documents.collection()
        ...     store.close()
        (1, None)
    """

    def __init__(self, store: DeviceStore, transport: Transport, keys: tuple[bytes, ...], name: str) -> None:
        self._store, self._transport, self._keys, self._name = store, transport, keys, name

    def collection(self, *, trusted: bool = True) -> Collection | None:
        """The kept collection, read anew; None if there is none that a trusted key signed.

        With `trusted` false, one that was trusted when it was kept counts too.
        """
        kept = self._kept("collection")
        try:
            return None if kept is None else self._read_collection(kept.body, self._keys if trusted else None)
        except Refused as error:
            if error.reason == "format":  # a newer client kept it: to go on without it would forget what it promised
                raise
            return None

    def asks(self) -> Asks | None:
        """The kept asks."""
        kept = self._kept("asks")
        try:
            return None if kept is None else self._read_asks(kept.body)
        except Refused:
            return None

    def fetch_collection(self) -> tuple[Collection, Document] | None:
        """What the server now serves; None if it is what is kept."""
        path = f"/v1/collections/{self._name}"
        response = self._get("collection", path, known=self.collection() is not None)
        if response.status == 304:
            return None
        body = response.body.decode(errors="replace")
        return self._read_collection(body, self._keys), Document(_tag(body), body)

    def fetch_asks(self) -> Asks | None:
        """The server's asks now; None if nothing changed."""
        response = self._get("asks", f"/v1/collections/{self._name}/asks", known=self.asks() is not None)
        if response.status == 304:
            return None
        body = response.body.decode(errors="replace")
        asks = self._read_asks(body)
        with self._store.transaction():
            self._store.keep("asks", Document(_tag(body), body))
        return asks

    def _kept(self, place: str) -> Document | None:
        with self._store.transaction():
            return self._store.document(place)

    def _get(self, place: str, path: str, known: bool) -> Response:
        kept = self._kept(place) if known else None  # what cannot be read must not come back as "not changed"
        tag = {} if kept is None else {"If-None-Match": _tag(kept.body)}  # made here: a server's own would be a cookie
        response = self._transport.request("GET", path, {"Accept": "application/json", **tag})
        if response.status != 200 and not (response.status == 304 and tag):
            raise Unreachable(f"GET {path}: status {response.status}")
        return response

    def _read_collection(self, body: str, keys: tuple[bytes, ...] | None) -> Collection:
        collection: Collection = _guarded("collection", lambda: _collection(body, keys))
        if collection.name != self._name:
            raise Refused("collection", f"{collection.name} is not {self._name}")
        return collection

    def _read_asks(self, body: str) -> Asks:
        asks: Asks = _guarded("asks", lambda: _asks(body, self._keys))
        return asks


def _tag(body: str) -> str:
    """The tag of a document that was read: whatever else a server said of it is not repeated."""
    return tag_of(_parsed(body))


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError("document", body[:40], f"JSON ({error})") from None


def _guarded(what: str, read: Any) -> Any:
    """Whatever a hostile document breaks, it is refused."""
    try:
        return read()
    except UnknownFormat as error:
        raise Refused("format", str(error)) from error
    except DecodeError as error:
        raise Refused("signature", f"{what}: {error}") from error
    except Exception as error:
        raise Refused("document", f"{what}: {error}") from error


@lru_cache(maxsize=8)  # the same text again and again, and checking it is most of a client's work
def _collection(body: str, keys: tuple[bytes, ...] | None) -> Collection:
    document = _parsed(body)
    return open_collection(document, (bytes.fromhex(document["key"]),) if keys is None else keys)


@lru_cache(maxsize=8)
def _asks(body: str, keys: tuple[bytes, ...]) -> Asks:
    spec = ASKS.upgrade(open_sealed(_parsed(body), keys))
    if set(spec) != {"format", "collection", "version", "step", "asks", "closes"} or len(spec["asks"]) > 1 << 12:
        raise Refused("document", "not a document of asks")
    asks = [_read_ask(ask) for ask in spec["asks"]]
    version = integer("version", spec["version"])
    return Asks(
        str(spec["collection"]),
        version,
        int(spec["step"]),
        tuple(ask for ask in asks if isinstance(ask, Published)),
        float(spec["closes"]),
        tuple(ask for ask in asks if isinstance(ask, UnreadableAsk)),
    )


def _read_ask(given: Any) -> Published | UnreadableAsk:
    """An ask with its name. One that cannot be read is no reason to refuse those of other questions."""
    if set(given) != {"question", "run", "step", "round", "part", "closes", "ask"}:
        raise Refused("document", "not an ask with its name")
    numbers = {name: integer(name, given[name]) for name in ("run", "step", "round", "part")}
    name = AnswerName(str(given["question"]), **numbers)
    try:
        ask = Ask.from_spec(given["ask"])
    except Exception as error:  # whatever a hostile ask breaks
        field = error.field.partition(".")[0] if isinstance(error, InvalidValue) else ""
        reason = field if field in ("mechanism", "view", "cohort") else "ask"
        return UnreadableAsk(name, Refused(reason, str(error)))
    if ask.step != name.step:
        raise Refused("document", "an ask with the name of another")
    return Published(name.question, ask, name.round, name.run, name.part)
