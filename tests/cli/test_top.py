"""`hubbub top`: what a study finds in a column of a file, and what it says of what it cannot find."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as pq
import pytest
from typer.testing import Result

SMALL = ("--longest", 4, "--query-limit", 1 << 13, "--seed", 1)


@pytest.fixture
def words(tmp_path: Path) -> str:
    twin = unicodedata.normalize("NFD", "né")
    lines = ["hub"] * 6000 + ["né"] * 1500 + [twin] * 1500 + ["[b]"] * 500 + [""] * 250 + ["much too long"] * 250
    (tmp_path / "words.csv").write_text("word,id\n" + "\n".join(f"{line},1" for line in lines) + "\n", encoding="utf-8")
    return "words.csv"


def test_json(answer: Callable[..., Any], words: str) -> None:
    result = answer("top", words, "--column", "word", "--k", 2, "--epsilon", 5, "--truth", *SMALL)
    assert (result["column"], result["n"], result["missing"], result["k"]) == ("word", 10_000, 250, 2)
    assert result["effective_epsilon"] <= result["epsilon"] == 5
    assert set(result["items"][0]) == {"value", "estimate", "low", "high", "truth"}
    assert {row["value"]: row["truth"] for row in result["items"]} == {"hub": 0.6, "né": pytest.approx(0.3)}
    for row in result["items"]:  # a standard error of 0.004 in the least of five groups: 0.03 is over six
        assert abs(row["estimate"] - row["truth"]) < 0.03
        assert row["low"] <= row["estimate"] <= row["high"]
    assert {row["value"] for row in result["absent"]} == {"(none)", "(too long, or no text)"}
    assert 0 < result["smallest_share"] < 0.1
    assert result["expected_false_positives"] < 0.1


def test_without_truth(answer: Callable[..., Any], words: str) -> None:
    command = ("top", words, "-c", "word", "-k", 1, "-e", 5, *SMALL)
    result = answer(*command)
    assert [set(row) for row in result["items"]] == [{"value", "estimate", "low", "high"}]
    assert result == answer(*command)


def test_table(hubbub: Callable[..., Result], words: str) -> None:
    result = hubbub("top", words, "-c", "word", "-k", 3, "-e", 6, "--truth", *SMALL)
    assert result.exit_code == 0, result.output
    for text in ("hub", "60.00%", "[b]", "10,000 people", "expected to be noise", "over 4 bytes"):
        assert text in result.output


def test_a_threshold_that_nothing_reaches(
    hubbub: Callable[..., Result], answer: Callable[..., Any], words: str
) -> None:
    command = ("top", words, "-c", "word", "-k", 2, "-e", 5, "--threshold", 0.9, *SMALL)
    assert "no prefix of" in answer(*command)["stopped"]
    assert answer(*command)["items"] == []
    assert "Nothing was found" in hubbub(*command).output


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("-k", 0), "k:"),
        (("-e", 0), "epsilon"),
        (("--longest", 0), "longest"),
        (("--threshold", 2), "threshold"),
        (("--query-limit", 3), "query_limit"),
        (("-c", "nothing"), "column"),
    ],
)
def test_what_is_refused(refused: Callable[..., str], words: str, options: tuple[object, ...], field: str) -> None:
    chosen = {"-c": "word", "-k": 2, "-e": 1, **dict(zip(options[::2], options[1::2], strict=True))}
    assert field in refused("top", words, *(part for pair in chosen.items() for part in pair))


def test_bytes_that_are_no_text_are_counted_as_such(
    hubbub: Callable[..., Result], answer: Callable[..., Any], tmp_path: Path
) -> None:
    cells = pyarrow.array([b"hub"] * 3000 + [b"\xff\xfe"] * 1000)
    pq.write_table(pyarrow.table({"word": cells}), tmp_path / "bytes.parquet")
    result = answer("top", "bytes.parquet", "-c", "word", "-k", 1, "-e", 6, "--truth", *SMALL)
    assert (result["items"][0]["value"], result["items"][0]["truth"]) == ("hub", 0.75)
    absent = {row["value"]: row["estimate"] for row in result["absent"]}
    assert absent["(too long, or no text)"] == pytest.approx(0.25, abs=0.1)  # a standard error of 0.01
    assert "a column in UTF-8" in hubbub("estimate", "bytes.parquet", "-c", "word", "-e", 1).output


def test_a_search_of_few_people_finds_nothing_reliably(hubbub: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("word\na\n", encoding="utf-8")
    result = " ".join(hubbub("top", "few.csv", "-c", "word", "-k", 1, "-e", 2, "--longest", 2).output.split())
    assert "Usually not found: any value" in result
    assert "1 groups" not in result
