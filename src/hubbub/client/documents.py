"""The two signed documents that a client fetches, the collection and its asks, and what makes a client refuse them."""

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from hubbub.client.store import DeviceStore, Document
from hubbub.client.upload import Transport, Unreachable
from hubbub.collection import SignedCollection, open_sealed
from hubbub.collection.names import AnswerName
from hubbub.collection.safety import open_collection
from hubbub.collection.sealing import ASKS, tag_of
from hubbub.core.bounded_http import Response
from hubbub.core.errors import DecodeError, HubbubError, InvalidValue
from hubbub.core.migrations import UnknownFormat
from hubbub.core.spec import integer
from hubbub.protocols.ask import Ask

Read = TypeVar("Read")


class ClientRefusal(HubbubError):
    """The client refuses a document or an ask of the server. `reason` is one word, which is counted in the status."""

    def __init__(self, reason: str, about: str) -> None:
        self.reason, self.about = reason, about
        super().__init__(f"{reason}: {about}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.about)


class PublishedAsk(NamedTuple):
    """An ask as the server published it: with its question, run, round and part."""

    question: str
    ask: Ask
    round: int = 1
    run: int = 0
    part: int = 0

    @property
    def name(self) -> AnswerName:
        return AnswerName(self.question, self.run, self.ask.step, self.round, self.part)

    @property
    def needs_model(self) -> bool:
        """Whether it is about a public model."""
        return self.ask.view.content_bytes > 0


class UnreadableAsk(NamedTuple):
    """An ask that this device cannot read, such as one with an unknown mechanism: its name, and why."""

    name: AnswerName
    refusal: ClientRefusal


class AskDocument(NamedTuple):
    """All asks of one step of a collection, and the Unix time until which the document is current."""

    collection: str
    version: int
    step: int
    asks: tuple[PublishedAsk, ...]
    closes: float
    unreadable: tuple[UnreadableAsk, ...] = ()

    def rounds(self) -> dict[AnswerName, list[PublishedAsk]]:
        """The parts of each round that can be read, by the name of its answer, whose part is 0."""
        rounds: dict[AnswerName, list[PublishedAsk]] = {}
        for published in self.asks:
            rounds.setdefault(published.name._replace(part=0), []).append(published)
        return rounds


def trusted_keys(public_key: bytes | str | Iterable[bytes | str]) -> tuple[bytes, ...]:
    """The trusted public keys, from bytes or hexadecimal digits; several while a key is being changed."""
    keys = []
    for key in [public_key] if isinstance(public_key, bytes | str) else list(public_key):
        try:
            raw = bytes.fromhex(key) if isinstance(key, str) else bytes(key)
        except ValueError:
            raw = b""
        if len(raw) != 32:
            raise DecodeError("public_key", key, "32 bytes, or 64 hexadecimal digits")
        keys.append(raw)
    if not keys:
        raise DecodeError("public_key", public_key, "at least one key")
    return tuple(keys)


class Documents:
    """Fetches signed documents, stores them, and reads them back. Only documents signed by a trusted key are used."""

    def __init__(self, store: DeviceStore, transport: Transport, keys: tuple[bytes, ...], name: str) -> None:
        self._store, self._transport, self._keys, self._name = store, transport, keys, name

    def collection(self, *, trusted: bool = True) -> SignedCollection | None:
        """The stored collection; None if there is none that a trusted key signed.

        With `trusted` false, a collection whose key was trusted when it was stored counts too.
        """
        document = self._stored("collection")
        try:
            return None if document is None else self._read_collection(document.body, self._keys if trusted else None)
        except ClientRefusal as error:
            if error.reason == "format":  # a newer client stored it: going on without it would forget its promises
                raise
            return None

    def asks(self) -> AskDocument | None:
        """The stored asks."""
        document = self._stored("asks")
        try:
            return None if document is None else self._read_asks(document.body)
        except ClientRefusal:
            return None

    def fetch_collection(self) -> tuple[SignedCollection, Document] | None:
        """The collection that the server serves now; None if it is the stored one."""
        path = f"/v1/collections/{self._name}"
        response = self._get("collection", path, conditional=self.collection() is not None)
        if response.status == 304:
            return None
        body = response.body.decode(errors="replace")
        return self._read_collection(body, self._keys), Document(_tag(body), body)

    def fetch_asks(self) -> AskDocument | None:
        """The asks that the server serves now; None if they are the stored ones."""
        response = self._get("asks", f"/v1/collections/{self._name}/asks", conditional=self.asks() is not None)
        if response.status == 304:
            return None
        body = response.body.decode(errors="replace")
        asks = self._read_asks(body)
        with self._store.transaction():
            self._store.set_document("asks", Document(_tag(body), body))
        return asks

    def fetch_model(self, model: str, size: int) -> bytes:
        """The bytes of a public model, which have this hash and this size."""
        path = f"/v1/collections/{self._name}/models/{model}"
        response = self._transport.request("GET", path, {"Accept": "application/octet-stream"})
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        if len(response.body) != size or hashlib.sha256(response.body).hexdigest() != model:
            raise ClientRefusal("model", f"not the {size:,} bytes whose hash is {model}")
        return response.body

    def _stored(self, name: str) -> Document | None:
        with self._store.transaction():
            return self._store.document(name)

    def _get(self, name: str, path: str, *, conditional: bool) -> Response:
        """Fetch a document; with `conditional`, only if it differs from the stored one (status 304 otherwise)."""
        document = self._stored(name) if conditional else None
        # The tag is computed here: one that the server chose would be a cookie.
        tag = {} if document is None else {"If-None-Match": _tag(document.body)}
        response = self._transport.request("GET", path, {"Accept": "application/json", **tag})
        if response.status != 200 and not (response.status == 304 and tag):
            raise Unreachable(f"GET {path}: status {response.status}")
        return response

    def _read_collection(self, body: str, keys: tuple[bytes, ...] | None) -> SignedCollection:
        collection = _refusing_errors("collection", lambda: _collection(body, keys))
        if collection.name != self._name:
            raise ClientRefusal("collection", f"{collection.name} is not {self._name}")
        return collection

    def _read_asks(self, body: str) -> AskDocument:
        return _refusing_errors("asks", lambda: read_asks(body, self._keys))


def _tag(body: str) -> str:
    """The ETag of a document, computed from what was signed and nothing else."""
    return tag_of(parsed(body))


def parsed(body: str | bytes) -> Any:
    """The content of a JSON document, unchecked."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError("document", body[:40], f"JSON ({error})") from None


def _refusing_errors(name: str, read: Callable[[], Read]) -> Read:
    """Read a document; whatever error a hostile one causes, it is refused."""
    try:
        return read()
    except UnknownFormat as error:
        raise ClientRefusal("format", str(error)) from error
    except DecodeError as error:
        raise ClientRefusal("signature", f"{name}: {error}") from error
    except Exception as error:
        raise ClientRefusal("document", f"{name}: {error}") from error


@lru_cache(maxsize=8)  # the same text again and again, and checking it is most of a client's work
def _collection(body: str, keys: tuple[bytes, ...] | None) -> SignedCollection:
    document = parsed(body)
    return open_collection(document, (bytes.fromhex(document["key"]),) if keys is None else keys)


@lru_cache(maxsize=8)
def read_asks(body: str, keys: tuple[bytes, ...]) -> AskDocument:
    """Return what a document of asks says, if one of the keys has signed it."""
    spec = ASKS.upgrade(open_sealed(parsed(body), keys))
    if set(spec) != {"format", "collection", "version", "step", "asks", "closes"} or len(spec["asks"]) > 1 << 12:
        raise ClientRefusal("document", "not a document of asks")
    asks = [_read_ask(ask) for ask in spec["asks"]]
    version = integer("version", spec["version"])
    return AskDocument(
        str(spec["collection"]),
        version,
        int(spec["step"]),
        tuple(ask for ask in asks if isinstance(ask, PublishedAsk)),
        float(spec["closes"]),
        tuple(ask for ask in asks if isinstance(ask, UnreadableAsk)),
    )


def _read_ask(spec: Any) -> PublishedAsk | UnreadableAsk:
    """An ask with its name. One that cannot be read is no reason to refuse those of other questions."""
    if set(spec) != {"question", "run", "step", "round", "part", "closes", "ask"}:
        raise ClientRefusal("document", "not an ask with its name")
    numbers = {name: integer(name, spec[name]) for name in ("run", "step", "round", "part")}
    name = AnswerName(str(spec["question"]), **numbers)
    try:
        ask = Ask.from_spec(spec["ask"])
    except Exception as error:  # whatever a hostile ask breaks
        field = error.field.partition(".")[0] if isinstance(error, InvalidValue) else ""
        reason = field if field in ("mechanism", "view", "cohort") else "ask"
        return UnreadableAsk(name, ClientRefusal(reason, str(error)))
    if ask.step != name.step:
        raise ClientRefusal("document", "an ask with the name of another")
    return PublishedAsk(name.question, ask, name.round, name.run, name.part)
