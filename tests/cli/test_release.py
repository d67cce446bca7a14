"""`hubbub release`: files and pipes in, a private stream out, resumed by a state file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hubbub.cli import release_view as release_ways
from hubbub.cli.app import app
from hubbub.curator import stream_file
from hubbub.curator.tops import ToPS
from hubbub.protocols.topl.server import ToPL
from hubbub.random.source import Random

ENTRY = "from hubbub.cli import main; main()"
VALUES = np.random.default_rng(5).gamma(2, 5, 3000).clip(0, 100).round(2)
SETTINGS = ("--epsilon", 2, "--bound", 100, "--holdout", 500, "--range", 4096, "--every", 256)


def write(path: Path, values: np.ndarray) -> str:
    path.write_text("id,fare\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    return path.name


@pytest.fixture
def fares(tmp_path: Path) -> str:
    return write(tmp_path / "fares.csv", VALUES)


def test_json(answer: Callable[..., Any], fares: str) -> None:
    result = answer("release", fares, "--column", "fare", *SETTINGS)
    assert set(result) == {"theta", "steps", "paid"}
    assert [set(step) for step in result["steps"]] == [{"step", "value", "low", "high"}] * 9
    assert [step["step"] for step in result["steps"]] == list(range(9))
    assert all(step["low"] < step["value"] < step["high"] for step in result["steps"])
    assert 0 < result["theta"] <= 100
    assert 0 < result["paid"] <= 2


def test_a_release_without_a_step_says_what_a_step_needs(hubbub: Callable[..., Result], fares: str) -> None:
    options = [option if option != 256 else 4096 for option in SETTINGS]
    done = hubbub("release", fares, "--column", "fare", *options)
    assert done.exit_code == 0, done.output
    assert "no step yet: one needs 4,096 values" in " ".join(done.output.split())


def test_the_truth_is_there_only_where_it_is_asked_for(answer: Callable[..., Any], fares: str) -> None:
    result = answer("release", fares, "--column", "fare", *SETTINGS, "--simulate", "--seed", 3)
    truth = VALUES[500 : 500 + 9 * 256].reshape(9, 256).mean(axis=1)
    assert [step["truth"] for step in result["steps"]] == pytest.approx(truth)
    squares = [(step["value"] - step["truth"]) ** 2 for step in result["steps"]]
    assert result["mse"] == pytest.approx(np.mean(squares))
    again = answer("release", fares, "--column", "fare", *SETTINGS, "--simulate", "--seed", 3)
    assert result == again


def test_parquet_and_the_plot(hubbub: Callable[..., Result], answer: Callable[..., Any], tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"fare": VALUES}), tmp_path / "fares.parquet")
    result = answer("release", "fares.parquet", "--column", "fare", *SETTINGS, "--plot", "fares.svg")
    assert len(result["steps"]) == 9
    assert "truth" not in (tmp_path / "fares.svg").read_text()
    shown = hubbub("release", "fares.parquet", "--column", "fare", *SETTINGS)
    assert shown.exit_code == 0
    assert "theta" in shown.stdout
    assert "another run pays again" in shown.stderr


def test_a_file_that_grows_is_released_once(answer: Callable[..., Any], fares: str, tmp_path: Path) -> None:
    command = ("release", fares, "--column", "fare", *SETTINGS, "--state", "state")
    write(tmp_path / fares, VALUES[:1700])
    first = answer(*command)
    assert answer(*command)["steps"] == []  # nothing new: nothing is released
    write(tmp_path / fares, VALUES)
    second = answer(*command)
    assert [step["step"] for step in first["steps"] + second["steps"]] == list(range(9))
    assert first["theta"] == second["theta"]


def pipe(text: str, *options: object) -> Result:
    return CliRunner().invoke(app, ["release", "-", *map(str, (*SETTINGS, *options))], input=text)


@pytest.mark.usefixtures("hubbub")
def test_a_pipe_prints_steps_and_goes_on() -> None:
    lines = "".join(f"{value}\n" for value in VALUES[:1700])
    done = pipe(lines, "--state", "state")
    assert done.exit_code == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    rest = pipe("".join(f"{value}\n" for value in VALUES[1700:]), "--state", "state", "--json")
    steps = json.loads(rest.stdout)["steps"]
    assert [step["step"] for step in steps] == [4, 5, 6, 7, 8]


@pytest.mark.usefixtures("hubbub")
def test_a_pipe_with_a_gap_is_refused_and_nothing_of_it_taken() -> None:
    done = pipe("1.0\n\n2.0\n", "--state", "state")
    assert done.exit_code == 2
    assert "value 2 (line 2): got ''; allowed: one number per line, without gaps" in done.stderr
    again = pipe("".join(f"{value}\n" for value in VALUES), "--state", "state", "--json")
    assert len(json.loads(again.stdout)["steps"]) == 9


@pytest.mark.usefixtures("hubbub")
def test_a_state_in_use_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENTRY, "release", "-", *map(str, SETTINGS), "--state", "state"]
    first = subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdin.write("".join(f"{value}\n" for value in VALUES[:800]))
    first.stdin.flush()
    assert first.stdout.readline().startswith("step")
    assert first.stdout.readline().startswith("0\t")
    second = pipe("1\n", "--state", "state")
    assert second.exit_code == 2
    assert "another process" in second.stderr
    first.stdin.close()
    first.stdout.close()
    first.wait(60)
    assert first.returncode == 0
    first.stderr.close()  # type: ignore[union-attr]


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
def test_bad_rows_are_named_and_nothing_is_spent(
    refused: Callable[..., str], answer: Callable[..., Any], tmp_path: Path, row: str, message: str
) -> None:
    rows = [str(value) for value in VALUES]
    rows[700] = row
    write(tmp_path / "fares.csv", np.array(rows))
    command = ("release", "fares.csv", "--column", "fare", *SETTINGS, "--state", "state")
    assert message in refused(*command)
    write(tmp_path / "fares.csv", VALUES)
    assert len(answer(*command)["steps"]) == 9


def test_clip_moves_values_to_the_nearer_end(answer: Callable[..., Any], tmp_path: Path) -> None:
    values = VALUES.copy()
    values[[700, 800]] = -3, 5000
    write(tmp_path / "fares.csv", values)
    assert len(answer("release", "fares.csv", "--column", "fare", *SETTINGS, "--clip")["steps"]) == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--holdout", 3000), "holdout: got 3000; allowed: fewer than the 3,000 values"),
        (("--epsilon", 0), "epsilon"),
        (("--bound", "nan"), "bound"),
        (("--smoother", "guess"), "smoother"),
        (("--watch", 2), "watch"),
        (("--seed", 1), "seed only with --simulate"),
        (("--simulate", "--state", "state"), "no state file with --simulate"),
        (("--column", "tip"), "one of id, fare"),
        (("--every", -1), "every"),
    ],
)
def test_bad_options_are_named(
    refused: Callable[..., str], fares: str, change: tuple[object, ...], message: str
) -> None:
    assert message in refused("release", fares, "--column", "fare", *SETTINGS, *change)


def test_a_changed_epsilon_and_changed_values_are_refused(
    refused: Callable[..., str], answer: Callable[..., Any], fares: str, tmp_path: Path
) -> None:
    command = ("release", fares, "--column", "fare", *SETTINGS, "--state", "state")
    answer(*command)
    assert "epsilon: got 3" in refused(*command, "--epsilon", 3)
    assert "source: got 'column id'" in refused(*command, "--column", "id", "--bound", 100)
    changed = VALUES.copy()
    changed[2000] += 1
    write(tmp_path / fares, changed)
    assert "the 3,000 values that were released" in refused(*command)
    os.truncate(tmp_path / "state", 100)
    assert "state" in refused(*command)


def test_steps_of_another_length_are_refused(
    refused: Callable[..., str], answer: Callable[..., Any], fares: str, tmp_path: Path
) -> None:
    """They were numbered anew: a step that had been told was told again with other values."""
    command = ("release", fares, "--column", "fare", *SETTINGS, "--state", "state")
    write(tmp_path / fares, VALUES[:1700])
    answer(*command)
    write(tmp_path / fares, VALUES)
    assert "every: got 128; allowed: 256, as this release's state file has it" in refused(*command, "--every", 128)
    assert [step["step"] for step in answer(*command)["steps"]] == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_blank_line_in_a_single_column_is_a_gap(
    refused: Callable[..., str], answer: Callable[..., Any], tmp_path: Path, ending: str
) -> None:
    """But for those at the end of the file, after which no value comes."""
    path = tmp_path / f"fares.{ending}"
    rows = [str(value) for value in VALUES]
    command = ("release", path.name, "--column", "fare", *SETTINGS)
    path.write_text("\n".join(["fare", *rows[:700], "", *rows[700:]]))
    assert "fare, row 701 (line 702): got None; allowed: a number in every row" in refused(*command)
    path.write_text("\n".join(["fare", *rows, "", "", ""]))
    assert len(answer(*command)["steps"]) == 9


def test_rows_and_values_are_counted_from_1_and_named_with_their_line(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    def message(text: str, ending: str = "csv") -> str:
        (tmp_path / f"fares.{ending}").write_text(text)
        return refused("release", f"fares.{ending}", "--column", "fare", *SETTINGS)

    assert "fare, row 2 (line 5): got 101.0" in message('id,fare\n"two\nlines",1\n\n3,101\n')
    assert "fare, row 2 (line 5): got 'much'" in message('id,fare\n"two\nlines",1\n\n3,much\n')
    assert "fare, row 2 (line 3): got -1.0" in message('{"fare": 1}\n\n{"fare": -1}\n', "jsonl")
    assert "fare, row 2 (line 3): got None" in message('{"fare": 1}\n\n{"fare": null}\n', "jsonl")
    assert "value 2 (line 2): got 101.0; allowed: a number from 0 to 100" in pipe("1\n101\n").stderr


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("state", [None, Path("state")])
def test_a_file_is_followed_in_every_way(
    local: bool, state: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a state file nothing was shown."""
    monkeypatch.chdir(tmp_path)
    for module in (release_ways, stream_file):
        monkeypatch.setattr(module, "_PART", 1000)
    settings: dict[str, Any] = {"epsilon": 4.0, "bound": 100.0, "holdout": 500, "max_range": 4096}
    way: release_ways.Way
    if local:
        way = release_ways.ByDevices(ToPL(**settings, every=256), Random(seed=1), state, "fares")
    else:
        way = release_ways.ByCurator(ToPS(**settings), 256, Random(seed=1), state, "fares")
    done: list[tuple[int, int]] = []
    with way:
        assert len(way.whole(VALUES, lambda *part: done.append(part))) == 9
    assert done == [(0, 3000), (1000, 3000), (2000, 3000)]


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


def test_a_pipe_has_no_column(refused: Callable[..., str]) -> None:
    assert "column" in refused("release", "-", "--column", "fare", *SETTINGS)
    assert CliRunner().invoke(app, ["release", "--help"]).exit_code == 0
