"""Fixtures of the client's tests: a folder, in memory where that is possible, and real collectors."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.shared.killed_processes import SHELF

if TYPE_CHECKING:
    from tests.client.real_collector import OpenCollector


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=SHELF) as place:
        yield Path(place)


@pytest.fixture
def collect(folder: Path) -> "Iterator[OpenCollector]":
    """Start a real collector of a collection's text at a step."""
    from tests.client.real_collector import RealCollector

    started: list[RealCollector] = []

    def start(text: str, step: int = 7) -> RealCollector:
        started.append(RealCollector(folder, text, step))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices adopt versions that promise less: then their ledger alone keeps the promises."""
    monkeypatch.setattr("hubbub.collection.safety.CLAUSES", {})
