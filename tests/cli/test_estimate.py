"""`hubbub estimate`, on files of its own and on the census."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import Result

KEYS = {
    "column",
    "n",
    "missing",
    "domain",
    "mechanism",
    "epsilon",
    "effective_epsilon",
    "spec_id",
    "bias",
    "for",
    "threshold",
    "rows",
}


@pytest.fixture
def towns(tmp_path: Path) -> str:
    lines = ["Rye,1"] * 600 + ["[bold]Bath,2"] * 300 + [",3"] * 100
    (tmp_path / "towns.csv").write_text("town,id\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return "towns.csv"


def test_json(answer: Callable[..., Any], towns: str) -> None:
    result = answer("estimate", towns, "--column", "town", "--epsilon", 6, "--seed", 1)
    assert set(result) == KEYS
    assert (result["column"], result["n"], result["missing"], result["domain"]) == ("town", 1000, 100, 3)
    assert (result["mechanism"], result["epsilon"], result["for"]) == ("GRR", 6.0, None)
    assert set(result["rows"][0]) == {"value", "truth", "estimate", "low", "high", "significant", "consistent"}
    assert {row["value"]: row["truth"] for row in result["rows"]} == {"Rye": 0.6, "[bold]Bath": 0.3, "(missing)": 0.1}
    # The standard error is 0.002: 0.02 is ten of them.
    assert all(abs(row["estimate"] - row["truth"]) < 0.02 for row in result["rows"])


def test_a_seed_repeats_and_none_does_not(answer: Callable[..., Any], towns: str) -> None:
    command = ("estimate", towns, "--column", "town", "--epsilon", 1)
    assert answer(*command, "--seed", 5) == answer(*command, "--seed", 5)
    # Two runs of so few people may agree by chance, about once in a thousand times; four do not.
    assert len({json.dumps(answer(*command)) for _ in range(4)}) > 1


@pytest.mark.parametrize("purpose", ["single", "frequent", "set"])
def test_for_a_purpose(answer: Callable[..., Any], towns: str, purpose: str) -> None:
    result = answer("estimate", towns, "-c", "town", "-e", 1, "-m", "olh", "--for", purpose, "--seed", 1)
    assert (result["mechanism"], result["for"]) == ("OLH", purpose)
    shares = np.array([row["consistent"] for row in result["rows"]])
    if purpose == "single":
        assert (shares >= 0).all()
    else:
        assert shares.sum() == pytest.approx(1)


def test_the_table_and_the_plot(hubbub: Callable[..., Result], tmp_path: Path, towns: str) -> None:
    result = hubbub("estimate", towns, "-c", "town", "-e", 1, "--for", "set", "--plot", "towns.png")
    assert result.exit_code == 0, result.output
    for message in ("1,000 reports through GRR, epsilon 1", "[bold]Bath", "60.00%", "consistent", "█", "◆"):
        assert message in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (tmp_path / "towns.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == "plot: towns.png\n"


def test_the_census(answer: Callable[..., Any], hubbub: Callable[..., Result], tmp_path: Path) -> None:
    from hubbub.data import adult

    column = adult()["education"].tolist()
    (tmp_path / "adult.csv").write_text("education\n" + "\n".join(column) + "\n", encoding="utf-8")
    result = answer("estimate", "adult.csv", "-c", "education", "-e", 1, "--seed", 1)
    assert (result["n"], result["domain"]) == (48_842, 16)
    assert result["rows"][0]["value"] == "HS-grad"
    assert "HS-grad" in hubbub("estimate", "adult.csv", "-c", "education", "-e", 1).stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-c", "twon", "-e", "1"], "column: got 'twon'"),
        (["-c", "town"], "--epsilon"),
        (["-e", "1"], "--column"),
        (["-c", "town", "-e", "0"], "epsilon: got 0.0"),
        (["-c", "town", "-e", "1", "-m", "OLL"], "did you mean OLH?"),
        (
            ["-c", "town", "-e", "1", "--for", "sets"],
            "for: got 'sets'; allowed: one of single, frequent, set (did you mean set?)",
        ),
        (["-c", "town", "-e", "1", "--plot", "x.doc"], "plot: got 'x.doc'"),
    ],
)
def test_what_is_refused(refused: Callable[..., str], towns: str, more: list[str], message: str) -> None:
    assert message in refused("estimate", towns, *more)
