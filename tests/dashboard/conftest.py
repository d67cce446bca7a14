"""What the tests of the pages share: a collector with weeks of answers and its pages."""

import pytest

from hubbub.service.collector.collector import Collector
from tests.dashboard.pages_fleet import three_weeks
from tests.dashboard.pages_visit import Get, pages_of


@pytest.fixture(scope="session")
def collector() -> Collector:
    """Three weeks of emoji and of telemetry."""
    return three_weeks()


@pytest.fixture(scope="session")
def get(collector: Collector) -> Get:
    """A page of the collector, for everyone."""
    return pages_of(collector)
