"""`hubbub top` and `hubbub itemsets`: what a study finds in a file, and what it says of what it cannot find."""

import json
import unicodedata
from pathlib import Path

import pyarrow
import pyarrow.parquet as pq
import pytest

from tests.cli.commands import Hubbub

SMALL = ("--longest", 4, "--query-limit", 1 << 13, "--seed", 1)


@pytest.fixture
def words(hubbub: Hubbub) -> Path:
    twin = unicodedata.normalize("NFD", "né")
    counts = {"hub": 6000, "né": 1500, twin: 1500, "[b]": 500, "": 250, "much too long": 250}
    return hubbub.write("words.csv", "word,id\n" + "".join(f"{word},1\n" * n for word, n in counts.items()))


def test_json(hubbub: Hubbub, words: Path) -> None:
    result = hubbub.answer("top", words, "--column", "word", "--k", 2, "--epsilon", 5, "--truth", *SMALL)
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


def test_without_truth(hubbub: Hubbub, words: Path) -> None:
    command = ("top", words, "-c", "word", "-k", 1, "-e", 5, *SMALL)
    result = hubbub.answer(*command)
    assert [set(row) for row in result["items"]] == [{"value", "estimate", "low", "high"}]
    assert result == hubbub.answer(*command)


def test_table(hubbub: Hubbub, words: Path) -> None:
    result = hubbub("top", words, "-c", "word", "-k", 3, "-e", 6, "--truth", *SMALL)
    assert result.exit_code == 0, result.output
    for text in ("hub", "60.00%", "[b]", "10,000 people", "expected to be noise", "over 4 bytes"):
        assert text in result.output


def test_a_threshold_that_nothing_reaches(hubbub: Hubbub, words: Path) -> None:
    command = ("top", words, "-c", "word", "-k", 2, "-e", 5, "--threshold", 0.9, *SMALL)
    assert "no prefix of" in hubbub.answer(*command)["stopped"]
    assert hubbub.answer(*command)["items"] == []
    assert "Nothing was found" in hubbub(*command).output


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ("-c word -e 1 -k 0", "k:"),
        ("-c word -e 0 -k 2", "epsilon"),
        ("-c word -e 1 -k 2 --longest 0", "longest"),
        ("-c word -e 1 -k 2 --threshold 2", "threshold"),
        ("-c word -e 1 -k 2 --query-limit 3", "query_limit"),
        ("-c nothing -e 1 -k 2", "column"),
    ],
)
def test_what_is_refused(hubbub: Hubbub, words: Path, options: str, field: str) -> None:
    assert field in hubbub.refused("top", words, *options.split())


def test_bytes_that_are_no_text_are_counted_as_such(hubbub: Hubbub, tmp_path: Path) -> None:
    cells = pyarrow.array([b"hub"] * 3000 + [b"\xff\xfe"] * 1000)
    pq.write_table(pyarrow.table({"word": cells}), tmp_path / "bytes.parquet")
    result = hubbub.answer("top", "bytes.parquet", "-c", "word", "-k", 1, "-e", 6, "--truth", *SMALL)
    assert (result["items"][0]["value"], result["items"][0]["truth"]) == ("hub", 0.75)
    absent = {row["value"]: row["estimate"] for row in result["absent"]}
    assert absent["(too long, or no text)"] == pytest.approx(0.25, abs=0.1)  # a standard error of 0.01
    assert "a column in UTF-8" in hubbub("estimate", "bytes.parquet", "-c", "word", "-e", 1).output


def test_a_search_of_few_people_finds_nothing_reliably(hubbub: Hubbub) -> None:
    few = hubbub.write("few.csv", "word\na\n")
    result = " ".join(hubbub("top", few, "-c", "word", "-k", 1, "-e", 2, "--longest", 2).output.split())
    assert "Usually not found: any value" in result
    assert "1 groups" not in result


KEYS = ("epsilon", "k", "n", "bias", "stopped", "smallest_named_share", "expected_false_positives")
SETS: list[list[str]] = [["tea", "milk"]] * 2000 + [["milk"]] * 2000 + [["[b]rum"]] * 1000 + [[]] * 1000


def write(hubbub: Hubbub, form: str) -> list[object]:
    """The file, and the options that read it."""
    if form == "dat":
        return [hubbub.write("sets.dat", "".join(" ".join(items) + "\n" for items in SETS))]
    if form == "csv":
        lines = [f"{number},{';'.join(items)}\n" for number, items in enumerate(SETS)]
        return [hubbub.write("sets.csv", "id,bought\n" + "".join(lines)), "--column", "bought", "--separator", ";"]
    rows = [{"who": number, "item": item} for number, items in enumerate(SETS) for item in items]
    rows += [{"who": number, "item": None} for number, items in enumerate(SETS) if not items]
    return [hubbub.write("sets.jsonl", "\n".join(map(json.dumps, rows))), "--column", "item", "--person", "who"]


@pytest.mark.parametrize("form", ["dat", "csv", "jsonl"])
def test_every_form_says_the_same(hubbub: Hubbub, form: str) -> None:
    result = hubbub.answer("itemsets", *write(hubbub, form), "--epsilon", 6, "--k", 4, "--seed", 1, "--truth")
    assert set(result) == {*KEYS, "itemsets", "rules"}
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


def test_the_table(hubbub: Hubbub) -> None:
    options = ["itemsets", *write(hubbub, "dat"), "--epsilon", 6, "--k", 4, "--seed", 1]
    shown = hubbub.shown(*options)
    for text in ("6,000 people, epsilon 6", "milk + tea", "[b]rum", "also has"):
        assert text in shown
    assert "truth" not in shown
    assert "truth" in hubbub.shown(*options, "--truth")


def test_items_alone_when_k_is_more_than_there_are(hubbub: Hubbub) -> None:
    result = hubbub.answer("itemsets", *write(hubbub, "dat"), "--epsilon", 6, "--k", 9, "--items", "--seed", 2)
    assert [row["items"] for row in result["itemsets"]] == [["milk"], ["tea"], ["[b]rum"]]
    assert result["rules"] == []


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.dat", "tea milk\n", ["--k", "1"], "k: got 1"),
        ("a.dat", "tea milk\n", ["--epsilon", "0"], "epsilon: got 0"),
        ("a.dat", "tea milk\n", ["--column", "a"], "column: got 'a'; allowed: nothing"),
        ("a.dat", "tea milk\n", ["--separator", ""], "separator"),
        ("a.dat", "", [], "a file with at least one row"),
        ("a.dat", "tea\ntea tea\n", [], "a file of at least two"),
        ("a.txt", "tea\n\udcff\udcfe\n", [], "a file in UTF-8"),
        ("a.csv", "id,bought\n1,tea\n", [], "the column of the items"),
        ("a.pdf", "tea milk", [], "the column of the items"),
        ("../none.dat", "", [], "a file that exists"),
    ],
)
def test_bad_files_and_options_are_refused(hubbub, name, content, options, message) -> None:
    (hubbub.folder / Path(name).name).write_bytes(content.encode(errors="surrogateescape"))
    assert message in hubbub.refused("itemsets", name, "--epsilon", 2, *options)


@pytest.mark.parametrize("options", [("--column", "item", "--person", "who"), ("--column", "item")])
def test_twins_of_a_name_are_one_item(hubbub: Hubbub, options: tuple[str, ...]) -> None:
    names = ("caf\u00e9", "cafe\u0301", "tea")
    rows = [f"{number},{names[number % 3]}" for number in range(3000)]
    twins = ("itemsets", hubbub.write("twins.csv", "\n".join(["who,item", *rows, ""])), "--items", *options)
    result = hubbub.answer(*twins, "--epsilon", 6, "--k", 3, "--seed", 1, "--truth")
    assert {tuple(row["items"]): round(row["truth"], 3) for row in result["itemsets"]} == {
        ("caf\u00e9",): 0.667,
        ("tea",): 0.333,
    }


def test_what_cannot_be_found_is_no_share_above_all(hubbub: Hubbub) -> None:
    few = hubbub.write("few.dat", "\n".join(f"{n} {n + 1}" for n in range(200)))
    assert "usually no item is found" in hubbub.shown("itemsets", few, "--epsilon", 0.001, "--k", 2, "--seed", 1)
