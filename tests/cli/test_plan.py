"""`hubbub plan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from hubbub.planning.plan import plan
from hubbub.planning.ranges import choose_ranges
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.rehearse.numbers import compare_numbers

EXAMPLES = Path(__file__).parents[2] / "examples"

SETTING = ("plan", "shares", "--domain", 1024, "--n", 100_000, "--epsilon", 1)


def test_json(answer: Callable[..., Any]) -> None:
    rows = answer(*SETTING)
    for row in rows:
        assert {"mechanism", "stderr", "bytes", "shift", "picked", "why"} <= set(row)
        assert {"domain", "n", "epsilon", "forged"} <= set(row)
    expected = plan(domain=1024, n=100_000, epsilon=1.0)
    assert [row["mechanism"] for row in rows if row["picked"]] == [expected.picked]
    assert [row["stderr"] for row in rows] == [row.stderr for row in expected.rows]


def test_most_bytes(answer: Callable[..., Any]) -> None:
    (picked,) = [row for row in answer(*SETTING, "--most-bytes", 20) if row["picked"]]
    assert picked["bytes"] <= 20


@pytest.mark.parametrize(("given", "solved"), [("--n", "epsilon"), ("--epsilon", "n")])
def test_the_third_is_solved(answer: Callable[..., Any], given: str, solved: str) -> None:
    value = {"--n": 100_000, "--epsilon": 1.0}[given]
    rows = answer("plan", "shares", "--domain", 64, given, value, "--stderr", 0.005)
    (picked,) = [row for row in rows if row["picked"]]
    assert picked["stderr"] <= 0.005
    assert picked[given.strip("-")] == value
    assert picked[solved] > 0


def test_the_table(hubbub: Callable[..., Result], tmp_path: Path) -> None:
    result = hubbub(*SETTING, "--most-bytes", 20, "--plot", "plan.png")
    assert result.exit_code == 0
    for text in ("1,024 values, 100,000 reports, epsilon 1", "picked", "too large", "heuristic", "no formula"):
        assert text in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == "plot: plan.png\n"


def test_forged_reports(hubbub: Callable[..., Result], answer: Callable[..., Any], refused: Callable[..., str]) -> None:
    result = hubbub("plan", "shares", "--domain", 128, "--n", 1000, "--epsilon", 1)
    text = " ".join(result.stdout.split())
    assert "1% forged" in text
    assert "Warning: GRR: if 1% of the reports are forged, they can move a share by 74.9 percentage points" in text
    assert max(map(len, result.stdout.splitlines())) <= 80
    rows = answer(
        "plan", "shares", "--domain", 128, "--n", 1000, "--epsilon", 1, "--forged", 0.001, "--most-shift", 0.003
    )
    assert [row["mechanism"] for row in rows if row["picked"]] == ["SUE"]
    assert {row["forged"] for row in rows} == {0.001}
    assert "most_shift: got 1e-05" in refused(*SETTING, "--most-shift", 1e-5)


SPARSE = ("plan", "sparse", "--domain", 128, "--sparsity", 8, "--n", 10_000, "--epsilon", 1)


def test_sparse_vectors_are_best_told_by_the_net_rule(
    answer: Callable[..., Any], hubbub: Callable[..., Result]
) -> None:
    rows = answer(*SPARSE)
    assert [row["mechanism"] for row in rows if row["picked"]] == ["NetSub"]
    assert [round(row["error"] * row["n"]) for row in rows[:3]] == [6111, 6111, 7981]
    (shares,) = [row for row in answer(*SPARSE, "--of", "frequency") if row["picked"]]
    assert shares["mechanism"] != "NetSub"
    result = hubbub(*SPARSE)
    assert result.exit_code == 0
    assert "NetSub has the smallest error of the mean" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "field"),
    [(("--of", "median"), "--of"), (("--stderr", 0.1), "--stderr"), (("--sparsity", 200), "--sparsity")],
)
def test_what_sparse_vectors_do_not_have(refused: Callable[..., str], options: tuple[Any, ...], field: str) -> None:
    assert field in refused(*SPARSE, *options)


SUMS = ("plan", "sums", "--n", 4096, "--epsilon", 1)


@pytest.mark.parametrize("options", [(), ("--ranges",)], ids=["running", "ranges"])
def test_sums_of_a_stream_say_which_counter_under_which_guarantee(
    answer: Callable[..., Any], options: tuple[str, ...]
) -> None:
    rows = answer(*SUMS, *options)
    picked = {row["guarantee"]: row["counter"] for row in rows if row["picked"]}
    assert picked == {"epsilon 1, pure": "hierarchy", "rho 0.5, zCDP": "factorisation"}
    errors = {(row["counter"], row["guarantee"]): row["stderr"] for row in rows}
    assert len(errors) == 4
    for row in rows:
        assert row["stderr"] >= errors[picked[row["guarantee"]], row["guarantee"]]
        assert 0.5 < row["measured"] / row["stderr"] < 2  # three draws of the noise, seeded


def test_sums_are_shown_with_their_guarantees(hubbub: Callable[..., Result], refused: Callable[..., str]) -> None:
    shown = hubbub(*SUMS)
    assert shown.exit_code == 0
    assert "Under pure epsilon: hierarchy. Under rho: factorisation." in shown.output
    assert "Running sums" in shown.output
    assert "Sums between two random positions" in hubbub(*SUMS, "--ranges").output
    refused("plan", "sums", "--n", 1, "--epsilon", 1)


@pytest.mark.parametrize("of", ["distribution", "median", "tail"])
def test_numbers(answer: Callable[..., Any], hubbub: Callable[..., Result], of: str) -> None:
    setting = ("plan", "numbers", "--n", 1000, "--epsilon", 1, "--of", of)
    rows = answer(*setting)
    expected = compare_numbers(epsilon=1.0, n=1000, goal=of)
    assert [(row["way"], row["error"]) for row in rows] == [(row.way, row.error) for row in expected]
    assert [row["picked"] for row in rows] == [True] + [False] * (len(rows) - 1)
    assert f"A {of} of numbers, 1,000 reports, epsilon 1" in hubbub(*setting).stdout


def test_sets(hubbub: Callable[..., Result], answer: Callable[..., Any], refused: Callable[..., str]) -> None:
    setting = ("plan", "sets", "--domain", 40, "--most", 12, "--n", 10_000, "--epsilon", 4)
    rows = answer(*setting, "--held", 6.5)
    assert [row["mechanism"] for row in rows if row["picked"]] == ["PrivSet"]
    assert {"PSFO-GRR", "PSFO-OLH", "SplitUnary", "ExSub", "NetSeed"} < {row["mechanism"] for row in rows}
    assert [row["stderr"] for row in rows] == sorted(row["stderr"] for row in rows)
    assert {row["held"] for row in rows} == {6.5}
    result = hubbub(*setting)
    assert "Sets of at most 12 of 40 items, 6 on average" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "'--n'" in refused("plan", "sets", "--domain", 40, "--most", 12, "--epsilon", 4)
    assert "most" in refused("plan", "sets", "--domain", 40, "--most", 41, "--n", 9, "--epsilon", 4)
    assert "held" in refused(*setting, "--held", 13)


def test_shuffled(answer: Callable[..., Any], hubbub: Callable[..., Result]) -> None:
    setting = ("plan", "shuffled", "--domain", 16, "--n", 2000, "--central-epsilon", 0.8, "--fakes", 500)
    result = answer(*setting)
    assert [row["picked"] for row in result["mechanisms"]] == [True, False]
    against = result["against"]
    assert against["server"]["epsilon"] <= 0.8
    assert against["server"]["epsilon"] < against["server_and_people"]["epsilon"]
    assert against["server_and_people"]["epsilon"] < against["server_and_shufflers"]["epsilon"]
    text = hubbub(*setting).stdout
    for who in ("the server alone", "together with all other people", "half of the shufflers or more"):
        assert who in " ".join(text.split())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--fakes", 5), "'--central-epsilon'"),
        (("--central-epsilon", -1), "above 0"),
        (("--central-epsilon", 1, "--delta", 0), "delta"),
        (("--central-epsilon", 1, "--fakes", -1), "'--fakes'"),
    ],
)
def test_shuffled_options_are_checked(refused: Callable[..., str], options: tuple[Any, ...], reason: str) -> None:
    assert reason in refused("plan", "shuffled", "--domain", 16, "--n", 2000, *options)


TABLE = ("plan", "table", "--column", "age:100", "--column", "state:50:words", "--n", 300_000, "--epsilon", 1)


def test_the_ways_are_those_of_choose_ranges(answer: Callable[..., Any]) -> None:
    rows = answer(*TABLE, "--query", "age=30-40,state=3")
    columns = [Dimension.ordinal(100), Dimension.categorical(50)]
    box = RangeQuery([(30, 40), (3, 3)])
    ways = choose_ranges(epsilon=1.0, dimensions=columns, queries=[box], n=300_000)
    assert [(row["way"], row["stderr"]) for row in rows] == [(way.name, way.stderr) for way in ways]
    assert [row["picked"] for row in rows] == [True] + [False] * (len(ways) - 1)
    sure = answer(*TABLE, "--query", "age=30-40,state=3", "--unbiased")
    assert all(row["unbiased"] for row in sure)


def test_a_part_of_a_column_is_any_range_of_that_size(answer: Callable[..., Any]) -> None:
    single_column = ("plan", "table", "--column", "age:1024", "--n", 1_000_000, "--epsilon", 2, "--unbiased")
    wide, narrow = (answer(*single_column, "--query", f"age={part}%") for part in (50, 0.1))
    assert wide[0]["way"] == "HIO, consistent"
    assert narrow[0]["way"] == "MG"


def test_the_table_of_ways_says_what_it_expects(hubbub: Callable[..., Result]) -> None:
    result = hubbub("plan", "table", "--column", "age:1024", "--query", "age=50%", "--n", 100_000, "--epsilon", 1)
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "AdaptiveHierarchy has the smallest expected error of a count" in text
    assert "spread evenly inside cells" in text
    assert "Without that: HIO, consistent (--unbiased)." in text
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "age", "--query", "age=3"), "--column: got 'age'"),
        (("--column", "age:9", "--column", "age:8", "--query", "age=3"), "--column: got 'age:8'"),
        (("--column", "age:1", "--query", "age=0"), "size: got 1"),
        (("--column", "age:9", "--query", "aeg=3"), "--query: got 'aeg=3'"),
        (("--column", "age:9", "--query", "age=3,age=4"), "--query: got 'age=3,age=4'"),
        (("--column", "age:9", "--query", "age=0%"), "--query: got 'age=0%'"),
        (("--column", "age:9", "--query", "age=3-12"), "range: got (3, 12)"),
        (("--column", "age:9"), "Missing option '--query'"),
        (("--query", "age=3"), "Missing option '--column'"),
    ],
)
def test_what_does_not_fit_a_table_is_refused(
    refused: Callable[..., str], options: tuple[Any, ...], message: str
) -> None:
    assert message in refused("plan", "table", *options, "--n", 1000, "--epsilon", 1)


def test_a_word_is_a_command_and_anything_else_is_a_file(
    refused: Callable[..., str], answer: Callable[..., Any], tmp_path: Path
) -> None:
    assert "No such command 'shars'. Did you mean 'shares'" in refused("plan", "shars", "--domain", 16)
    assert "no.toml" in refused("plan", "no.toml")
    assert "No such option: --domain" in refused("plan", "--domain", 16)
    (tmp_path / "mine").write_bytes((EXAMPLES / "emoji.toml").read_bytes())
    planned = answer("plan", "mine")
    assert planned["name"] == "emoji"
    assert planned == answer("plan", "--forged", 0.01, "mine") == answer("plan", "file", "mine")
