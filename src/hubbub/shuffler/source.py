"""Reads the signed collection, and the signed ask of a batch, from the collector."""

from collections.abc import Iterable
from typing import Any

from hubbub.client.documents import parsed
from hubbub.client.upload import Transport, Unreachable
from hubbub.collection import SignedCollection
from hubbub.collection.admits import admits
from hubbub.collection.names import AnswerName
from hubbub.collection.safety import open_collection
from hubbub.collection.sealing import ASKS, open_sealed
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.protocols.ask import Ask


class SignedSource:
    """Fetches the documents of a collection, and refuses those that no trusted key signed."""

    def __init__(self, name: str, collector: Transport, trusted: bytes | Iterable[bytes]) -> None:
        self.name, self._collector = name, collector
        self._trusted = {trusted} if isinstance(trusted, bytes) else set(trusted)

    def read(self, document: str) -> SignedCollection:
        return open_collection(parsed(document.encode()), self._trusted)

    def fetch(self, known: SignedCollection | None) -> tuple[SignedCollection, str]:
        """The collection that is served, and its document. An older version, or a changed one, is refused."""
        document = self._get(f"/v1/collections/{self.name}").decode(errors="replace")
        offered = self.read(document)
        if offered.name != self.name:
            raise DecodeError("collection", offered.name, self.name)
        if known is not None and offered.version < known.version:
            raise DecodeError("version", offered.version, f"{known.version} or newer")
        if known is not None and offered.version == known.version and offered.collection_id != known.collection_id:
            raise DecodeError("version", offered.version, "what it was: a version never changes")
        return offered, document

    def ask(self, answer: AnswerName, collection: SignedCollection) -> Ask:
        """The ask of a batch. `InvalidValue` if the signed terms do not allow it.

        Any other fault of the document may be gone at the next request: `Unreachable`.
        """
        path = f"/v1/collections/{self.name}/asks/{answer}"
        try:
            spec = ASKS.upgrade(open_sealed(parsed(self._get(path)), self._trusted))
            named = {AnswerName(*(row[key] for key in AnswerName._fields)): row["ask"] for row in spec["asks"]}
            version, ask = (spec["collection"], spec["version"]), Ask.from_spec(named[answer])
        except (LookupError, TypeError, AttributeError, InvalidValue) as error:
            raise Unreachable(f"GET {path}: {error}") from None
        if version != (collection.name, collection.version):
            raise Unreachable(f"GET {path}: asks of another version")
        place: dict[str, Any] = {"run": answer.run, "round": answer.round, "part": answer.part}
        place |= {"minimum_arc": collection.minimum_arc, "fields": collection.fields}
        reason = admits(collection.terms[answer.question], ask, **place)
        if reason is not None:
            raise InvalidValue("ask", reason, f"what the signed terms of {answer.question} allow")
        return ask

    def _get(self, path: str) -> bytes:
        response = self._collector.request("GET", path, {"Accept": "application/json"})
        if response.status != 200:
            raise Unreachable(f"GET {path}: status {response.status}")
        return response.body
