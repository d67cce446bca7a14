"""A collector that clients talk to without a network: what its routes do, in the same process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from hubbub.client import Response
from hubbub.collection import Collection, Keys, ManualClock

pytest.importorskip("hubbub.service.collector.collector")  # a device has no server

from hubbub.service.collector.collector import Collector
from hubbub.service.store import open_store

KEYS = Keys(b"k" * 32)


def respond(collector: Collector, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
    """What a collector answers."""
    if body is not None:
        (receipt,) = collector.ingest([collector.admit(headers["Content-Type"], body)])
        rejected = [{"id": report, "reason": reason} for report, reason in receipt.rejected]
        counted = {"accepted": receipt.accepted, "duplicates": receipt.duplicates, "rejected": rejected}
        return Response(200, {}, json.dumps(counted).encode())
    document = (collector.asks if path.endswith("/asks") else collector.specs)[path.split("/")[3]]
    if headers.get("If-None-Match") == document.etag:
        return Response(304, {"etag": document.etag}, b"")
    return Response(200, {"etag": document.etag}, document.body)


class InProcess:
    """A transport to a collector of one collection. It can begin again, from its store."""

    def __init__(self, collection: Collection, clock: ManualClock, path: Any, **options: Any) -> None:
        self.collection, self.path, self.options = collection, path, {"clock": clock, "keys": KEYS, **options}
        self.begin()

    def begin(self) -> None:
        self.store = open_store(f"sqlite:///{self.path}")
        self.collector = Collector([self.collection], self.store, **self.options)

    def restart(self) -> None:
        self.store.close()
        self.begin()

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        return respond(self.collector, path, headers, body)
