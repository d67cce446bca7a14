"""A clock in doubt is the first thing that every page says."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette

from hubbub.authoring import load_collection
from hubbub.authoring.toml import EXAMPLE
from hubbub.collection import Keys
from hubbub.dashboard.app import ServiceReader
from hubbub.dashboard.pages import routes
from hubbub.service.base.trusted_clock import ClockReading, TrustedClock
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service
from hubbub.service.store.sqlite import SqliteStore
from tests.dashboard.pages_outline import Outline
from tests.dashboard.pages_visit import ask

PAGES = ["/results/themes", "/results/themes/popular", "/ingest/themes", "/privacy/themes", "/collections/themes", "/"]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("days", "way"), [(40, "40 days ahead of"), (-2, "2 days behind"), (1096, "3 years ahead of")])
def test_every_page_says_that_the_clock_is_in_doubt_or_has_moved(path: str, days: int, way: str):
    reading = ClockReading(1e9, 100.0, "boot")
    clock = TrustedClock(None, hold=300.0, read=lambda: reading)
    # Two collections: an overview is a page of its own then.
    both = [load_collection(EXAMPLE), load_collection(EXAMPLE.replace('name = "themes"', 'name = "other"'))]
    collector = Collector(both, SqliteStore(":memory:"), clock=clock, keys=Keys.new())
    app = Starlette(routes=routes(ServiceReader(Service(collector))))

    def notices() -> list[str]:
        return [
            element.text for element in Outline(ask(app, path).text).all("p") if element.given.get("role") == "alert"
        ]

    assert notices() == []
    reading = ClockReading(1e9 + 86400 * days, 110.0, "boot")
    (doubt,) = notices()
    assert doubt.startswith("The clock is in doubt: it says ")
    assert way in doubt
    assert "goes on by 2001-09-09T01:46:50Z" in doubt
    assert "believed in 5 minutes" in doubt
    reading = ClockReading(1e9 + 86400 * days + 300, 410.0, "boot")
    (moved,) = notices()
    assert moved.startswith("The clock has moved")
    assert way in moved
    reading = ClockReading(1e9 + 311, 411.0, "boot")
    assert notices() == []
