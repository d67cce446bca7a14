"""`hubbub audit`: what it prints, and that it does find a violation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import hubbub as hb
from hubbub.mechanisms import randomizers

KEYS = {"mechanism", "spec_id", "domain", "epsilon", "effective_epsilon", "exact", "ok", "how"}


def test_json(answer: Callable[..., Any]) -> None:
    (row,) = answer("audit", "olh", "--epsilon", 2, "--domain", 64)
    assert set(row) >= KEYS
    assert (row["mechanism"], row["epsilon"], row["domain"], row["exact"], row["ok"]) == ("OLH", 2.0, 64, True, True)
    assert row["spec_id"] == hb.OLH(epsilon=2.0, domain=64).spec_id


ALL = ("audit", "--all", "--epsilon", 1, "--domain", 3)


def test_all(answer: Callable[..., Any]) -> None:
    rows = answer(*ALL, "--montecarlo", 2000)
    assert {row["mechanism"] for row in rows if row["montecarlo"] is not None} == set(randomizers())
    assert all(row["ok"] for row in rows)


@pytest.mark.slow  # the table of two is below, with their specs
def test_all_in_a_table(hubbub: Callable[..., Result]) -> None:
    shown = hubbub(*ALL).stdout
    assert all(name in shown for name in randomizers())
    assert "VIOLATED" not in shown


@pytest.mark.parametrize("name", ["adaptive", "Rappor"])
def test_names_without_a_domain(answer: Callable[..., Any], name: str) -> None:
    (row,) = answer("audit", name)
    assert row["ok"]


def test_parameters_are_given_or_the_name_is_refused(
    answer: Callable[..., Any], hubbub: Callable[..., Result], refused: Callable[..., str]
) -> None:
    assert "dimension: got nothing" in refused("audit", "ExSub")
    (row,) = answer("audit", "ExSub", "--set", "dimension=6", "--set", "sparsity=2")
    assert (row["spec"]["dimension"], row["spec"]["sparsity"], row["ok"]) == (6, 2, True)
    assert '"dimension":6' in "".join(
        hubbub("audit", "ExSub", "--set", "dimension=6", "--set", "sparsity=2").stdout.split()
    )
    assert "mechanism that is named" in refused("audit", "--all", "--set", "dimension=6")


def test_public_numbers_are_said_to_be_unprotected(hubbub: Callable[..., Result]) -> None:
    measured, drawn = (" ".join(hubbub("audit", name).stdout.split()) for name in ("Measured", "OLH"))
    assert "(measures and seed), which may depend on the answer and is sent as it is: nothing protects it" in measured
    assert "(seed), which is drawn without looking at the answer" in drawn


def test_the_statement(hubbub: Callable[..., Result]) -> None:
    result = hubbub("audit", "GRR", "--montecarlo", 5000)
    assert result.exit_code == 0
    assert "holds" in result.stdout
    assert hb.audit(hb.GRR(epsilon=1.0, domain=16)).statement().splitlines()[0] in result.stdout
    assert "5,000 reports drawn" in " ".join(result.stdout.split())


def test_a_spec(answer: Callable[..., Any], hubbub: Callable[..., Result], tmp_path: Path) -> None:
    specs = [hb.GRR(epsilon=1.0, domain=4).spec(), hb.OUE(epsilon=2.0, domain=["a", "b", "c"]).spec()]
    (tmp_path / "specs.json").write_text(json.dumps(specs), encoding="utf-8")
    rows = answer("audit", "--spec", "specs.json")
    assert [(row["mechanism"], row["epsilon"], row["ok"]) for row in rows] == [("GRR", 1.0, True), ("OUE", 2.0, True)]
    shown = hubbub("audit", "--spec", "specs.json").stdout
    assert all(name in shown for name in ("GRR", "OUE"))
    assert "VIOLATED" not in shown


@pytest.mark.parametrize(
    "honest", [hb.GRR(epsilon=4.0, domain=4), hb.OLH(epsilon=4.0, domain=9), hb.BasicRappor(epsilon=4.0, domain=4)]
)
def test_a_spec_that_spends_more_than_it_says(
    answer: Callable[..., Any], hubbub: Callable[..., Result], tmp_path: Path, honest: hb.Mechanism
) -> None:
    lie = {**honest.spec(), "epsilon": 1.0}
    (tmp_path / "lie.json").write_text(json.dumps(lie), encoding="utf-8")
    (row,) = answer("audit", "--spec", "lie.json", code=1)
    assert (row["epsilon"], row["ok"]) == (1.0, False)
    assert row["effective_epsilon"] == honest.effective_epsilon
    result = hubbub("audit", "--spec", "lie.json")
    assert result.exit_code == 1
    assert "VIOLATED" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a JSON file"),
        ("[" * 100_000, "a JSON file"),
        ("[]", "a JSON object"),
        ("[3]", "a JSON object"),
        ("{}", "mechanism: got None"),
        ('{"mechanism": "GRR", "epsilon": 1.0}', "exactly the fields"),
        ('{"mechanism": "GRR", "epsilon": -1.0, "domain": 4, "other": 1}', "epsilon: got -1.0"),
        ('{"mechanism": "GRR", "epsilon": "x", "domain": 4, "other": 1}', "epsilon: got 'x'"),
    ],
)
def test_a_spec_that_is_none(refused: Callable[..., str], tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "spec.json").write_text(text, encoding="utf-8")
    assert message in refused("audit", "--spec", "spec.json")
