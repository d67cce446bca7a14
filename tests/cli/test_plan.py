"""`hubbub plan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from hubbub.planning.plan import plan

SETTING = ("plan", "--domain", 1024, "--n", 100_000, "--epsilon", 1)


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
    rows = answer("plan", "--domain", 64, given, value, "--stderr", 0.005)
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
    result = hubbub("plan", "--domain", 128, "--n", 1000, "--epsilon", 1)
    text = " ".join(result.stdout.split())
    assert "1% forged" in text
    assert "Warning: GRR: if 1% of the reports are forged, they can move a share by 74.9 percentage points" in text
    assert max(map(len, result.stdout.splitlines())) <= 80
    rows = answer("plan", "--domain", 128, "--n", 1000, "--epsilon", 1, "--forged", 0.001, "--most-shift", 0.003)
    assert [row["mechanism"] for row in rows if row["picked"]] == ["SUE"]
    assert {row["forged"] for row in rows} == {0.001}
    assert "most_shift: got 1e-05" in refused(*SETTING, "--most-shift", 1e-5)


SPARSE = ("plan", "--domain", 128, "--sparsity", 8, "--n", 10_000, "--epsilon", 1)


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
    [
        (("--of", "median"), "--of"),
        (("--stderr", 0.1), "--sparsity"),
        (("--most-bytes", 9), "--sparsity"),
        (("--sparsity", 200), "--sparsity"),
    ],
)
def test_what_sparse_vectors_do_not_have(hubbub: Callable[..., Result], options: tuple[Any, ...], field: str) -> None:
    result = hubbub(*SPARSE, *options)
    assert result.exit_code != 0
    assert field in result.stderr


def test_of_is_for_sparse_vectors(hubbub: Callable[..., Result]) -> None:
    assert hubbub(*SETTING, "--of", "mean").exit_code != 0
    assert hubbub("plan", "--domain", 9, "--sparsity", 2, "--n", 10).exit_code != 0


@pytest.mark.parametrize("of", ["sums", "ranges"])
def test_sums_of_a_stream_say_which_counter_under_which_guarantee(answer: Callable[..., Any], of: str) -> None:
    rows = answer("plan", "--of", of, "--n", 4096, "--epsilon", 1)
    picked = {row["guarantee"]: row["counter"] for row in rows if row["picked"]}
    assert picked == {"epsilon 1, pure": "hierarchy", "rho 0.5, zCDP": "factorisation"}
    errors = {(row["counter"], row["guarantee"]): row["stderr"] for row in rows}
    assert len(errors) == 4
    for row in rows:
        assert row["stderr"] >= errors[picked[row["guarantee"]], row["guarantee"]]
        assert 0.5 < row["measured"] / row["stderr"] < 2  # three draws of the noise, seeded


def test_sums_are_shown_with_their_guarantees(hubbub: Callable[..., Result]) -> None:
    shown = hubbub("plan", "--of", "sums", "--n", 4096, "--epsilon", 1)
    assert shown.exit_code == 0
    assert "Under pure epsilon: hierarchy. Under rho: factorisation." in shown.output
    for wrong in (("--n", 1), ("--n", 4096, "--stderr", 0.1), ("--n", 4096, "--domain", 3)):
        assert hubbub("plan", "--of", "sums", "--epsilon", 1, *wrong).exit_code != 0


def test_sets(hubbub: Callable[..., Result], answer: Callable[..., Any], refused: Callable[..., str]) -> None:
    setting = ("plan", "--domain", 40, "--sets", 12, "--n", 10_000, "--epsilon", 4)
    rows = answer(*setting, "--held", 6.5)
    assert [row["mechanism"] for row in rows if row["picked"]] == ["PrivSet"]
    assert {"PSFO-GRR", "PSFO-OLH", "SplitUnary", "ExSub", "NetSeed"} < {row["mechanism"] for row in rows}
    assert [row["stderr"] for row in rows] == sorted(row["stderr"] for row in rows)
    assert {row["held"] for row in rows} == {6.5}
    result = hubbub(*setting)
    assert "Sets of at most 12 of 40 items, 6 on average" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "--n" in refused("plan", "--domain", 40, "--sets", 12, "--epsilon", 4)
    assert "--held" in refused("plan", "--domain", 40, "--held", 2, "--n", 9, "--epsilon", 4)
    assert "most" in refused("plan", "--domain", 40, "--sets", 41, "--n", 9, "--epsilon", 4)
    assert "held" in refused(*setting, "--held", 13)


def test_shuffled(answer: Callable[..., Any], hubbub: Callable[..., Result]) -> None:
    setting = ("plan", "--domain", 16, "--n", 2000, "--central-epsilon", 0.8, "--fakes", 500)
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
        (("--domain", 16, "--n", 2000, "--fakes", 5), "--central-epsilon"),
        (("--domain", 16, "--central-epsilon", 1), "only together with --domain and --n"),
        (("--domain", 16, "--n", 2000, "--central-epsilon", 1, "--stderr", 0.1), "with --central-epsilon go only"),
        (("--domain", 16, "--n", 2000, "--central-epsilon", -1), "above 0"),
        (("--domain", 16, "--n", 2000, "--central-epsilon", 1, "--delta", 0), "delta"),
        (("--domain", 16, "--n", 2000, "--central-epsilon", 1, "--fakes", -1), "at least 0"),
    ],
)
def test_shuffled_options_are_checked(refused: Callable[..., str], options: tuple[Any, ...], reason: str) -> None:
    assert reason in refused("plan", *options)
