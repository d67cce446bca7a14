"""`hubbub table` and `hubbub sql`, from a file to answers."""

import csv
import io
from pathlib import Path

import pytest

from tests.cli.commands import Hubbub

WHERE = "age BETWEEN 20 AND 49 AND town = 'Rye'"
QUERY = f"SELECT os, COUNT(*) AS n, AVG(price) AS mean FROM people WHERE {WHERE} GROUP BY os"


@pytest.fixture
def store(hubbub: Hubbub) -> str:
    lines = ["age,town,wage,os,price"]
    for k in range(3000):
        age = "" if k % 50 == 0 else k % 70
        lines.append(f"{age},{('Rye', 'Ely', 'Bath')[k % 3]},{k % 100},{('ios', 'web')[k % 2]},{k % 7}")
    hubbub.write("people.csv", "\n".join([*lines, ""]))
    columns = ["-p", "age=0..69?", "-p", "town", "--public", "os", "--public", "price"]
    build = hubbub("table", "people.csv", "people.duckdb", *columns, "-e", 8, "--seed", 1)
    assert build.exit_code == 0, build.output
    assert "3,000 people" in build.stderr
    return "people.duckdb"


def test_a_query_in_every_form(hubbub: Hubbub, store: str) -> None:
    result = hubbub.answer("sql", store, QUERY)
    assert [column["name"] for column in result["columns"]] == ["os", "n", "mean"]
    for row in result["rows"]:
        assert row[1]["low"] < 207 < row[1]["high"]
        assert row[2]["low"] < 3 < row[2]["high"]
    table = list(csv.reader(io.StringIO(hubbub("sql", store, QUERY, "--csv").stdout)))
    assert table[0] == ["os", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"]
    assert [float(row[1]) for row in table[1:]] == [row[1]["value"] for row in result["rows"]]
    shown = hubbub.shown("sql", store, QUERY, "--level", 0.9, "--explain", "--plot", "bars.png")
    assert "90% interval" in shown
    assert "HIO, epsilon 8" in shown
    assert Path("bars.png").stat().st_size > 1000
    plan = hubbub.shown("sql", store, f"EXPLAIN {QUERY}")
    assert "age 20 to 49 and town Rye" in plan
    assert "expected standard errors" in plan


def test_a_table_of_several_methods(hubbub: Hubbub, store: str) -> None:
    columns = ("-p", "age=0..69?", "-p", "town", "-e", 1, "--fanout", 4, "--seed", 1)
    several = ("-m", "HIO", "-m", "mg", "--share", 0.6, "--share", 0.4)
    assert hubbub("table", "people.csv", "two.duckdb", *columns, *several).exit_code == 0
    assert store
    for condition, best in (("age BETWEEN 3 AND 60", "HIO"), ("age = 7 AND town = 'Rye'", "MG")):
        plan = hubbub.shown("sql", "two.duckdb", f"EXPLAIN SELECT COUNT(*) FROM people WHERE {condition}")
        assert "HIO (0.6) and MG (0.4), epsilon 1" in plan
        assert f"answered by {best}" in plan
        assert "at most" in plan
    refused = hubbub.refused("table", "people.csv", "other.duckdb", *columns, *several, "--share", 0.1)
    assert "shares: got" in refused


def test_private_numbers_and_public_tables(hubbub: Hubbub, store: str) -> None:
    hubbub.write("makers.csv", "os,maker,share\nios,A,0.5\nand,G,2\n")
    selected = "SELECT maker, AVG(age) AS a, COUNT(*) FILTER (WHERE town = 'Rye') AS n"
    text = f"{selected} FROM people JOIN makers USING (os) GROUP BY 1"
    ((maker, mean, count),) = hubbub.answer("sql", store, text, "--with", "makers=makers.csv")["rows"]
    assert maker == "A"
    assert mean["low"] < 34 < mean["high"] < 40
    assert count["low"] < 500 < count["high"]
    listed = hubbub.shown("sql", store, "SHOW TABLES", "--with", "makers=makers.csv")
    assert "makers" in listed
    assert "0 to 69, or NULL" in hubbub.shown("sql", store, "DESCRIBE people")
    bare = hubbub("sql", store, "DESCRIBE people", "--csv").stdout.splitlines()
    assert bare[0] == "column_name,column_type,kind,values"
    hubbub.write("twice.csv", "os,maker\nios,A\nios,G\n")
    assert "os is not unique in twice" in hubbub.refused(
        "sql", store, text.replace("makers", "twice"), "--with", "twice=twice.csv"
    )
    assert "with: got 'makers'" in hubbub.refused("sql", store, text, "--with", "makers")
    assert "file: got 'none.csv'" in hubbub.refused("sql", store, text, "--with", "makers=none.csv")
    assert "unknown public table makers" in hubbub.refused("sql", store, text)
    assert "where: got 'people.duckdb'" in hubbub.refused("sql", store, text, "--from", 3)


def test_what_is_refused_is_one_line(hubbub: Hubbub, store: str) -> None:
    unknown = hubbub.refused("sql", store, "SELECT COUNT(*) FROM people WHERE agee = 3")
    assert "line 1, column 35: unknown column agee; did you mean age?" in unknown
    assert "store: got 'no.duckdb'" in hubbub.refused("sql", "no.duckdb", QUERY)
    assert "csv: got True" in hubbub.refused("sql", store, QUERY, "--csv", "--json")
    assert "level: got 2.0" in hubbub.refused("sql", store, QUERY, "--level", 2)
    assert "not there yet" in hubbub.refused("table", "people.csv", store, "-p", "town", "-e", 1)
    for column, message in (
        ("age=5..9", "integers as 0..99"),
        ("age=x", "integers as 0..99"),
        ("wage=9..2/5", "high: got 2.0"),
        ("agee", "column: got 'agee'"),
        ("wage=0..50", "wage: got 51"),
    ):
        assert message in hubbub.refused("table", "people.csv", "other.duckdb", "-p", column, "-e", 1)
        assert not Path("other.duckdb").exists()
    assert "a file, or a data set" in hubbub.refused("table", "none.csv", "other.duckdb", "-p", "town", "-e", 1)
    assert "method" in hubbub.refused("table", "people.csv", "other.duckdb", "-p", "town", "-e", 1, "-m", "OLH")


def test_folders_cells_and_other_methods(hubbub: Hubbub, store: str) -> None:
    for method in ("SC", "HDG"):
        build = hubbub("table", "people.csv", method, "-p", "town", "-p", "wage=0..100/10", "-e", 8, "-m", method)
        assert build.exit_code == 0, build.output
        result = hubbub.answer("sql", method, "SELECT COUNT(*) FROM people WHERE wage >= 50 AND town <> 'Ely'")
        assert result["bias"] == ("heuristic" if method == "HDG" else "none")
        assert abs(result["rows"][0][0]["value"] - 1000) < 300
