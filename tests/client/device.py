"""A small world for the client's tests: a local server, a clock that is moved by hand, and devices in folders."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hubbub.client import Client, Transport
from hubbub.client.store import DeviceStore
from hubbub.collection import ManualClock, SignedCollection
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from tests.client.local_server import KEYS, TEXT, LocalServer, survey
from tests.shared.small_collections import THEME, collection_text

HOUR = 3600
PAGE = {"kind": "memo", "field": "home", "epsilon": 1.0, "permanent": 2.0}
HOME = {"kind": "ordinal", "size": 6}
MEMO = collection_text(privacy={"user": 7.0, "minimum_batch": 20}, fields={"home": HOME}, questions={"page": PAGE})
MIXED = collection_text(
    privacy={"user": 12.0, "minimum_batch": 20},
    fields={"home": HOME, "theme": THEME},
    questions={"page": PAGE, "popular": {"kind": "histogram", "field": "theme", "epsilon": 0.5}},
)
"""A memo and a histogram."""


def device(folder: Path, server: str | Transport, clock: ManualClock, **options: Any) -> Client:
    arguments = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "survey", **options}
    return Client(folder, server, KEYS.public, **arguments)


class World:
    """A server of a collection, or of a text whose lines may be changed (see `survey`), and folders of devices."""

    def __init__(self, folder: Path, served: Collection | str = TEXT, **changes: str) -> None:
        self.folder, self.clock = folder, ManualClock()
        self.server = LocalServer(survey(served, **changes) if isinstance(served, str) else served)

    @property
    def collection(self) -> Collection:
        return self.server.collection

    def device(self, name: str = "", **options: Any) -> Client:
        return device(self.folder / name, self.server, self.clock, **options)

    def begin(self, step: int) -> None:
        """Go to the start of a step, and publish its asks."""
        self.clock.set(self.collection.opens(step) + 1.0)
        self.server.begin(step)

    def at(self, step: int, name: str = "", **options: Any) -> Client:
        """Open a device at the start of a step."""
        self.begin(step)
        return self.device(name, **options)

    def publish(self, *asks: tuple[str, Ask], seconds: float = 1.0, **changes: Any) -> None:
        """Publish these asks of questions, for some seconds from now."""
        step = self.collection.step_at(self.clock.now())
        self.server.publish_asks(list(asks), step, self.clock.now() + seconds, changes)

    def serve(self, served: Collection | str, **changes: str) -> None:
        """Begin with a new version at the address of the old."""
        collection = survey(served, **changes) if isinstance(served, str) else served
        self.server.__dict__.update(LocalServer(collection, self.server.keys).__dict__)

    def live(self, client: Client, step: int, **values: Any) -> int:
        """Let a device live through a step in which some values are recorded; how many reports it makes and sends."""
        self.begin(step)
        for field, value in values.items():
            client.record(field, value)
        reports = client.tick()
        assert client.upload() == reports
        return reports

    def spend(self, steps: Iterable[int], name: str = "") -> int:
        """Open a device for some steps, and close it; how many reports it makes."""
        with self.device(name) as client:
            return sum(self.live(client, step) for step in steps)


def refused(client: Client) -> dict[str, int]:
    """How often something was refused, by the reason."""
    counts = client.status().counts
    return {name.removeprefix("refused: "): count for name, count in counts.items() if name.startswith("refused: ")}


def store_of(client: Client) -> DeviceStore:
    """What is in the client's file."""
    return client._store


def rows_of(client: Client, query: str) -> list[Any]:
    """The rows of the client's file that a query gives."""
    store = store_of(client)
    with store.transaction():
        return store._run(query)


def collection_of(client: Client) -> SignedCollection:
    """The version that is in force."""
    collection = client._current.collection
    assert collection is not None
    return collection


def look_again(client: Client) -> None:
    """Have the client fetch asks at once, though it has some of this moment, or was refused before."""
    client._current.asks = client._current._pause = None
    client._current._backoff.succeeded()


def answers(client: Client) -> dict[int, bytes]:
    """The permanent answers in the client's file, by key."""
    store = store_of(client)
    with store.transaction():
        accounts = {terms.account for terms in collection_of(client).terms.values() if terms.account != "asks"}
        states = [stored.state for account in accounts if (stored := store.state(account)) is not None]
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
