"""A small collector for examples: one collection, a store in memory, a clock that stands still."""

from __future__ import annotations

from hubbub.authoring import load_collection
from hubbub.authoring.toml import EXAMPLE
from hubbub.collection import Keys, ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.store.sqlite import SqliteStore


def example_collector(now: float = 7200.0) -> Collector:
    """A collector of the example collection."""
    return Collector([load_collection(EXAMPLE)], SqliteStore(":memory:"), clock=ManualClock(now), keys=Keys.new())
