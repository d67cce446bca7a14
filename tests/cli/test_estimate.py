"""`hubbub estimate`, on files of its own and on the census; `hubbub data`."""

import json
from pathlib import Path

import numpy as np
import pytest

from hubbub.consistency import METHODS
from hubbub.consistency.guide import method_named
from hubbub.data import CATALOG, fetch
from tests.cli.commands import Hubbub

KEYS = {"column", "n", "missing", "domain", "mechanism", "epsilon", "effective_epsilon", "spec_id", "bias"}
CONSISTENT = ("consistent", "consistent_low", "consistent_high")
KEYS |= {"consistency", "threshold", "rows"}


@pytest.fixture
def towns(hubbub: Hubbub) -> Path:
    return hubbub.write("towns.csv", "town,id\n" + "Rye,1\n" * 600 + "[bold]Bath,2\n" * 300 + ",3\n" * 100)


def test_json(hubbub: Hubbub, towns: Path) -> None:
    result = hubbub.answer("estimate", towns, "--column", "town", "--epsilon", 6, "--seed", 1)
    assert set(result) == KEYS
    assert (result["column"], result["n"], result["missing"], result["domain"]) == ("town", 1000, 100, 3)
    assert (result["mechanism"], result["epsilon"], result["consistency"]) == ("GRR", 6.0, None)
    assert set(result["rows"][0]) == {"value", "truth", "estimate", "low", "high", "significant", *CONSISTENT}
    assert {row["value"]: row["truth"] for row in result["rows"]} == {"Rye": 0.6, "[bold]Bath": 0.3, "(missing)": 0.1}
    # The standard error is 0.002: 0.02 is ten of them.
    assert all(abs(row["estimate"] - row["truth"]) < 0.02 for row in result["rows"])


def test_a_seed_repeats_and_none_does_not(hubbub: Hubbub, towns: Path) -> None:
    command = ("estimate", towns, "--column", "town", "--epsilon", 1)
    assert hubbub.answer(*command, "--seed", 5) == hubbub.answer(*command, "--seed", 5)
    # Two runs of so few people may agree by chance, about once in a thousand times; four do not.
    assert len({json.dumps(hubbub.answer(*command)) for _ in range(4)}) > 1


@pytest.mark.parametrize(("purpose", "method"), [("single", "base-cut"), ("frequent", "norm"), ("set", "power-ns")])
def test_for_a_purpose(hubbub: Hubbub, towns: Path, purpose: str, method: str) -> None:
    result = hubbub.answer("estimate", towns, "-c", "town", "-e", 1, "-m", "olh", "--for", purpose, "--seed", 1)
    assert (result["mechanism"], result["consistency"]) == ("OLH", method)
    shares = np.array([row["consistent"] for row in result["rows"]])
    if purpose == "single":
        assert (shares >= 0).all()
    else:
        assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", [*METHODS, "base-cut:1"])
def test_every_method_by_name_with_intervals_that_hold_the_share(hubbub: Hubbub, towns: Path, name: str) -> None:
    command = ("estimate", towns, "-c", "town", "-e", 1, "-m", "olh", "--seed", 1, "--consistency", name)
    result, method = hubbub.answer(*command), method_named(name)
    shares, low, high = (np.array([row[key] for row in result["rows"]]) for key in CONSISTENT)
    assert (low <= shares).all()
    assert (shares <= high).all()
    assert not method.non_negative or (shares >= 0).all()
    assert method.sums_to_one != "yes" or shares.sum() == pytest.approx(1)
    assert name != "base-cut:1" or np.count_nonzero(shares) == 1
    text = " ".join(hubbub(*command).stdout.split())
    assert f"Consistent shares by {method.title}: {method.does}." in text
    assert "of that of the estimates in all; " in text


SETS = ("--set", "Rye,(missing)", "--set", "[bold]Bath", "--seed", 1)


def test_sets_of_values_are_answered_by_the_method_that_errs_least_for_them(hubbub: Hubbub, towns: Path) -> None:
    command = ("estimate", towns, "-c", "town", "-e", 1, "-m", "olh", *SETS)
    result = hubbub.answer(*command)
    assert set(result) == KEYS | {"sets", "tried"}
    assert {row["set"]: round(row["truth"], 9) for row in result["sets"]} == {"Rye,(missing)": 0.7, "[bold]Bath": 0.3}
    assert all(row["low"] < row["truth"] < row["high"] for row in result["sets"])
    assert result["consistency"] == next(iter(result["tried"]))
    assert list(result["tried"].values()) == sorted(result["tried"].values())
    assert set(result["tried"]) == set(METHODS)
    consistent = {row["value"]: row["consistent"] for row in result["rows"]}
    assert [row["consistent"] for row in result["sets"]] == pytest.approx(
        [consistent["Rye"] + consistent["(missing)"], consistent["[bold]Bath"]]
    )
    shown = hubbub.shown(*command)
    assert f"consistent by {result['consistency']}, which errs least on a synthetic population" in shown
    assert "Rye,(missing)" in shown


def test_sets_by_a_named_method(hubbub: Hubbub, towns: Path) -> None:
    result = hubbub.answer("estimate", towns, "-c", "town", "-e", 1, *SETS, "--consistency", "post-pos")
    assert (result["consistency"], result["tried"]) == ("post-pos", None)
    assert [row["consistent"] for row in result["sets"]] == [max(row["estimate"], 0) for row in result["sets"]]


def test_the_table_and_the_plot(hubbub: Hubbub, tmp_path: Path, towns: Path) -> None:
    result = hubbub("estimate", towns, "-c", "town", "-e", 1, "--for", "set", "--plot", "towns.png")
    assert result.exit_code == 0, result.output
    for message in ("1,000 reports through GRR, epsilon 1", "[bold]Bath", "60.00%", "consistent", "█", "◆"):
        assert message in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (tmp_path / "towns.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == "plot: towns.png\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-c twon -e 1", "column: got 'twon'"),
        ("-c town", "--epsilon"),
        ("-e 1", "--column"),
        ("-c town -e 0", "epsilon: got 0.0"),
        ("-c town -e 1 -m OLL", "did you mean OLH?"),
        ("-c town -e 1 --for sets", "for: got 'sets'; allowed: one of single, frequent, set (did you mean set?)"),
        ("-c town -e 1 --consistency norm-sum", "consistency: got 'norm-sum'; allowed: one of base, base-pos,"),
        ("-c town -e 1 --consistency norm --for set", "consistency: got 'norm'; allowed: nothing next to --for"),
        ("-c town -e 1 --set Rye,Ely", "set: got 'Ely'; allowed: values of the column town, joined by commas"),
        ("-c town -e 1 --plot x.doc", "plot: got 'x.doc'"),
    ],
)
def test_what_is_refused(hubbub: Hubbub, towns: Path, options: str, message: str) -> None:
    assert message in hubbub.refused("estimate", towns, *options.split())


ENTRY_KEYS = {"name", "title", "content", "source", "terms", "package", "bytes", "sha256", "files", "stored"}


def test_list(hubbub: Hubbub) -> None:
    listed = hubbub.answer("data", "list")
    assert [entry["name"] for entry in listed] == list(CATALOG)
    assert all(set(entry) == ENTRY_KEYS for entry in listed)
    shown = hubbub.shown("data", "list")
    assert "CC BY-SA 4.0" in shown
    assert "Emoji Sentiment Ranking" in shown


def test_get(hubbub: Hubbub) -> None:
    got = hubbub.answer("data", "get", "emoji")
    assert set(got) == ENTRY_KEYS
    assert Path(got["stored"]) == fetch("emoji")
    result = hubbub("data", "get", "EMOJI")
    assert got["stored"] in result.stdout
    assert got["terms"] in result.stdout


def test_not_fetched_yet(hubbub: Hubbub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    assert all(entry["stored"] is None for entry in hubbub.answer("data", "list"))
    assert "hubbub data get retail" in hubbub("data", "list").stdout
    result = hubbub("data", "get", "emoji", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("hubbub: emoji: ")
