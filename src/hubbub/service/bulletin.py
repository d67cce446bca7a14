"""The signed documents that devices fetch, as bytes, and how long they are valid."""

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
    """A document's bytes, their ETag, and the Unix time until which it is valid (None: for good)."""

    body: bytes
    etag: str
    until: float | None = None

    def fresh_seconds(self, now: float, *, most: int) -> int:
        """How many seconds a cache may keep the document."""
        return most if self.until is None else min(max(int(self.until - now), 0), most)


def collection_bulletin(collection: Collection, private: bytes) -> Bulletin:
    """The signed collection."""
    return _sealed(collection.spec(), private, None)


def asks_bulletin(
    collection: Collection, open_asks: list[OpenAsk], *, step: int, until: float, private: bytes
) -> Bulletin:
    """The signed open asks, each with the name of its answers, and until when they are all."""
    asks: list[Json] = []
    for ask in open_asks:
        name: dict[str, Json] = dict(ask.name._asdict())
        asks.append({**name, "closes": ask.closes, "ask": ask.ask.spec()})
    spec: dict[str, Json] = {
        "format": ASKS.version,
        "collection": collection.name,
        "version": collection.version,
        "step": step,
        "asks": asks,
        "closes": min((ask.closes for ask in open_asks), default=until),
    }
    return _sealed(spec, private, until)


def _sealed(spec: Json, private: bytes, until: float | None) -> Bulletin:
    document = seal(spec, private)
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return Bulletin(body, tag_of(document), until)
