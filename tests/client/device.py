"""Devices for the tests: a client on a clock that is moved by hand, against a local server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hubbub.client import Client
from hubbub.collection import ManualClock
from hubbub.random.source import Random
from tests.client.local_server import KEYS, LocalServer
from tests.shared.small_collections import collection_text

HOUR = 3600
MEMO = collection_text(
    privacy={"user": 7.0, "minimum_batch": 20},
    fields={"home": {"kind": "ordinal", "size": 6}},
    questions={"page": {"kind": "memo", "field": "home", "epsilon": 1.0, "permanent": 2.0}},
)


def device(folder: Path, server: Any, clock: ManualClock, **options: Any) -> Client:
    arguments = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "survey", **options}
    return Client(folder, server, KEYS.public, **arguments)


def begin(server: LocalServer, clock: ManualClock, step: int) -> None:
    """Go to the start of a step, and publish its asks."""
    clock.set(server.collection.opens(step) + 1.0)
    server.begin(step)


def live(client: Client, server: LocalServer, clock: ManualClock, step: int, home: int | None) -> int:
    begin(server, clock, step)
    if home is not None:
        client.record("home", home)
    reports = client.tick()
    assert client.upload() == reports
    return reports


def answers(client: Client) -> dict[int, bytes]:
    """The permanent answers in the client's file, by key."""
    collection = client._current.collection
    assert collection is not None
    with client._store.transaction():
        accounts = {terms.account for terms in collection.terms.values() if terms.account != "asks"}
        states = [stored.state for account in accounts if (stored := client._store.state(account)) is not None]
    memos: dict[int, bytes] = {}
    for state in states:
        columns = msgspec.msgpack.decode(state)[3]
        (slots, width), answers = columns["answers"]
        keys = np.frombuffer(columns["keys"][1], dtype="<i8")
        memos |= {int(key) - 1: answers[at * width : (at + 1) * width] for at, key in enumerate(keys)}
        assert len(keys) == slots
    return memos


def seeded(seed: int | str) -> Random:
    return Random(seed=seed)
