"""`hubbub data`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from hubbub.data import CATALOG, fetch

KEYS = {"name", "title", "content", "source", "terms", "package", "bytes", "sha256", "files", "stored"}


def test_list(answer: Callable[..., Any], hubbub: Callable[..., Result]) -> None:
    listed = answer("data", "list")
    assert [entry["name"] for entry in listed] == list(CATALOG)
    assert all(set(entry) == KEYS for entry in listed)
    shown = hubbub("data", "list").stdout
    assert "CC BY-SA 4.0" in shown
    assert "Emoji Sentiment Ranking" in shown


def test_get(answer: Callable[..., Any], hubbub: Callable[..., Result]) -> None:
    got = answer("data", "get", "emoji")
    assert set(got) == KEYS
    assert Path(got["stored"]) == fetch("emoji")
    result = hubbub("data", "get", "EMOJI")
    assert got["stored"] in result.stdout
    assert got["terms"] in result.stdout


def test_not_fetched_yet(
    answer: Callable[..., Any],
    hubbub: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HUBBUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    assert all(entry["stored"] is None for entry in answer("data", "list"))
    assert "hubbub data get retail" in hubbub("data", "list").stdout
    result = hubbub("data", "get", "emoji", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("hubbub: emoji: ")
