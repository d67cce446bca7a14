"""The pages of a stream of changes: shares over time with their intervals, and what did not come."""

from __future__ import annotations

import numpy as np
from starlette.applications import Starlette

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import Keys, ManualClock
from hubbub.dashboard.app import ServiceReader
from hubbub.dashboard.pages import routes
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service
from hubbub.service.store import open_store
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.dashboard.pages_fleet import EXAMPLES
from tests.dashboard.pages_outline import Outline
from tests.dashboard.pages_visit import ask


def day(n: int, steps: int) -> Collector:
    """A number of people at home; from the third hour on a tenth of the reports is lost."""
    collection, rng = load_collection(EXAMPLES / "places.toml"), Random(seed=1)
    clock = ManualClock(collection.opens(2400) + 60.0)
    collector = Collector([collection], open_store("sqlite:///:memory:"), clock=clock, keys=Keys.new(), rng=rng)
    states = None
    for step in range(2400, 2400 + steps):
        clock.set(collection.opens(step) + 60.0)
        collector.tick()
        (window,) = collector.board.open(collection.collection_id, clock.now())
        symbols = window.ask.mechanism
        assert isinstance(symbols, ChangeStream)
        new = np.full(n, step == 2400)
        states = symbols.enroll(n, rng) if step == 2400 else states
        states, *said = symbols.step(states, step, np.zeros(n, dtype=np.int64), rng, new)
        reports, _ = symbols.with_enrolment(states, *said, new)
        reports = reports[len(reports) // 10 * (step > 2402) :]
        ids = rng.bytes(16 * len(reports))
        body = encode_batch(collection.name, collection.version, window.name, ids, reports)
        collector.ingest([collector.admit(BATCH_TYPE, body)])
    clock.set(collection.opens(2400 + steps) + 1000.0)
    collector.tick()
    return collector


def test_shares_over_time_and_what_was_lost():
    app = Starlette(routes=routes(ServiceReader(Service(day(20_000, 5)))))
    page = Outline(ask(app, "/results/places/where").text)
    text = " ".join(element.text for element in page.all("main"))
    assert "home is the most common" in text
    assert "home, step by step" in text
    assert "Devices enrolled" in text
    assert "the lost ones may have biased shares by up to" in text
    privacy = ask(app, "/privacy/places").text
    assert "1 once for 24 steps" in privacy
