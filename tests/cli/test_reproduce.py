"""`hubbub reproduce`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import Result

from hubbub_papers import REPRODUCTIONS, reproduce

KEYS = {"row", "column", "paper", "ours", "note"}
NAME = "dissertation-table-3.2"


def test_list(answer: Callable[..., Any], hubbub: Callable[..., Result]) -> None:
    listed = answer("reproduce", "list")
    assert [entry["name"] for entry in listed] == list(REPRODUCTIONS)
    assert set(listed[0]) == {"name", "title", "repeats", "needs"}
    assert NAME in hubbub("reproduce", "list").stdout


def test_json(answer: Callable[..., Any], tmp_path: Path) -> None:
    rows = answer("reproduce", NAME, "--out", "here")
    assert rows == reproduce(NAME).to_dicts()
    assert set(rows[0]) == KEYS
    assert (tmp_path / "here" / f"{NAME}.csv").exists()


def test_the_table(hubbub: Callable[..., Result], tmp_path: Path) -> None:
    result = hubbub("reproduce", NAME)
    assert result.exit_code == 0
    assert "paper" in result.stdout
    assert "ours" in result.stdout
    saved = tmp_path / "build" / "reproduce" / f"{NAME}.csv"
    assert str(saved.relative_to(tmp_path)) in result.stderr
    assert saved.exists()


def test_a_pattern(answer: Callable[..., Any]) -> None:
    names = [name for name in REPRODUCTIONS if name.startswith("dissertation-table-3.")]
    assert len(names) > 1
    rows = answer("reproduce", "dissertation-table-3.*")
    assert {row["row"].partition(": ")[0] for row in rows} == set(names)
    assert all(set(row) == KEYS for row in rows)
