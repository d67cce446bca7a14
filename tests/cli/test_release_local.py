"""`hubbub release --local`: every value one device's report, and of the values nothing else."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from hubbub.protocols.topl.server import ToPL
from hubbub.rehearse.release import LocalReleaseFile
from tests.cli.commands import Hubbub
from tests.cli.fares import KEYWORDS, RELEASE, VALUES, lines, pipe, piped_steps, write

LOCAL = (*RELEASE, "--local")
TOPL = ToPL(**KEYWORDS, every=256)


@pytest.fixture(autouse=True)
def fares(hubbub: Hubbub) -> None:
    write(VALUES)


def test_intervals_hold_the_means_of_what_is_clipped(hubbub: Hubbub) -> None:
    """Seeded: at most two of nine intervals miss the mean of the clipped values (a chance of 1% that more do)."""
    simulated = hubbub.answer(*LOCAL, "--simulate", "--seed", 3)
    clipped = np.minimum(VALUES, simulated["theta"])[500 : 500 + 9 * 256].reshape(9, 256).mean(axis=1)
    ends = [(step["low"], step["high"]) for step in simulated["steps"]]
    assert sum(not low < mean < high for (low, high), mean in zip(ends, clipped, strict=True)) <= 2
    assert max(high - low for low, high in ends) < clipped.mean()


def test_it_says_what_share_is_above_the_threshold_and_what_that_could_hide(hubbub: Hubbub) -> None:
    """3% have 90, far above the others, and the threshold does not reach them. Seeded: both intervals hold."""
    write(np.where(np.arange(3000) % 33, np.random.default_rng(5).uniform(0, 4, 3000).round(2), 90.0))
    command = (*LOCAL, "--simulate", "--seed", 2)
    result = hubbub.answer(*command)
    assert result["theta"] < 20
    assert result["above"]["low"] <= 1 / 33 <= result["above"]["high"]
    assert result["lost"]["low"] <= (90 - result["theta"]) / 33 <= result["lost"]["high"]
    assert all(step["high"] + result["lost"]["high"] > step["truth"] for step in result["steps"])
    shown = hubbub(*command)
    assert f"are above theta, {result['theta']:.4g}: without clipping, means could be higher by up to" in shown.stderr


def test_a_file_that_grows_reports_once_and_its_steps_stay(hubbub: Hubbub) -> None:
    command = (*LOCAL, "--state", "state")
    write(VALUES[:1700])
    first = hubbub.answer(*command)
    assert hubbub.answer(*command) == first  # nobody reports again: the same numbers
    shutil.copy("state", "older")
    write(VALUES)
    second = hubbub.answer(*command)
    assert second["steps"][:4] == first["steps"]
    assert [step["step"] for step in second["steps"]] == list(range(9))
    assert first["theta"] == second["theta"]
    with LocalReleaseFile("state", TOPL, source="column fare") as release:
        assert release.server.position == 3000
        assert "another process" in hubbub.refused(*command)
    write(VALUES[:2500])
    assert "values: got '2,500 values'; allowed: the 3,000 that have reported" in hubbub.refused(*command)
    write(VALUES)
    for change, value in (("epsilon", 3), ("bound", 200), ("holdout", 400), ("every", 128)):
        assert f"{change}: got {value}" in hubbub.refused(*command, f"--{change}", value)
    assert "source: got 'column id'" in hubbub.refused(*command, "--column", "id", "--clip")
    shutil.copy("state", "newest")
    shutil.copy("older", "state")
    assert "this one is older" in hubbub.refused(*command)
    shutil.copy("newest", "state")
    os.truncate("state", 3000)
    assert "state" in hubbub.refused(*command)
    for name in ("state", "state.count"):
        os.remove(name)
    curators = (*RELEASE, "--state", "state")
    hubbub.answer(*curators)
    both = ("the state of a release by devices (with --local)", "the state of a curator's release (without --local)")
    assert f"not {both[0]}, but {both[1]}" in hubbub.refused(*command)
    for name in ("state", "state.count"):
        os.remove(name)
    hubbub.answer(*command)
    assert f"not {both[1]}, but {both[0]}" in hubbub.refused(*curators)


def test_nothing_of_the_values_is_stored(hubbub: Hubbub) -> None:
    """The state has the protocol's memory and the open sums, and the file holds no value's eight bytes."""
    hubbub.answer(*LOCAL, "--state", "state")
    with LocalReleaseFile("state", TOPL, source="column fare") as release:
        state = release.server.state
    assert set(state) == {"memory", "open"}
    assert set(state["memory"]) == {"known", "recent", "pointer"}
    stored = Path("state").read_bytes()
    doubles = VALUES[VALUES > 1].astype(">f8")
    assert not any(value.tobytes() in stored or value.byteswap().tobytes() in stored for value in doubles)


def test_a_pipe_goes_on_and_a_gap_takes_nothing(hubbub: Hubbub) -> None:
    done = piped_steps(pipe(hubbub, lines(VALUES[:1700]), "--local", "--state", "state"))
    assert [row[0] for row in done] == ["0", "1", "2", "3"]
    gap = pipe(hubbub, "1.0\n\n2.0\n", "--local", "--state", "state")
    assert gap.exit_code == 2
    assert "value 1,702 (line 2): got ''; allowed: one number per line, without gaps" in gap.stderr
    rest = pipe(hubbub, lines(VALUES[1700:]), "--local", "--state", "state", "--json")
    steps = json.loads(rest.stdout)["steps"]
    assert [step["step"] for step in steps] == list(range(9))
    assert [f"{step['value']:.6g}" for step in steps[:4]] == [row[1] for row in done]
    assert "holdout" in pipe(hubbub, "1\n2\n", "--local").stderr
