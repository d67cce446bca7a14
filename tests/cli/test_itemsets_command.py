"""`hubbub itemsets`, on files of every form."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

SETS = [["tea", "milk"]] * 2000 + [["milk"]] * 2000 + [["[b]rum"]] * 1000 + [[]] * 1000


def write(folder: Path, form: str) -> list[str]:
    """The file, and the options that read it."""
    if form == "dat":
        (folder / "sets.dat").write_text("\n".join(" ".join(items) for items in SETS) + "\n", encoding="utf-8")
        return ["sets.dat"]
    if form == "csv":
        lines = [f"{number},{';'.join(items)}" for number, items in enumerate(SETS)]
        (folder / "sets.csv").write_text("id,bought\n" + "\n".join(lines) + "\n", encoding="utf-8")
        return ["sets.csv", "--column", "bought", "--separator", ";"]
    rows = [{"who": number, "item": item} for number, items in enumerate(SETS) for item in items or [None]]
    (folder / "sets.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return ["sets.jsonl", "--column", "item", "--person", "who"]


@pytest.mark.parametrize("form", ["dat", "csv", "jsonl"])
def test_every_form_says_the_same(answer: Callable[..., Any], tmp_path: Path, form: str) -> None:
    result = answer("itemsets", *write(tmp_path, form), "--epsilon", 6, "--k", 4, "--seed", 1, "--truth")
    assert set(result) == {
        *("epsilon", "k", "n", "bias", "stopped", "smallest_named_share", "expected_false_positives"),
        *("itemsets", "rules"),
    }
    assert (result["n"], result["k"], result["stopped"]) == (6000, 4, None)
    by_items = {tuple(row["items"]): row for row in result["itemsets"]}
    assert {items: round(row["truth"], 3) for items, row in by_items.items()} == {
        ("milk",): 0.667,
        ("tea",): 0.333,
        ("milk", "tea"): 0.333,
        ("[b]rum",): 0.167,
    }
    assert all(row["low"] - 0.02 <= row["truth"] <= row["high"] + 0.02 for row in by_items.values())
    rule = next(rule for rule in result["rules"] if rule["given"] == ["tea"])
    assert rule["then"] == ["milk"]
    assert rule["confidence"]["high"] == 1.0
    assert rule["confidence"]["low"] > 0.7
    assert rule["lift"]["low"] < 1.5 < rule["lift"]["high"]


def test_the_table(hubbub: Callable[..., Result], tmp_path: Path) -> None:
    file = write(tmp_path, "dat")
    result = hubbub("itemsets", *file, "--epsilon", 6, "--k", 4, "--seed", 1)
    assert result.exit_code == 0, result.output
    assert "6,000 people, epsilon 6" in result.stdout
    assert "milk + tea" in result.stdout
    assert "[b]rum" in result.stdout
    assert "also has" in result.stdout
    assert "truth" not in result.stdout
    assert "truth" in hubbub("itemsets", *file, "--epsilon", 6, "--k", 4, "--truth").stdout


def test_items_alone(answer: Callable[..., Any], tmp_path: Path) -> None:
    result = answer("itemsets", *write(tmp_path, "dat"), "--epsilon", 6, "--k", 9, "--items", "--seed", 2)
    assert [row["items"] for row in result["itemsets"]] == [
        ["milk"],
        ["tea"],
        ["[b]rum"],
    ]  # k larger than all there are
    assert result["rules"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "1"], "k: got 1"),
        (["--epsilon", "0"], "epsilon: got 0"),
        (["--column", "a"], "column: got 'a'; allowed: nothing"),
        (["--separator", ""], "separator"),
    ],
)
def test_bad_options_are_refused(
    hubbub: Callable[..., Result], tmp_path: Path, options: list[str], message: str
) -> None:
    result = hubbub(
        "itemsets", *write(tmp_path, "dat"), *([] if "--epsilon" in options else ["--epsilon", "2"]), *options
    )
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.dat", b"", "a file with at least one row"),
        ("a.dat", b"tea\ntea tea\n", "a file of at least two"),
        ("a.txt", b"tea\n\xff\xfe\n", "a file in UTF-8"),
        ("a.csv", b"id,bought\n1,tea\n", "the column of the items"),
        ("a.pdf", b"tea milk", "the column of the items"),
    ],
)
def test_bad_files_are_refused(
    hubbub: Callable[..., Result], tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    result = hubbub("itemsets", name, "--epsilon", 2)
    assert result.exit_code == 2
    assert message in result.stderr


def test_no_file(hubbub: Callable[..., Result]) -> None:
    assert "a file that exists" in hubbub("itemsets", "none.dat", "--epsilon", 2).stderr


@pytest.mark.parametrize("options", [("--column", "item", "--person", "who"), ("--column", "item")])
def test_twins_of_a_name_are_one_item(answer: Callable[..., Any], tmp_path: Path, options: tuple[str, ...]) -> None:
    names = ("caf\u00e9", "cafe\u0301", "tea")
    rows = [f"{number},{names[number % 3]}" for number in range(3000)]
    (tmp_path / "twins.csv").write_text("who,item\n" + "\n".join(rows) + "\n", encoding="utf-8")
    result = answer("itemsets", "twins.csv", *options, "--items", "--epsilon", 6, "--k", 3, "--seed", 1, "--truth")
    assert {tuple(row["items"]): round(row["truth"], 3) for row in result["itemsets"]} == {
        ("caf\u00e9",): 0.667,
        ("tea",): 0.333,
    }


def test_what_cannot_be_found_is_no_share_above_all(hubbub: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "few.dat").write_text("\n".join(f"{n} {n + 1}" for n in range(200)), encoding="utf-8")
    result = " ".join(hubbub("itemsets", "few.dat", "--epsilon", 0.001, "--k", 2, "--seed", 1).output.split())
    assert "usually no item is found" in result
