"""What the tests of the pages share: a collector with weeks of answers and its pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette

from hubbub.dashboard.app import ServiceReader
from hubbub.dashboard.pages import routes
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service


@pytest.fixture(scope="session")
def collector() -> Collector:
    """Three weeks of emoji and of telemetry."""
    from tests.dashboard.pages_fleet import three_weeks

    return three_weeks()


@pytest.fixture(scope="session")
def get(collector: Collector) -> Callable[[str], Any]:
    """A page of the collector, for everyone."""
    from tests.dashboard.pages_visit import ask

    app = Starlette(routes=routes(ServiceReader(Service(collector))))
    return lambda path: ask(app, path)
