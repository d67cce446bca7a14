"""What holds for every command: help, version, errors, exit codes, a quick start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import hubbub as hb

Hubbub = Callable[..., Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]

COMMANDS = [
    "demo",
    "plan file",
    "plan shares",
    "plan shuffled",
    "audit",
    "estimate",
    "reproduce",
    "watch",
    "data list",
    "data get",
]


def test_version(hubbub: Hubbub) -> None:
    result = hubbub("--version")
    assert (result.exit_code, result.stdout) == (0, f"hubbub {hb.__version__}\n")


@pytest.mark.parametrize("command", ["", "data", "plan", "shuffler", "oblivious"])
def test_no_command_shows_help(hubbub: Hubbub, command: str) -> None:
    result = hubbub(*command.split())
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(hubbub: Hubbub, command: str) -> None:
    result = hubbub(*command.split(), "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


@pytest.mark.parametrize("command", ["plan", "itemsets", "release", "watch"])
def test_the_paragraphs_of_help_fill_the_width(hubbub: Hubbub, command: str) -> None:
    text = hubbub(command, "--help").stdout.partition("╭")[0]
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.splitlines() if line.strip()]
        assert all(len(line) > 50 for line in lines[:-1]), lines


def test_every_option_can_come_from_the_environment(process: Process) -> None:
    """By its name on the command line, which wins; nothing but options of commands is read."""
    variables = {"HUBBUB_PLAN_SHARES_N": "1000", "HUBBUB_PLAN_SHARES_EPSILON": "2", "HUBBUB_PLAN_SHARES_JSON": "1"}
    done = process("plan", "shares", "--domain", 4, "--epsilon", 1, HUBBUB_VERSION="0", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert {(row["n"], row["epsilon"]) for row in json.loads(done.stdout)} == {(1000, 1.0)}
    several = {"HUBBUB_PLAN_TABLE_COLUMN": "age:9 state:4", "HUBBUB_PLAN_TABLE_QUERY": "age=3"}
    done = process("plan", "table", "-n", 1000, "-e", 1, "--json", **several)
    assert json.loads(done.stdout)[0]["columns"] == ["age:9", "state:4"]
    done = process("reproduce", "list", HUBBUB_REPRODUCE_JSON="1")
    assert json.loads(done.stdout), done.stderr
    done = process("serve", "absent.toml", HUBBUB_SERVE_METRICS_PORT="70000")
    assert "'--metrics-port'" in done.stderr


@pytest.mark.parametrize(("words", "place"), [("hubbub plan sh", 2), ("hubbub shuffler serve --c", 3)])
def test_a_shell_completes_commands_and_options(process: Process, words: str, place: int) -> None:
    done = process(_HUBBUB_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(place))
    assert done.stdout.split() == {2: ["shares", "shuffled"], 3: ["--config"]}[place]


def test_commands_of_other_packages(process: Process, tmp_path: Path) -> None:
    """They are listed without being imported, a broken one stops no other, and none takes a name of ours."""
    (tmp_path / "twice.py").write_text("def twice(number: int) -> None:\n    print(2 * number)\n")
    package = tmp_path / "twice-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: twice\nVersion: 1\n")
    points = "twice = twice:twice\nbroken = absent:run\nplan = absent:run\naudit = absent:run\n"
    (package / "entry_points.txt").write_text(f"[hubbub.commands]\n{points}")
    path = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    assert process("twice", 21, **path).stdout == "42\n"
    assert process("--help", **path).stdout.count("Of twice.") == 2
    done = process("broken", **path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "hubbub: broken, of absent:run: ModuleNotFoundError: No module named 'absent'\n"


def test_help_loads_nothing_heavy(process: Process) -> None:
    heavy = "{'numpy', 'numba', 'scipy', 'matplotlib', 'pyarrow', 'duckdb', 'cryptography'}"
    before = f"import atexit, sys; atexit.register(lambda: print(sorted({heavy} & set(sys.modules)), file=sys.stderr));"
    done = process("--help", before=before)
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_base_install_says_what_is_missing(process: Process, package: str) -> None:
    done = process("demo", before=f"import sys; sys.modules['{package}'] = None;")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"hubbub: the command line needs {package}: pip install 'hubbub-ldp[demo]'\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["dmeo"], "No such command 'dmeo'. Did you mean 'demo'?"),
        (["--nope"], "--nope"),
        (["plan", "shares"], "--domain"),
        (["plan", "shares", "--domain", "many"], "--domain"),
        (["plan", "shares", "--domain", "16", "--n", "100", "--epsilon", "-1"], "epsilon: got -1.0"),
        (["plan", "shares", "--domain", "16", "--n", "100"], "n, epsilon, stderr"),
        (["plan", "shares", "--domain", "16", "--n", "9", "--epsilon", "1", "--plot", "x.doc"], "plot: got 'x.doc'"),
        (
            ["plan", "shares", "--domain", "16", "--n", "9", "--epsilon", "1", "--plot", "no/x.png"],
            "plot: got 'no/x.png'",
        ),
        (["demo", "--trust", "nobody"], "--trust: got 'nobody'"),
        (["audit"], "mechanism: "),
        (["audit", "OLH", "--all"], "mechanism: got 'OLH'"),
        (["audit", "OHL"], "did you mean OLH?"),
        (["audit", "OLH", "--epsilon", "0"], "epsilon: got 0.0"),
        (["audit", "--spec", "absent.json"], "absent.json: No such file or directory"),
        (["data", "get", "emojis"], "did you mean emoji?"),
        (["reproduce", "disertation-table-3.2"], "did you mean dissertation-table-3.2?"),
        (["reproduce", "--nope"], "No such option: --nope"),
        (["reproduce", "nothing-like-*"], "name: got 'nothing-like-*'"),
        (["estimate", "absent.csv", "--column", "c", "--epsilon", "1"], "absent.csv"),
    ],
)
def test_an_error_is_one_line(refused: Callable[..., str], args: list[str], message: str) -> None:
    assert message in refused(*args)


def test_json_is_all_there_is_on_stdout(process: Process) -> None:
    done = process(
        "plan", "shares", "--domain", 8, "--n", 1000, "--epsilon", 1, "--json", FORCE_COLOR="1", COLUMNS="40"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["picked"] in (True, False)


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from hubbub.cli import main; main()", "release", "-"]
    command += ["--epsilon", "1", "--bound", "10", "--holdout", "100", "--every", "16"]
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write("3\n" * 200)
    running.stdin.flush()
    assert running.stdout.readline()  # the first steps are released; it waits for more
    running.send_signal(signal.SIGINT)
    _, message = running.communicate()
    assert (running.returncode, message) == (130, "")


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    code = "from hubbub.cli import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-c", code, "data", "list"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    running.stdout.close()
    assert running.stderr is not None
    message = running.stderr.read()
    assert running.wait() != 0
    assert message == b""
    running.stderr.close()


def test_a_terminal_without_emoji(process: Process, tmp_path: Path) -> None:
    (tmp_path / "used.csv").write_text("emoji\n" + "\U0001f602\n\U0001f44d\n" * 100, encoding="utf-8")
    options = ("--column", "emoji", "--epsilon", 2, "--seed", 1)
    done = process("estimate", "used.csv", *options, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "?" in done.stdout
    assert done.stdout.isascii()
