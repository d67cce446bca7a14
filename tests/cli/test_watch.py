"""`hubbub watch`: lines of JSON, the live view in a terminal, files, and what is refused."""

import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import Result

from hubbub.cli.watch_view import figure, frame, scale, summary, title
from hubbub.protocols.window import METHODS
from hubbub.random.source import Random
from hubbub.watch.stream_file import file_scene
from hubbub.watch.watch import Watch, demo_scene
from tests.cli.commands import ENTRY, PROGRAM, Hubbub

KEYS = ["step", "value", "low", "high", "published", "spent", "n", "alarm"]
LEDGER = "devices kept a ledger, and none had to refuse:\nthe most that one spent in any"


def lines(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    assert result.stdout.isascii()
    return [json.loads(line) for line in result.stdout.splitlines()]


def written(hubbub: Hubbub, name: str, rows: Iterable[str], header: str = "step,device,value") -> Path:
    return hubbub.write(name, "\n".join([header, *rows, ""]))


@pytest.fixture
def doors(hubbub: Hubbub) -> str:
    places = [(step, device) for step in (1, 2, 3, 4) for device in range(200)]
    written(
        hubbub, "doors.csv", (f"{step},{device},{'open' if device < 40 * step else 'shut'}" for step, device in places)
    )
    return "doors.csv"


def ran(watch: Watch) -> Watch:
    for _ in watch:
        pass
    return watch


def drawn(watch: Watch, width: int, height: int, over: bool = False) -> str:
    """A frame as a terminal of this size shows it, without its colours."""
    page = io.StringIO()
    console = Console(file=page, width=width, height=height, color_system="truecolor", force_terminal=True)
    console.print(frame(watch, width, height, over=over))
    return re.sub(r"\x1b\[[0-9;]*m", "", page.getvalue())


@pytest.fixture(scope="module")
def run() -> Watch:
    """The demo, past the start of its surge."""
    return ran(Watch(demo_scene(Random(seed=1)), method="LPA", epsilon=1.0, w=20, steps=110, rng=Random(seed=1)))


def test_the_demo_as_json_lines(hubbub: Hubbub) -> None:
    result = hubbub("watch", "--demo", "--seed", 1, "--json")
    moments = lines(result)
    assert [moment["step"] for moment in moments] == list(range(1, 201))
    assert all(list(moment) == KEYS for moment in moments)
    # None of 60 other seeds had other than one alarm, within these steps.
    on = [moment["step"] for moment in moments if moment["alarm"]]
    assert 81 < on[0] < 100
    assert 131 < on[-1] < 170
    assert on == list(range(on[0], on[-1] + 1))
    assert f"{LEDGER} 20 steps is 1 of epsilon 1." in result.stderr
    assert f"Alarm: on at step {on[0]}, off at step {on[-1] + 1}." in result.stderr


def test_without_a_terminal_it_is_the_same(hubbub: Hubbub) -> None:
    command = ("watch", "--demo", "--seed", 3, "--steps", 25)
    assert hubbub(*command).stdout == hubbub(*command, "--json").stdout
    assert len(lines(hubbub(*command))) == 25
    assert hubbub("watch", "--demo", "--steps", 25).stdout != hubbub(*command).stdout


@pytest.mark.parametrize("method", METHODS)
def test_every_method(hubbub: Hubbub, doors: str, method: str) -> None:
    result = hubbub("watch", doors, "--method", method.lower(), "--w", 3, "--epsilon", 2, "--seed", 1)
    assert len(lines(result)) == 4
    spent = re.search(rf"{LEDGER} 3 steps is ([0-9.]+) of epsilon 2\.", result.stderr)
    assert spent is not None
    assert 0 < float(spent[1]) <= 2


def test_options_of_a_method(hubbub: Hubbub) -> None:
    command = ("watch", "--demo", "--seed", 3, "--steps", 25, "--method", "LPA")
    same = hubbub(*command, "--option", "beta=0.5", "-o", "filtered=true").stdout
    assert same == hubbub(*command).stdout
    assert same != hubbub(*command, "--option", "filtered=false").stdout != hubbub(*command, "-o", "beta=0.2").stdout


def test_a_file_with_a_known_truth(hubbub: Hubbub, doors: str, tmp_path: Path) -> None:
    command = ("watch", doors, "--method", "LSP", "--epsilon", 8, "--w", 1, "--watch", "open", "--seed", 1)
    result = hubbub(*command, "--above", 0.5, "--plot", "doors.png")
    # A report is wrong with probability 0.0007: three or more of 200, an error over 0.0125, has 4e-4 a step.
    assert [moment["value"] for moment in lines(result)] == pytest.approx([0.2, 0.4, 0.6, 0.8], abs=0.0125)
    assert [moment["alarm"] for moment in lines(result)] == [False, False, True, True]
    assert result.stderr.startswith("steps: the consecutive integers 1 to 4\n")
    assert "The truth was above 50.00% in 2 steps, from 3 to 4." in result.stderr
    assert result.stderr.endswith("plot: doors.png\n")
    assert (tmp_path / "doors.png").read_bytes().startswith(b"\x89PNG")


def test_other_columns_and_a_mean(hubbub: Hubbub, tmp_path: Path) -> None:
    rows = (f"day {day},{device},{10 * day}" for day in (1, 2, 3) for device in range(300))
    written(hubbub, "heat.csv", rows, "day,sensor,heat")
    columns = ("--step", "day", "--device", "sensor", "--value", "heat")
    result = hubbub("watch", "heat.csv", *columns, "--mean", "0,40", "-w", 1, "-m", "LSP", "-e", 8, "--seed", 1)
    moments = lines(result)
    for moment, truth in zip(moments, (10, 20, 30), strict=True):  # five standard errors
        assert abs(moment["value"] - truth) < 5 * (moment["high"] - moment["value"]) / 1.96
    assert "steps: ranked" in result.stderr
    assert "The truth was above 25 in 1 steps, from 3 to 3." in result.stderr


def test_hours(hubbub: Hubbub, tmp_path: Path) -> None:
    rows = [
        f"2026-01-30T{hour:02}:{device % 60:02}:00Z,{device},{'late' if device < 30 * hour else 'no'}"
        for hour in range(8)
        for device in range(300)
    ]
    written(hubbub, "planes.csv", rows, "seen,device,value")
    command = ("watch", "planes.csv", "--every", "1h", "--watch", "late", "-w", 1, "-m", "LSP", "-e", 8, "--seed", 1)
    result = hubbub(*command, "--above", 0.5, "--plot", "planes.png")
    assert [moment["time"] for moment in lines(result)] == [f"2026-01-30T{hour:02}:00:00+00:00" for hour in range(8)]
    assert "Alarm: on at 2026-01-30 06:00." in result.stderr
    assert "in 2 steps, from 2026-01-30 06:00 to 2026-01-30 07:00." in result.stderr
    assert hubbub("watch", "planes.csv", "--every", "often").exit_code == 2


def test_a_frame_of_hours(hubbub: Hubbub) -> None:
    rows = (f"{1767225600 + 3600 * hour},{device},x" for hour in range(60) for device in range(40))
    scene = file_scene(written(hubbub, "two.csv", rows, "at,device,value"), Random(seed=1), every=3600)
    text = drawn(ran(Watch(scene, method="LPU", epsilon=4.0, w=4, rng=Random(seed=1))), 100, 30)
    for shown in ("in any 4 steps of 1 hour", "╵01-01", "╵12:00", "step 60 of 60, 2026-01-03 11:00 UTC"):
        assert shown in text


def test_what_is_not_known_is_null(hubbub: Hubbub, tmp_path: Path) -> None:
    written(hubbub, "few.csv", ["1,a,x", "1,b,x", "2,b,x", "2,c,x", "3,c,x", "3,a,x"])
    moments = [lines(hubbub("watch", "few.csv", "-w", 3, "-m", "LPU", "--seed", seed))[0] for seed in range(8)]
    unknown = [moment for moment in moments if not moment["published"]]
    assert unknown
    assert all(moment["value"] is moment["low"] is moment["high"] is None for moment in unknown)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "file: got nothing; allowed: one of: a file, a collector's address, or --demo"),
        (["doors.csv", "--demo"], "file: got 'doors.csv'; allowed: one of: a file, a collector's address, or --demo"),
        (["absent.csv"], "absent.csv"),
        (["doors.doc"], "doors.doc"),
        (["doors.csv", "-w", "5"], "w: got 5; allowed: at most the 4 steps there are"),
        (["doors.csv", "--mean", "0"], "mean: got '0'; allowed: two numbers, such as 0,100"),
        (["doors.csv", "--mean", "0,x"], "mean: got '0,x'"),
        (["doors.csv", "--mean", "0,1", "--watch", "open"], "watch: got 'open'"),
        (["empty.csv"], "a file with a header line and at least one row"),
        (["few.csv", "-w", "3", "--steps", "3"], "steps: got 3"),
        (["--demo", "--mean", "0,1"], "mean: got '0,1'; allowed: nothing with --demo"),
        (["--demo", "--watch", "1"], "watch: got '1'; allowed: nothing with --demo"),
        (["--demo", "--method", "LPPA"], "(did you mean LPA?)"),
        (["--demo", "--epsilon", "-1"], "epsilon: got -1.0"),
        (["--demo", "--option", "bata=1"], "option: got 'bata=1'; allowed: NAME=VALUE, where NAME is one of beta"),
        (["--demo", "--option", "beta=0.2"], "beta: got 0.2; allowed: nothing: those of LPU are filtered"),
        (["--demo", "-m", "LPA", "--option", "beta=x"], "beta: got 'x'; allowed: the part of the window"),
        (["--demo", "-m", "LPA", "--option", "beta=2"], "beta: got 2; allowed: a number between 0 and 1"),
        (["--demo", "--speed", "0"], "speed: got 0.0"),
        (["--demo", "--speed", "inf"], "speed: got inf"),
        (["--demo", "--above", "11"], "above: got 11.0; allowed: a number from 0 to 1"),
        (["--demo", "--plot", "x.doc"], "plot: got 'x.doc'"),
    ],
)
def test_what_is_refused(hubbub: Hubbub, doors: str, tmp_path: Path, args: list[str], message: str) -> None:
    written(hubbub, "doors.doc", ["1,a,x"])
    written(hubbub, "few.csv", ["1,a,x", "1,b,x", "2,a,y", "2,b,y"])
    hubbub.write("empty.csv", "")
    assert message in hubbub.refused("watch", *args)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (200, 60), (40, 20)])
@pytest.mark.parametrize("over", [False, True])
def test_a_frame_fits(run: Watch, width: int, height: int, over: bool) -> None:
    text = drawn(run, width, height, over)
    rows = text.splitlines()
    below = 2 + sum(-(-len(line) // width) for line in summary(run)) if over else 1
    assert len(rows) == max(height - below, 9 if over else 14)  # a chart of 3 lines at least
    assert max(map(len, rows)) <= width
    assert "█" in text
    assert "━" in text
    if width >= 80:
        assert "11.00%" in text
        assert "· truth (these devices are simulated)" in text
        assert ("bits per device and step" in text) is not over
        assert (" ALARM  on at step " in text) is not over


def test_a_frame_of_nothing_known() -> None:
    """Of 20 devices nobody need stand on a twentieth of the circle."""
    outcomes = set()
    for seed in range(8):
        watch = Watch(demo_scene(Random(seed=1), n=20), method="LPU", epsilon=1.0, w=20, rng=Random(seed=seed))
        known = next(iter(watch)).published
        assert ("nothing published yet" in drawn(watch, 80, 24)) is not known
        outcomes.add(known)
    assert outcomes == {True, False}


def test_the_scale_holds_what_is_drawn() -> None:
    for low, high in [(0.0, 0.0), (0.3, 0.3), (-5.0, -5.0), (0.0, 1.0), (1e-9, 2e-9), (-3.0, 1e6)]:
        bottom, top, tick = scale(low, high, 12)
        assert bottom <= low <= high <= top
        assert bottom < top
        assert 0 < tick <= top - bottom


def test_the_figure(run: Watch) -> None:
    plot = figure(run, run.scene.name, title(run))
    (ax,) = plot.axes
    names = {text.get_text() for text in plot.legends[0].get_texts()}
    assert {"95% interval", "alarm on", "truth (simulated)", "estimate", "published"} <= names
    assert ax.get_ylabel() == "percent of devices"
    estimate = next(line for line in ax.lines if line.get_label() == "published")
    assert np.size(estimate.get_xdata()) == run.published


def terminal(folder: Path, *args: str, interrupt: bool = False) -> tuple[int, str]:
    """What a terminal of 80 by 24 is sent, and the exit code; interrupted once the view is there, if asked."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {key: held for key, held in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [*PROGRAM, ENTRY, "watch", *args],
        cwd=folder,
        env={**env, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        sent += piece
        if interrupt and b"hubbub watch" in sent:
            process.send_signal(signal.SIGINT)
            interrupt = False
    os.close(ours)
    return process.wait(), sent.decode()


def test_in_a_terminal_it_is_live(tmp_path: Path) -> None:
    code, sent = terminal(tmp_path, "--demo", "--steps", "25", "--speed", "500", "--seed", "1", "--plot", "run.png")
    assert code == 0
    assert sent.count("hubbub watch") >= 25
    assert "estimated; step 25 of 25" in sent
    assert '{"step"' not in sent
    last = sent[sent.rindex("hubbub watch") :]  # the last frame, the cursor back, and what there is to say
    assert last.index("(these devices are simulated)") < last.index("\x1b[?25h") < last.index("25 releases: ")
    assert "kept a ledger" in last
    assert "plot: run.png" in last
    assert (tmp_path / "run.png").exists()


def test_an_interrupt_leaves_a_clean_last_frame(tmp_path: Path) -> None:
    code, sent = terminal(tmp_path, "--demo", "--speed", "20", "--seed", "1", interrupt=True)
    assert code == 130
    last = sent[sent.rindex("hubbub watch") :]
    assert last.index("\x1b[?25h") < last.index(" releases: ")
    assert "kept a ledger" in last
    assert "Traceback" not in sent


def test_json_in_a_terminal_is_json(tmp_path: Path) -> None:
    code, sent = terminal(tmp_path, "--demo", "--steps", "20", "--json")
    assert code == 0
    assert json.loads(sent.splitlines()[19])["step"] == 20
    assert "\x1b" not in sent
