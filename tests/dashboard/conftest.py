"""What the tests of the pages share: a collector with weeks of answers, its pages, and a browser."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette

from hubbub.dashboard.app import ServiceReader
from hubbub.dashboard.pages import routes
from hubbub.service.collector import Collector
from hubbub.service.service import Service

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parent))  # the tests share a fleet of devices

DAY = 86400


@pytest.fixture(scope="session")
def collector() -> Collector:
    """Three weeks of emoji and of telemetry, and seven hours of the day after; some reports were turned away."""
    from pages_fleet import emoji_fleet, serve, telemetry_fleet, trouble

    fleets = [emoji_fleet(12_000), telemetry_fleet(2_000)]
    made = serve(fleets, start=fleets[0].collection.opens(100), seconds=21 * DAY, then=7 * 3600)
    for fleet in fleets:
        fleet.answer(made)
    trouble(made, fleets[0])
    return made


@pytest.fixture(scope="session")
def get(collector: Collector) -> Callable[[str], Any]:
    """A page of the collector, for everyone."""
    from pages_visit import ask

    app = Starlette(routes=routes(ServiceReader(Service(collector))))
    return lambda path: ask(app, path)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser, without a window."""
    from playwright.sync_api import sync_playwright

    found = run_path(str(Path(__file__).parents[1] / "js" / "chromium.py"))
    program, environment = found["chromium"]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], env=environment)
        yield browser
        browser.close()
