"""Fixtures of the client's tests: a folder, in memory where that is possible."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    from tests.shared.killed_processes import SHELF

    with tempfile.TemporaryDirectory(dir=SHELF) as place:
        yield Path(place)


@pytest.fixture
def any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices adopt versions that promise less: then their ledger alone keeps the promises."""
    monkeypatch.setattr("hubbub.collection.safety.CLAUSES", {})
