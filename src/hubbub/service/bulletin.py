"""What devices fetch: sealed documents, ready as bytes, with how long they hold."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hubbub.collection import Collection, seal
from hubbub.collection.formats import ASKS
from hubbub.collection.sealing import tag_of
from hubbub.core.spec import Json
from hubbub.service.open_asks import OpenAsk


@dataclass(frozen=True)
class Bulletin:
    """A document's bytes, their ETag, and the Unix time until which it holds (None: for good)."""

    body: bytes
    etag: str
    until: float | None = None

    def fresh_seconds(self, now: float, *, most: int) -> int:
        """How long a cache may keep it.

        Example:
            >>> Bulletin(b"", "", until=100.5).fresh_seconds(90.0, most=60)
            10
        """
        return most if self.until is None else min(max(int(self.until - now), 0), most)


def collection_bulletin(collection: Collection, private: bytes) -> Bulletin:
    """The collection itself.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> collection_bulletin(load_collection(EXAMPLE), b"k" * 32).body[:12]
        b'{"payload":"'
    """
    return _sealed(collection.spec(), private, None)


def asks_bulletin(
    collection: Collection, opened: list[OpenAsk], *, step: int, until: float, private: bytes
) -> Bulletin:
    """The asks that are open, each with the name that its answers have, and when that changes.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> asks_bulletin(load_collection(EXAMPLE), [], step=3, until=7200.0, private=b"k" * 32).until
        7200.0
    """
    asks: list[Json] = []
    for ask in opened:
        name: dict[str, Json] = dict(ask.name._asdict())
        asks.append({**name, "closes": ask.closes, "ask": ask.ask.spec()})
    spec: dict[str, Json] = {
        "format": ASKS.version,
        "collection": collection.name,
        "version": collection.version,
        "step": step,
        "asks": asks,
        "closes": min((ask.closes for ask in opened), default=until),
    }
    return _sealed(spec, private, until)


def _sealed(spec: Json, private: bytes, until: float | None) -> Bulletin:
    document = seal(spec, private)
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return Bulletin(body, tag_of(document), until)
