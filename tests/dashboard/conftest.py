"""What the tests of the pages share: a collector with weeks of answers and its pages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from hubbub.dashboard.app import ServiceReader
from hubbub.dashboard.pages import routes
from hubbub.service.collector.collector import Collector
from hubbub.service.http.service import Service

sys.path.insert(0, str(Path(__file__).parent))  # the tests share a fleet of devices
sys.path.insert(1, str(Path(__file__).parent.parent))


@pytest.fixture(scope="session")
def collector() -> Collector:
    """Three weeks of emoji and of telemetry."""
    from pages_fleet import three_weeks

    return three_weeks()


@pytest.fixture(scope="session")
def get(collector: Collector) -> Callable[[str], Any]:
    """A page of the collector, for everyone."""
    from pages_visit import ask

    app = Starlette(routes=routes(ServiceReader(Service(collector))))
    return lambda path: ask(app, path)
