"""`hubbub release`: files and pipes in, a private stream out, resumed by a state file; by a curator and by devices."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubbub.cli import release_view as release_ways
from hubbub.curator import stream_file
from hubbub.curator.files import open_release
from hubbub.curator.tops import ToPS
from hubbub.protocols.topl.server import ToPL
from hubbub.random.source import Random
from hubbub.rehearse.release import LocalReleaseFile
from tests.cli.commands import Hubbub
from tests.cli.fares import KEYWORDS, MEANS, RELEASE, SETTINGS, VALUES, lines, pipe, piped_steps, write

ways = pytest.mark.parametrize("local", [(), ("--local",)], ids=["curator", "devices"])


@pytest.fixture(autouse=True)
def fares(hubbub: Hubbub) -> None:
    write(VALUES)


@ways
def test_json(hubbub: Hubbub, local: tuple[str, ...]) -> None:
    result = hubbub.answer(*RELEASE, *local, "--plot", "fares.svg")
    assert set(result) == {"theta", "steps", "paid", *(("above", "lost") if local else ())}
    assert [set(step) for step in result["steps"]] == [{"step", "value", "low", "high"}] * 9
    assert [step["step"] for step in result["steps"]] == list(range(9))
    assert all(step["low"] < step["value"] < step["high"] for step in result["steps"])
    assert 0 < result["theta"] <= 100
    assert 0 < result["paid"] <= 4
    assert "truth" not in Path("fares.svg").read_text()


def test_a_release_without_a_step_says_what_a_step_needs(hubbub: Hubbub) -> None:
    done = hubbub(*RELEASE, "--every", 4096)
    assert done.exit_code == 0, done.output
    assert "no step yet: one needs 4,096 values" in " ".join(done.output.split())


@ways
def test_the_truth_is_there_only_where_it_is_asked_for(hubbub: Hubbub, local: tuple[str, ...]) -> None:
    command = (*RELEASE, *local, "--simulate", "--seed", 3)
    result = hubbub.answer(*command)
    assert [step["truth"] for step in result["steps"]] == pytest.approx(MEANS)
    squares = [(step["value"] - step["truth"]) ** 2 for step in result["steps"]]
    assert result["mse"] == pytest.approx(np.mean(squares))
    assert result == hubbub.answer(*command)


def test_parquet(hubbub: Hubbub, tmp_path: Path) -> None:
    pq.write_table(pa.table({"fare": VALUES}), tmp_path / "fares.parquet")
    assert len(hubbub.answer("release", "fares.parquet", "--column", "fare", *SETTINGS)["steps"]) == 9
    shown = hubbub("release", "fares.parquet", "--column", "fare", *SETTINGS)
    assert shown.exit_code == 0
    assert "theta" in shown.stdout
    assert "another run pays again" in shown.stderr


def test_a_file_that_grows_is_released_once(hubbub: Hubbub) -> None:
    command = (*RELEASE, "--state", "state")
    write(VALUES[:1700])
    first = hubbub.answer(*command)
    assert hubbub.answer(*command)["steps"] == []  # nothing new: nothing is released
    write(VALUES)
    second = hubbub.answer(*command)
    assert [step["step"] for step in first["steps"] + second["steps"]] == list(range(9))
    assert first["theta"] == second["theta"]


def test_a_pipe_prints_steps_and_goes_on(hubbub: Hubbub) -> None:
    done = pipe(hubbub, lines(VALUES[:1700]), "--state", "state")
    assert [row[0] for row in piped_steps(done)] == ["0", "1", "2", "3"]
    rest = pipe(hubbub, lines(VALUES[1700:]), "--state", "state", "--json")
    assert [step["step"] for step in json.loads(rest.stdout)["steps"]] == [4, 5, 6, 7, 8]


def test_a_pipe_with_a_gap_is_refused_and_nothing_of_it_taken(hubbub: Hubbub) -> None:
    done = pipe(hubbub, "1.0\n\n2.0\n", "--state", "state")
    assert done.exit_code == 2
    assert "value 2 (line 2): got ''; allowed: one number per line, without gaps" in done.stderr
    again = pipe(hubbub, lines(VALUES), "--state", "state", "--json")
    assert len(json.loads(again.stdout)["steps"]) == 9


def test_a_state_in_use_is_refused(hubbub: Hubbub) -> None:
    with hubbub.start("release", "-", *SETTINGS, "--state", "state") as first:
        assert first.stdin is not None
        assert first.stdout is not None
        first.stdin.write(lines(VALUES[:800]))
        first.stdin.flush()
        assert first.stdout.readline().startswith("step")
        assert first.stdout.readline().startswith("0\t")
        second = pipe(hubbub, "1\n", "--state", "state")
        assert second.exit_code == 2
        assert "another process" in second.stderr
        first.communicate()
    assert first.returncode == 0


@ways
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("-1", "fare, row 701 (line 702): got -1.0; allowed: a number from 0 to 100"),
        ("100.5", "fare, row 701 (line 702): got 100.5"),
        ("nan", "fare, row 701 (line 702): got 'nan'"),
        ("", "fare, row 701 (line 702): got None; allowed: a number in every row"),
        ("much", "fare, row 701 (line 702): got 'much'"),
        ("inf", "fare, row 701 (line 702): got inf"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_spent(hubbub, row, message, local) -> None:
    rows = [str(value) for value in VALUES]
    rows[700] = row
    write(np.array(rows))
    command = (*RELEASE, *local, "--state", "state")
    assert message in hubbub.refused(*command)
    if local:
        with LocalReleaseFile("state", ToPL(**KEYWORDS, every=256), source="column fare") as release:
            assert release.server.position == 0  # nobody reported
    write(VALUES)
    assert len(hubbub.answer(*command)["steps"]) == 9


def test_clip_moves_values_to_the_nearer_end(hubbub: Hubbub) -> None:
    values = VALUES.copy()
    values[[700, 800]] = -3, 5000
    write(values)
    assert len(hubbub.answer(*RELEASE, "--clip")["steps"]) == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--holdout 3000", "holdout: got 3000; allowed: fewer than the 3,000 values"),
        ("--holdout 3000 --local", "holdout: got 3000; allowed: fewer than the 3,000 values"),
        ("--holdout 0 --local", "holdout"),
        ("--epsilon 0", "epsilon"),
        ("--epsilon 0 --local", "epsilon"),
        ("--bound nan", "bound"),
        ("--bound nan --local", "bound"),
        ("--range 0 --local", "max_range"),
        ("--smoother guess", "smoother"),
        ("--smoother mean --local", "smoother: got 'mean'; allowed: none with --local"),
        ("--watch 2", "watch"),
        ("--watch 0.1 --local", "watch: got 0.1; allowed: none with --local"),
        ("--seed 1", "seed only with --simulate"),
        ("--seed 1 --local", "seed only with --simulate"),
        ("--simulate --state state", "no state file with --simulate"),
        ("--simulate --state state --local", "no state file with --simulate"),
        ("--column tip", "one of id, fare"),
        ("--every -1", "every"),
        ("--every -1 --local", "every"),
    ],
)
def test_bad_options_are_named(hubbub: Hubbub, options: str, message: str) -> None:
    assert message in hubbub.refused(*RELEASE, *options.split())


def test_a_changed_epsilon_and_changed_values_are_refused(hubbub: Hubbub) -> None:
    command = (*RELEASE, "--state", "state")
    hubbub.answer(*command)
    assert "epsilon: got 3" in hubbub.refused(*command, "--epsilon", 3)
    assert "source: got 'column id'" in hubbub.refused(*command, "--column", "id", "--bound", 100)
    changed = VALUES.copy()
    changed[2000] += 1
    write(changed)
    assert "the 3,000 values that were released" in hubbub.refused(*command)
    os.truncate("state", 100)
    assert "state" in hubbub.refused(*command)


def test_steps_of_another_length_are_refused(hubbub: Hubbub) -> None:
    """They were numbered anew: a step that had been told was told again with other values."""
    command = (*RELEASE, "--state", "state")
    write(VALUES[:1700])
    hubbub.answer(*command)
    write(VALUES)
    refusal = hubbub.refused(*command, "--every", 128)
    assert "every: got 128; allowed: 256, as this release's state file has it" in refusal
    assert [step["step"] for step in hubbub.answer(*command)["steps"]] == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_blank_line_in_a_single_column_is_a_gap(hubbub: Hubbub, ending: str) -> None:
    """But for those at the end of the file, after which no value comes."""
    rows = [str(value) for value in VALUES]
    path = hubbub.write(f"fares.{ending}", "\n".join(["fare", *rows[:700], "", *rows[700:]]))
    command = ("release", path.name, "--column", "fare", *SETTINGS)
    assert "fare, row 701 (line 702): got None; allowed: a number in every row" in hubbub.refused(*command)
    path.write_text("\n".join(["fare", *rows, "", "", ""]))
    assert len(hubbub.answer(*command)["steps"]) == 9


def test_rows_and_values_are_counted_from_1_and_named_with_their_line(hubbub: Hubbub) -> None:
    def message(text: str, ending: str = "csv") -> str:
        return hubbub.refused("release", hubbub.write(f"fares.{ending}", text), "--column", "fare", *SETTINGS)

    assert "fare, row 2 (line 5): got 101.0" in message('id,fare\n"two\nlines",1\n\n3,101\n')
    assert "fare, row 2 (line 5): got 'much'" in message('id,fare\n"two\nlines",1\n\n3,much\n')
    assert "fare, row 2 (line 3): got -1.0" in message('{"fare": 1}\n\n{"fare": -1}\n', "jsonl")
    assert "fare, row 2 (line 3): got None" in message('{"fare": 1}\n\n{"fare": null}\n', "jsonl")
    assert "value 2 (line 2): got 101.0; allowed: a number from 0 to 100" in pipe(hubbub, "1\n101\n").stderr
    assert "column" in hubbub.refused("release", "-", "--column", "fare", *SETTINGS)  # a pipe has none


@ways
@pytest.mark.parametrize("state", [None, Path("state")])
def test_a_file_is_followed_in_every_way(local, state, monkeypatch) -> None:
    """With a state file nothing was shown."""
    for module in (release_ways, stream_file):
        monkeypatch.setattr(module, "PART", 1000)
    way: release_ways.Way
    if local:
        way = release_ways.ByDevices(ToPL(**KEYWORDS, every=256), Random(seed=1), state, "fares")
    else:
        way = release_ways.ByCurator(ToPS(**KEYWORDS), 256, Random(seed=1), state, "fares")
    done: list[tuple[int, int]] = []
    with way:
        assert len(way.whole(VALUES, lambda *part: done.append(part))) == 9
    assert done == [(0, 3000), (1000, 3000), (2000, 3000)]


def test_a_release_is_asked_for_ranges(hubbub: Hubbub) -> None:
    hubbub.answer(*RELEASE, "--state", "state")
    told = hubbub.answer("release", "ask", "state", "500:1524", ":1000", "2000:")
    assert [(row["first"], row["last"]) for row in told["ranges"]] == [(500, 1524), (500, 1000), (2000, 3000)]
    for row in told["ranges"]:
        truth = np.minimum(VALUES, told["theta"])[row["first"] : row["last"]]
        reach = 3 * (row["sum"]["high"] - row["sum"]["value"])  # six standard errors
        assert abs(row["sum"]["value"] - truth.sum()) < reach
        assert row["mean"]["value"] == pytest.approx(row["sum"]["value"] / truth.size)
    wider = hubbub.answer("release", "ask", "state", "500:1524", "--level", 0.99)["ranges"][0]["sum"]
    assert wider["low"] < told["ranges"][0]["sum"]["low"]
    shown = hubbub("release", "ask", "state", "500:1524")
    assert "500:1524" in shown.stdout
    assert "asking costs nothing" in shown.stderr
    for text, message in (
        ("499:600", "range: got '499:600'; allowed: positions within 500:3000"),
        ("600", "range: got '600'; allowed: two positions with a colon"),
    ):
        assert message in hubbub.refused("release", "ask", "state", text)


def test_every_setting_of_the_curator_is_an_option(hubbub: Hubbub) -> None:
    options: dict[str, object] = {
        "smoother": "moving",
        "window": 4,
        "weight": 0.25,
        "fan_out": 8,
        "pruned": 1,
        "constant": 5.0,
        "candidates": 2048,
        "noise": "laplace",
        "watch": 0.2,
        "period": 600,
        "follow": "update",
    }
    given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    hubbub.answer(*RELEASE, *given, "--state", "state")
    expected = ToPS(**{**KEYWORDS, **options})
    assert open_release("state").tops == expected
    usual = {field.name: field.default for field in fields(ToPS)}
    assert {name for name in usual if getattr(expected, name) != usual[name]} == {*KEYWORDS, *options}


@ways
def test_a_person_spends_epsilon_with_all_values(hubbub: Hubbub, local: tuple[str, ...]) -> None:
    """One rider has every seventh of the fares, of which three enter; all others have one."""
    people = [f"{i}" if i % 7 else "0" for i in range(3000)]
    rows = "".join(f"{person},{value}\n" for person, value in zip(people, VALUES, strict=True))
    hubbub.write("rides.csv", f"rider,fare\n{rows}")
    command = ("release", "rides.csv", "--column", "fare", *SETTINGS, *local)
    result = hubbub.answer(*command, "--person", "rider", "--per-person", 3, "--simulate", "--seed", 1)
    assert result["person"] == {"values": 3, "paid": 3 * result["paid"], "left_out": 429 - 3}
    assert 3.99 < result["person"]["paid"] <= 4
    entered = VALUES[[i % 7 > 0 or i < 21 for i in range(3000)]]
    assert result["steps"][0]["truth"] == pytest.approx(entered[500:756].mean())
    shown = hubbub(*command, "--person", "rider", "--per-person", 3)
    assert "of each rider the first 3 values entered; 426 later ones did not" in shown.stderr


def test_whose_values_were_released_must_not_change(hubbub: Hubbub) -> None:
    def write_rides(people: list[int]) -> None:
        rows = "".join(f"{person},{value}\n" for person, value in zip(people, VALUES, strict=True))
        hubbub.write("rides.csv", f"rider,fare\n{rows}")

    people = [i % 1500 for i in range(3000)]
    write_rides(people)
    command = ("release", "rides.csv", "--column", "fare", *SETTINGS, "--state", "state", "--person", "rider")
    steps = hubbub.answer(*command, "--per-person", 2)["steps"]
    assert len(steps) == 9
    assert hubbub.answer(*command, "--per-person", 2)["steps"] == []
    assert open_release("state").per_person == 2
    assert open_release("state").effective_epsilon <= 4
    assert "epsilon: got 4" in hubbub.refused(*command, "--per-person", 1)  # it was 2 a value
    write_rides([1, 0, *people[2:]])
    assert "other values or people among the first 3,000" in hubbub.refused(*command, "--per-person", 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--person driver", "column: got 'driver'; allowed: one of id, fare"),
        ("--per-person 3", "per_person: got 3; allowed: 1, unless --person names a column"),
        ("--person id --per-person 0", "per_person"),
    ],
)
def test_bad_people_are_named(hubbub: Hubbub, options: str, message: str) -> None:
    assert message in hubbub.refused(*RELEASE, *options.split())


def test_a_pipe_has_no_people(hubbub: Hubbub) -> None:
    assert "person" in pipe(hubbub, "1\n", "--person", "rider").stderr


def test_a_row_without_a_person_is_named(hubbub: Hubbub) -> None:
    hubbub.write("rides.csv", "rider,fare\na,1\n,2\n")
    refused = hubbub.refused("release", "rides.csv", "--column", "fare", *SETTINGS, "--person", "rider")
    assert "rider, row 2 (line 3): got None; allowed: a person in every row" in refused


def die(folder: Path, way: str, stride: int) -> int:
    command = [sys.executable, str(Path(__file__).parent / "release_and_die.py"), str(folder), way, str(stride)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_killed_at_points_of_a_release(tmp_path: Path) -> None:
    """Among them the first commit, after which a file without its counter was refused for ever."""
    assert die(tmp_path, "file", 30) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("way", "points"), [("file", 40), ("pipe", 50), ("local", 30)])
def test_killed_at_every_point_of_a_release(tmp_path: Path, way: str, points: int) -> None:
    assert die(tmp_path, way, 1) >= points
