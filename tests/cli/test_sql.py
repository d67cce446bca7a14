"""`hubbub table` and `hubbub sql`, from a file to answers."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

QUERY = (
    "SELECT os, COUNT(*) AS n, AVG(price) AS mean FROM people WHERE age BETWEEN 20 AND 49 AND town = 'Rye' GROUP BY os"
)


@pytest.fixture
def store(hubbub: Callable[..., Result], tmp_path: Path) -> str:
    lines = ["age,town,wage,os,price"]
    for k in range(3000):
        age = "" if k % 50 == 0 else k % 70
        lines.append(f"{age},{('Rye', 'Ely', 'Bath')[k % 3]},{k % 100},{('ios', 'web')[k % 2]},{k % 7}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = ["-p", "age=0..69?", "-p", "town", "--public", "os", "--public", "price"]
    build = hubbub("table", "people.csv", "people.duckdb", *columns, "-e", 8, "--seed", 1)
    assert build.exit_code == 0, build.output
    assert "3,000 people" in build.stderr
    return "people.duckdb"


def test_a_query_in_every_form(hubbub: Callable[..., Result], answer: Callable[..., Any], store: str) -> None:
    result = answer("sql", store, QUERY)
    assert [column["name"] for column in result["columns"]] == ["os", "n", "mean"]
    for row in result["rows"]:
        assert row[1]["low"] < 207 < row[1]["high"]
        assert row[2]["low"] < 3 < row[2]["high"]
    table = list(csv.reader(io.StringIO(hubbub("sql", store, QUERY, "--csv").stdout)))
    assert table[0] == ["os", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"]
    assert [float(row[1]) for row in table[1:]] == [row[1]["value"] for row in result["rows"]]
    shown = hubbub("sql", store, QUERY, "--level", 0.9, "--explain", "--plot", "bars.png")
    assert "90% interval" in shown.stdout
    assert "HIO, epsilon 8" in shown.stdout
    assert Path("bars.png").stat().st_size > 1000
    plan = hubbub("sql", store, f"EXPLAIN {QUERY}").stdout
    assert "age 20 to 49 and town Rye" in plan
    assert "expected standard errors" in plan


def test_what_is_refused_is_one_line(refused: Callable[..., str], store: str) -> None:
    assert "line 1, column 35: unknown column agee; did you mean age?" in refused(
        "sql", store, "SELECT COUNT(*) FROM people WHERE agee = 3"
    )
    assert "store: got 'no.duckdb'" in refused("sql", "no.duckdb", QUERY)
    assert "csv: got True" in refused("sql", store, QUERY, "--csv", "--json")
    assert "level: got 2.0" in refused("sql", store, QUERY, "--level", 2)
    assert "not there yet" in refused("table", "people.csv", store, "-p", "town", "-e", 1)
    for column, message in (
        ("age=5..9", "integers as 0..99"),
        ("age=x", "integers as 0..99"),
        ("wage=9..2/5", "high: got 2.0"),
        ("agee", "column: got 'agee'"),
        ("wage=0..50", "wage: got 51"),
    ):
        assert message in refused("table", "people.csv", "other.duckdb", "-p", column, "-e", 1)
        assert not Path("other.duckdb").exists()
    assert "a file, or a data set" in refused("table", "none.csv", "other.duckdb", "-p", "town", "-e", 1)
    assert "method" in refused("table", "people.csv", "other.duckdb", "-p", "town", "-e", 1, "-m", "OLH")


def test_folders_cells_and_other_methods(hubbub: Callable[..., Result], answer: Callable[..., Any], store: str) -> None:
    for method in ("SC", "HDG"):
        build = hubbub("table", "people.csv", method, "-p", "town", "-p", "wage=0..100/10", "-e", 8, "-m", method)
        assert build.exit_code == 0, build.output
        result = answer("sql", method, "SELECT COUNT(*) FROM people WHERE wage >= 50 AND town <> 'Ely'")
        assert result["bias"] == ("heuristic" if method == "HDG" else "none")
        assert abs(result["rows"][0][0]["value"] - 1000) < 300
