"""`hubbub release --local`: every value one device's report, and of the values nothing else."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from hubbub.cli.app import app
from hubbub.protocols.topl.server import ToPL
from hubbub.rehearse.release import LocalReleaseFile

VALUES = np.random.default_rng(5).gamma(2, 5, 3000).clip(0, 100).round(2)
SETTINGS = ("--epsilon", 4, "--bound", 100, "--holdout", 500, "--range", 4096, "--every", 256)
LOCAL = ("release", "fares.csv", "--column", "fare", *SETTINGS, "--local")


def write(values: np.ndarray) -> None:
    Path("fares.csv").write_text("id,fare\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))


@pytest.fixture(autouse=True)
def fares(hubbub: Callable[..., Result]) -> None:
    write(VALUES)


def test_the_form_is_that_of_a_curator_and_only_simulate_tells_the_truth(answer: Callable[..., Any]) -> None:
    """Seeded: at most two of nine intervals miss the mean of the clipped values (a chance of 1% that more do)."""
    result = answer(*LOCAL, "--plot", "fares.svg")
    assert set(result) == {"theta", "steps", "above", "lost", "paid"}
    assert [set(step) for step in result["steps"]] == [{"step", "value", "low", "high"}] * 9
    assert [step["step"] for step in result["steps"]] == list(range(9))
    assert 0 < result["theta"] <= 100
    assert 0 < result["paid"] <= 4
    assert "truth" not in Path("fares.svg").read_text()
    simulated = answer(*LOCAL, "--simulate", "--seed", 3)
    truth = VALUES[500 : 500 + 9 * 256].reshape(9, 256).mean(axis=1)
    assert [step["truth"] for step in simulated["steps"]] == pytest.approx(truth)
    clipped = np.minimum(VALUES, simulated["theta"])[500 : 500 + 9 * 256].reshape(9, 256).mean(axis=1)
    ends = [(step["low"], step["high"]) for step in simulated["steps"]]
    assert sum(not low < mean < high for (low, high), mean in zip(ends, clipped, strict=True)) <= 2
    assert max(high - low for low, high in ends) < clipped.mean()
    squares = [(step["value"] - step["truth"]) ** 2 for step in simulated["steps"]]
    assert simulated["mse"] == pytest.approx(np.mean(squares))


def test_it_says_what_share_is_above_the_threshold_and_what_that_could_hide(
    answer: Callable[..., Any], hubbub: Callable[..., Result]
) -> None:
    """3% have 90, far above the others, and the threshold does not reach them. Seeded: both intervals hold."""
    write(np.where(np.arange(3000) % 33, np.random.default_rng(5).uniform(0, 4, 3000).round(2), 90.0))
    command = (*LOCAL, "--simulate", "--seed", 2)
    result = answer(*command)
    assert result["theta"] < 20
    assert result["above"]["low"] <= 1 / 33 <= result["above"]["high"]
    assert result["lost"]["low"] <= (90 - result["theta"]) / 33 <= result["lost"]["high"]
    assert all(step["high"] + result["lost"]["high"] > step["truth"] for step in result["steps"])
    shown = hubbub(*command)
    assert f"are above theta, {result['theta']:.4g}: without clipping, means could be higher by up to" in shown.stderr


def test_a_file_that_grows_reports_once_and_its_steps_stay(
    answer: Callable[..., Any], refused: Callable[..., str]
) -> None:
    command = (*LOCAL, "--state", "state")
    write(VALUES[:1700])
    first = answer(*command)
    assert answer(*command) == first  # nobody reports again: the same numbers
    shutil.copy("state", "older")
    write(VALUES)
    second = answer(*command)
    assert second["steps"][:4] == first["steps"]
    assert [step["step"] for step in second["steps"]] == list(range(9))
    assert first["theta"] == second["theta"]
    with LocalReleaseFile("state", ToPL(**_settings()), source="column fare") as release:
        assert release.server.position == 3000
        assert "another process" in refused(*command)
    write(VALUES[:2500])
    assert "values: got '2,500 values'; allowed: the 3,000 that have reported" in refused(*command)
    write(VALUES)
    for change, value in (("epsilon", 3), ("bound", 200), ("holdout", 400), ("every", 128)):
        assert f"{change}: got {value}" in refused(*command, f"--{change}", value)
    assert "source: got 'column id'" in refused(*command, "--column", "id", "--clip")
    shutil.copy("state", "newest")
    shutil.copy("older", "state")
    assert "this one is older" in refused(*command)
    shutil.copy("newest", "state")
    os.truncate("state", 3000)
    assert "state" in refused(*command)
    for name in ("state", "state.count"):
        os.remove(name)
    curators = ("release", "fares.csv", "--column", "fare", *SETTINGS, "--state", "state")
    answer(*curators)
    both = ("the state of a release by devices (with --local)", "the state of a curator's release (without --local)")
    assert f"not {both[0]}, but {both[1]}" in refused(*command)
    for name in ("state", "state.count"):
        os.remove(name)
    answer(*command)
    assert f"not {both[1]}, but {both[0]}" in refused(*curators)


def _settings() -> dict[str, Any]:
    return {"epsilon": 4.0, "bound": 100.0, "holdout": 500, "max_range": 4096, "every": 256}


def test_nothing_of_the_values_is_stored(answer: Callable[..., Any]) -> None:
    """The state has the protocol's memory and the open sums, and the file holds no value's eight bytes."""
    answer(*LOCAL, "--state", "state")
    with LocalReleaseFile("state", ToPL(**_settings()), source="column fare") as release:
        state = release.server.state
    assert set(state) == {"memory", "open"}
    assert set(state["memory"]) == {"known", "recent", "pointer"}
    stored = Path("state").read_bytes()
    doubles = VALUES[VALUES > 1].astype(">f8")
    assert not any(value.tobytes() in stored or value.byteswap().tobytes() in stored for value in doubles)


def pipe(text: str, *options: object) -> Result:
    return CliRunner().invoke(app, ["release", "-", *map(str, (*SETTINGS, "--local", *options))], input=text)


def test_a_pipe_goes_on_and_a_gap_takes_nothing() -> None:
    lines = [f"{value}\n" for value in VALUES]
    done = pipe("".join(lines[:1700]), "--state", "state")
    assert done.exit_code == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    gap = pipe("1.0\n\n2.0\n", "--state", "state")
    assert gap.exit_code == 2
    assert "value 1,702 (line 2): got ''; allowed: one number per line, without gaps" in gap.stderr
    rest = pipe("".join(lines[1700:]), "--state", "state", "--json")
    steps = json.loads(rest.stdout)["steps"]
    assert [step["step"] for step in steps] == list(range(9))
    assert [f"{step['value']:.6g}" for step in steps[:4]] == [row[1] for row in rows]
    assert "holdout" in pipe("1\n2\n").stderr


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("-1", "fare, row 701 (line 702): got -1.0; allowed: a number from 0 to 100"),
        ("100.5", "fare, row 701 (line 702): got 100.5"),
        ("nan", "fare, row 701 (line 702): got 'nan'"),
        ("", "fare, row 701 (line 702): got None; allowed: a number in every row"),
        ("inf", "fare, row 701 (line 702): got inf"),
    ],
)
def test_bad_rows_are_named_and_nobody_reports(refused: Callable[..., str], row: str, message: str) -> None:
    rows = [str(value) for value in VALUES]
    rows[700] = row
    write(np.array(rows))
    assert message in refused(*LOCAL, "--state", "state")
    with LocalReleaseFile("state", ToPL(**_settings()), source="column fare") as release:
        assert release.server.position == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--holdout", 3000), "holdout: got 3000; allowed: fewer than the 3,000 values"),
        (("--holdout", 0), "holdout"),
        (("--epsilon", 0), "epsilon"),
        (("--bound", "nan"), "bound"),
        (("--every", -1), "every"),
        (("--range", 0), "max_range"),
        (("--smoother", "mean"), "smoother: got 'mean'; allowed: none with --local"),
        (("--watch", 0.1), "watch: got 0.1; allowed: 0 with --local"),
        (("--seed", 1), "seed only with --simulate"),
        (("--simulate", "--state", "state"), "no state file with --simulate"),
    ],
)
def test_bad_options_are_named(refused: Callable[..., str], change: tuple[object, ...], message: str) -> None:
    assert message in refused(*LOCAL, *change)
