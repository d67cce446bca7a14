"""`hubbub plan`."""

from pathlib import Path

import pytest

from hubbub.planning.plan import plan
from hubbub.planning.ranges import choose_ranges
from hubbub.protocols.ranges.dimension import Dimension, RangeQuery
from hubbub.rehearse.numbers import compare_numbers
from tests.cli.commands import Hubbub

EXAMPLES = Path(__file__).parents[2] / "examples"

SETTING = ("plan", "shares", "--domain", 1024, "--n", 100_000, "--epsilon", 1)


def test_json(hubbub: Hubbub) -> None:
    rows = hubbub.answer(*SETTING)
    for row in rows:
        assert {"mechanism", "stderr", "bytes", "shift", "picked", "why"} <= set(row)
        assert {"domain", "n", "epsilon", "forged"} <= set(row)
    expected = plan(domain=1024, n=100_000, epsilon=1.0)
    assert [row["mechanism"] for row in rows if row["picked"]] == [expected.picked]
    assert [row["stderr"] for row in rows] == [row.stderr for row in expected.rows]


@pytest.mark.parametrize(("given", "solved"), [("--n", "epsilon"), ("--epsilon", "n")])
def test_the_third_is_solved(hubbub: Hubbub, given: str, solved: str) -> None:
    value = {"--n": 100_000, "--epsilon": 1.0}[given]
    rows = hubbub.answer("plan", "shares", "--domain", 64, given, value, "--stderr", 0.005)
    (picked,) = [row for row in rows if row["picked"]]
    assert picked["stderr"] <= 0.005
    assert picked[given.strip("-")] == value
    assert picked[solved] > 0


def test_the_table(hubbub: Hubbub, tmp_path: Path) -> None:
    result = hubbub(*SETTING, "--most-bytes", 20, "--plot", "plan.png")
    assert (result.exit_code, result.stderr) == (0, "plot: plan.png\n")
    for text in ("1,024 values, 100,000 reports, epsilon 1", "picked", "too large", "heuristic", "no formula"):
        assert text in result.stdout
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    (picked,) = [row for row in hubbub.answer(*SETTING, "--most-bytes", 20) if row["picked"]]
    assert picked["bytes"] <= 20


def test_forged_reports(hubbub: Hubbub) -> None:
    setting = ("plan", "shares", "--domain", 128, "--n", 1000, "--epsilon", 1)
    text = hubbub.shown(*setting)
    assert "1% forged" in text
    assert "Warning: GRR: if 1% of the reports are forged, they can move a share by 74.9 percentage points" in text
    rows = hubbub.answer(*setting, "--forged", 0.001, "--most-shift", 0.003)
    assert [row["mechanism"] for row in rows if row["picked"]] == ["SUE"]
    assert {row["forged"] for row in rows} == {0.001}
    assert "most_shift: got 1e-05" in hubbub.refused(*SETTING, "--most-shift", 1e-5)


SPARSE = ("plan", "sparse", "--domain", 128, "--sparsity", 8, "--n", 10_000, "--epsilon", 1)


def test_sparse_vectors_are_best_told_by_the_net_rule(hubbub: Hubbub) -> None:
    rows = hubbub.answer(*SPARSE)
    assert [row["mechanism"] for row in rows if row["picked"]] == ["NetSub"]
    assert [round(row["error"] * row["n"]) for row in rows[:3]] == [6111, 6111, 7981]
    (shares,) = [row for row in hubbub.answer(*SPARSE, "--of", "frequency") if row["picked"]]
    assert shares["mechanism"] != "NetSub"
    assert all(row["within"] > (row["error"] / 128) ** 0.5 for row in rows if row["error"] is not None)
    assert shares["within"] is None
    shown = hubbub.shown(*SPARSE)
    assert "NetSub has the smallest error of the mean" in shown
    assert f"With a probability of 95%, no mean is off by more than {rows[0]['within']:.2g}." in shown


SUMS = ("plan", "sums", "--n", 4096, "--epsilon", 1)


@pytest.mark.parametrize("options", [(), ("--ranges",)], ids=["running", "ranges"])
def test_sums_of_a_stream_say_which_counter_under_which_guarantee(hubbub: Hubbub, options: tuple[str, ...]) -> None:
    rows = hubbub.answer(*SUMS, *options)
    picked = {row["guarantee"]: row["counter"] for row in rows if row["picked"]}
    assert picked == {"epsilon 1, pure": "hierarchy", "rho 0.5, zCDP": "factorisation"}
    errors = {(row["counter"], row["guarantee"]): row["stderr"] for row in rows}
    assert len(errors) == 4
    for row in rows:
        assert row["stderr"] >= errors[picked[row["guarantee"]], row["guarantee"]]
        assert 0.5 < row["measured"] / row["stderr"] < 2  # three draws of the noise, seeded


def test_sums_are_shown_with_their_guarantees(hubbub: Hubbub) -> None:
    assert "Under pure epsilon: hierarchy. Under rho: factorisation." in hubbub.shown(*SUMS)
    assert "Running sums" in hubbub.shown(*SUMS)
    assert "Sums between two random positions" in hubbub.shown(*SUMS, "--ranges")


@pytest.mark.parametrize("of", ["distribution", "median", "tail"])
def test_numbers(hubbub: Hubbub, of: str) -> None:
    setting = ("plan", "numbers", "--n", 1000, "--epsilon", 1, "--of", of)
    rows = hubbub.answer(*setting)
    expected = compare_numbers(epsilon=1.0, n=1000, goal=of)
    assert [(row["way"], row["error"]) for row in rows] == [(row.way, row.error) for row in expected]
    assert [row["picked"] for row in rows] == [True] + [False] * (len(rows) - 1)
    assert f"A {of} of numbers, 1,000 reports, epsilon 1" in hubbub.shown(*setting)


def test_sets(hubbub: Hubbub) -> None:
    setting = ("plan", "sets", "--domain", 40, "--most", 12, "--n", 10_000, "--epsilon", 4)
    rows = hubbub.answer(*setting, "--held", 6.5)
    assert [row["mechanism"] for row in rows if row["picked"]] == ["PrivSet"]
    assert {"PSFO-GRR", "PSFO-OLH", "SplitUnary", "ExSub", "NetSeed"} < {row["mechanism"] for row in rows}
    assert [row["stderr"] for row in rows] == sorted(row["stderr"] for row in rows)
    assert {row["held"] for row in rows} == {6.5}
    assert "Sets of at most 12 of 40 items, 6 on average" in hubbub.shown(*setting)


def test_shuffled(hubbub: Hubbub) -> None:
    setting = ("plan", "shuffled", "--domain", 16, "--n", 2000, "--central-epsilon", 0.8, "--fakes", 500)
    result = hubbub.answer(*setting)
    assert [row["picked"] for row in result["mechanisms"]] == [True, False]
    against = result["against"]
    assert against["server"]["epsilon"] <= 0.8
    assert against["server"]["epsilon"] < against["server_and_people"]["epsilon"]
    assert against["server_and_people"]["epsilon"] < against["server_and_shufflers"]["epsilon"]
    text = hubbub.shown(*setting)
    for who in ("the server alone", "together with all other people", "half of the shufflers or more"):
        assert who in text
    assert "0.82 CPU seconds while it gathers and 0.25 from its close" in hubbub.shown(*setting)


TABLE = ("plan", "table", "--column", "age:100", "--column", "state:50:words", "--n", 300_000, "--epsilon", 1)


def test_the_ways_are_those_of_choose_ranges(hubbub: Hubbub) -> None:
    rows = hubbub.answer(*TABLE, "--query", "age=30-40,state=3")
    columns = [Dimension.ordinal(100), Dimension.categorical(50)]
    box = RangeQuery([(30, 40), (3, 3)])
    ways = choose_ranges(epsilon=1.0, dimensions=columns, queries=[box], n=300_000)
    assert [(row["way"], row["stderr"]) for row in rows] == [(way.name, way.stderr) for way in ways]
    assert [row["picked"] for row in rows] == [True] + [False] * (len(ways) - 1)
    sure = hubbub.answer(*TABLE, "--query", "age=30-40,state=3", "--unbiased")
    assert all(row["unbiased"] for row in sure)


def test_a_part_of_a_column_is_any_range_of_that_size(hubbub: Hubbub) -> None:
    single_column = ("plan", "table", "--column", "age:1024", "--n", 1_000_000, "--epsilon", 2, "--unbiased")
    wide, narrow = (hubbub.answer(*single_column, "--query", f"age={part}%") for part in (50, 0.1))
    assert wide[0]["way"] == "HIO, consistent"
    assert narrow[0]["way"] == "MG"


def test_bounds_and_the_division_of_people_are_said(hubbub: Hubbub) -> None:
    text = hubbub.shown(*TABLE, "--query", "age=30-40,state=3", "--fanout", 4)
    assert "(7.25)" in text
    assert "(7.33), and the better one of SC and HIO is" in " ".join(text.split())
    rows = hubbub.answer(*TABLE, "--query", "age=30-40,state=3")
    assert all(row["bound"] > row["stderr"] for row in rows if row["bound"] is not None)
    assert {row["way"] for row in rows if row["bound"] is None} == {"HDG"}
    columns = ("--column", "a:40", "--column", "b:40", "--column", "c:40")
    points = [part for k in range(5) for part in ("--query", f"a={k},b={k},c={k}")]
    apart = ("plan", "table", *columns, *points, "--query", "a=5-20", "--n", 10_000_000, "--epsilon", 1)
    two = hubbub.answer(*apart, "-m", "HIO", "-m", "MG")
    assert {row["way"] for row in two} == {"HIO", "HIO, consistent", "MG"}
    shares = [row["share_of_two"] for row in two if row["share_of_two"] is not None]
    assert sum(shares) == pytest.approx(1)
    text = " ".join(hubbub.shown(*apart, "--unbiased").split())
    assert "by MG (it answers 5 of 6 queries), people give a smaller error" in text
    assert "One method answers all queries best" in hubbub.shown(*TABLE, "--query", "age=50%", "-m", "HIO", "-m", "SC")


def test_the_table_of_ways_says_what_it_expects(hubbub: Hubbub) -> None:
    text = hubbub.shown("plan", "table", "--column", "age:1024", "--query", "age=50%", "--n", 100_000, "--epsilon", 1)
    assert "AdaptiveHierarchy has the smallest expected error of a count" in text
    assert "spread evenly inside cells" in text
    assert "Without that: HIO, consistent (--unbiased)." in text


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sparse --domain 128 --sparsity 8 --n 9 --epsilon 1 --of median", "--of"),
        ("sparse --domain 128 --sparsity 8 --n 9 --epsilon 1 --stderr .1", "--stderr"),
        ("sparse --domain 128 --sparsity 200 --n 9 --epsilon 1", "--sparsity"),
        ("sums --n 1 --epsilon 1", "length: got 1"),
        ("sets --domain 40 --most 12 --epsilon 4", "'--n'"),
        ("sets --domain 40 --most 41 --epsilon 4 --n 9", "most"),
        ("sets --domain 40 --most 12 --epsilon 4 --n 9 --held 13", "held"),
        ("shuffled --domain 16 --n 2000 --fakes 5", "'--central-epsilon'"),
        ("shuffled --domain 16 --n 2000 --central-epsilon -1", "above 0"),
        ("shuffled --domain 16 --n 2000 --central-epsilon 1 --delta 0", "delta"),
        ("shuffled --domain 16 --n 2000 --central-epsilon 1 --fakes -1", "'--fakes'"),
        ("table --n 9 --epsilon 1 --column age --query age=3", "--column: got 'age'"),
        ("table --n 9 --epsilon 1 --column age:9 --column age:8 --query age=3", "--column: got 'age:8'"),
        ("table --n 9 --epsilon 1 --column age:1 --query age=0", "size: got 1"),
        ("table --n 9 --epsilon 1 --column age:9 --query aeg=3", "--query: got 'aeg=3'"),
        ("table --n 9 --epsilon 1 --column age:9 --query age=3,age=4", "--query: got 'age=3,age=4'"),
        ("table --n 9 --epsilon 1 --column age:9 --query age=0%", "--query: got 'age=0%'"),
        ("table --n 9 --epsilon 1 --column age:9 --query age=3-12", "range: got (3, 12)"),
        ("table --n 9 --epsilon 1 --column age:9", "Missing option '--query'"),
        ("table --n 9 --epsilon 1 --query age=3", "Missing option '--column'"),
        ("shars --domain 16", "No such command 'shars'. Did you mean 'shares'"),
        ("no.toml", "no.toml"),
        ("--domain 16", "No such option: --domain"),
    ],
)
def test_a_wrong_option_is_named(hubbub: Hubbub, command: str, message: str) -> None:
    assert message in hubbub.refused("plan", *command.split())


def test_the_least_error_of_any_mechanism_is_a_row(hubbub: Hubbub, tmp_path: Path) -> None:
    text = (EXAMPLES / "ratings.toml").read_text(encoding="utf-8")
    rows = hubbub.shown("plan", EXAMPLES / "ratings.toml").count("no mechanism has less than")
    assert rows == text.count('of = "frequency"')
    (tmp_path / "means.toml").write_text(text.replace('of = "conditional"', 'of = "mean"'), encoding="utf-8")
    assert hubbub.shown("plan", "means.toml").count("no mechanism has less than") > rows


def test_a_word_is_a_command_and_anything_else_is_a_file(hubbub: Hubbub, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes((EXAMPLES / "emoji.toml").read_bytes())
    planned = hubbub.answer("plan", "mine")
    assert planned["name"] == "emoji"
    assert planned == hubbub.answer("plan", "--forged", 0.01, "mine") == hubbub.answer("plan", "file", "mine")
