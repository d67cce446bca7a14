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

COMMANDS = ["demo", "plan", "audit", "estimate", "reproduce", "watch", "data list", "data get"]


def test_version(hubbub: Hubbub) -> None:
    result = hubbub("--version")
    assert (result.exit_code, result.stdout) == (0, f"hubbub {hb.__version__}\n")


@pytest.mark.parametrize("command", ["", "data"])
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
        (["plan"], "--domain"),
        (["plan", "--domain", "many"], "--domain"),
        (["plan", "--domain", "16", "--n", "100", "--epsilon", "-1"], "epsilon: got -1.0"),
        (["plan", "--domain", "16", "--n", "100"], "n, epsilon, stderr"),
        (["plan", "--domain", "16", "--n", "9", "--epsilon", "1", "--plot", "x.doc"], "plot: got 'x.doc'"),
        (["plan", "--domain", "16", "--n", "9", "--epsilon", "1", "--plot", "no/x.png"], "plot: got 'no/x.png'"),
        (["demo", "--once", "--epsilon", "nan"], "epsilon: got nan"),
        (["demo", "--once", "--n", "3"], "n: got 3"),
        (["audit"], "mechanism: "),
        (["audit", "OLH", "--all"], "mechanism: got 'OLH'"),
        (["audit", "OHL"], "did you mean OLH?"),
        (["audit", "OLH", "--epsilon", "0"], "epsilon: got 0.0"),
        (["audit", "--spec", "absent.json"], "absent.json: No such file or directory"),
        (["data", "get", "emojis"], "did you mean emoji?"),
        (["reproduce", "disertation-table-3.2"], "did you mean dissertation-table-3.2?"),
        (["reproduce", "nothing-like-*"], "name: got 'nothing-like-*'"),
        (["estimate", "absent.csv", "--column", "c", "--epsilon", "1"], "absent.csv"),
    ],
)
def test_an_error_is_one_line(refused: Callable[..., str], args: list[str], message: str) -> None:
    assert message in refused(*args)


def test_json_is_all_there_is_on_stdout(process: Process) -> None:
    done = process("plan", "--domain", 8, "--n", 1000, "--epsilon", 1, "--json", FORCE_COLOR="1", COLUMNS="40")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["picked"] in (True, False)


def test_an_interrupt_is_quiet(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from hubbub.cli import main; main()", "demo", "--once", "--n", "50000"]
    running = subprocess.Popen(
        command, cwd=tmp_path, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert "the people" in running.stdout.readline()  # the story has begun; the other mechanisms take seconds more
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


def test_a_terminal_without_emoji(process: Process) -> None:
    done = process("demo", "--once", "--n", 200, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "what it learns" in done.stdout
    assert done.stdout.isascii()
