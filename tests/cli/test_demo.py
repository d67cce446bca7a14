"""`hubbub demo --once`, on the real emoji and without them; the live one is in tests/demo/test_live.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from hubbub.mechanisms import FAMILIES

KEYS = {
    "source",
    "n",
    "domain",
    "mechanism",
    "epsilon",
    "effective_epsilon",
    "report_bytes",
    "shards",
    "identical",
    "sketch_sha256",
    "threshold",
    "clients",
    "covered",
    "top",
    "others",
    "error",
    "private",
    "statement",
    "files",
}


def test_json(answer: Callable[..., Any], tmp_path: Path) -> None:
    result = answer("demo", "--once", "--n", 2000, "--epsilon", 4, "--out", "results")
    assert set(result) == KEYS
    assert (result["n"], result["domain"], result["epsilon"], result["mechanism"]) == (2000, 969, 4.0, "OUE")
    assert "emoji" in result["source"]
    assert result["identical"]
    assert len(result["clients"]) == 5
    assert all(len(bytes.fromhex(client["sent"])) == result["report_bytes"] for client in result["clients"])
    assert result["top"][0]["name"] == "face with tears of joy"
    assert set(result["top"][0]) == {"value", "name", "truth", "estimate", "low", "high", "significant"}
    assert {other["mechanism"] for other in result["others"]} == set(FAMILIES["frequency"]) - {"Measured"}
    assert result["private"]["ok"]
    assert [Path(file).name for file in result["files"]] == ["demo.png", "demo.json", "statement.txt"]
    assert (tmp_path / "results" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "results" / "demo.json").read_text(encoding="utf-8")) == result
    assert (tmp_path / "results" / "statement.txt").read_text(encoding="utf-8").strip() == result["statement"]


def test_the_story(hubbub: Callable[..., Result], tmp_path: Path) -> None:
    result = hubbub("demo", "--once", "--n", 300, "--seed", 2)
    assert result.exit_code == 0, result.output
    for text in ("emoji in tweets", "belief before", "the same", "95% interval", "SubsetSelection", "spends epsilon 1"):
        assert text in result.stdout
    assert "hubbub plan" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (tmp_path / "build" / "demo" / "demo.png").exists()


def test_without_the_emoji_it_says_so(
    answer: Callable[..., Any], hubbub: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    result = hubbub("demo", "--once", "--n", 300, "--json")
    assert result.exit_code == 0
    assert "so these people are invented" in result.stderr
    told = json.loads(result.stdout)
    assert "Zipf" in told["source"]
    assert told["top"][0]["name"].startswith("value ")


def test_what_belongs_to_one_of_the_two_is_refused_with_the_other(hubbub: Callable[..., Result]) -> None:
    result = hubbub("demo", "--n", 300)
    assert result.exit_code == 2
    assert "--n: got '300'; allowed: nothing, unless --once is given too" in result.stderr
