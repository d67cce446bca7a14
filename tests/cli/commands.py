"""How the commands are called in these tests: in this process, or as a user would."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import typer.testing
from typer.testing import CliRunner, Result

from hubbub.cli.app import app

# The runner would build all commands, a thirtieth of a second, for each call of one of them.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]

HANGS = 300.0
"""Seconds after which a test gives up, not a measure of anything."""
PROGRAM = [sys.executable, "-W", "error", "-c"]
ENTRY = "from hubbub.cli import main; main()"
NOTHING_HEAVY = (
    "import atexit, sys; heavy = {'numpy', 'numba', 'scipy', 'matplotlib', 'pyarrow', 'duckdb', 'cryptography'};"
    "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr));"
)
"""Code before a command: it writes what the command loaded of the large packages."""


class Hubbub:
    """The command `hubbub`, called in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *args: object, stdin: str | None = None, **env: str) -> Result:
        """Run a command in this process."""
        return CliRunner().invoke(app, list(map(str, args)), input=stdin, env=env)

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def shown(self, *args: object) -> str:
        """What a command that succeeds shows on 80 columns, without its line breaks."""
        result = self(*args)
        assert result.exit_code == 0, result.output
        assert max(map(len, result.stdout.splitlines())) <= 80
        return " ".join(result.stdout.split())

    def answer(self, *args: object, code: int = 0) -> Any:
        """What a command answers as JSON: all of stdout, and no colour."""
        result = self(*args, "--json")
        assert result.exit_code == code, result.output
        assert "\x1b" not in result.stdout
        assert result.stdout.isascii()
        return json.loads(result.stdout)

    def refused(self, *args: object, **env: str) -> str:
        """The one line in which a command says what is wrong."""
        result = self(*args, **env)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert result.stderr.startswith("hubbub: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    def process(self, *args: object, before: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command in a process of its own, without an input; it fails where it does not end."""
        given: dict[str, Any] = {"cwd": self.folder, "env": {**os.environ, **env}, "stdin": subprocess.DEVNULL}
        command = [*PROGRAM, before + ENTRY, *map(str, args)]
        return subprocess.run(command, **given, capture_output=True, text=True, check=False, timeout=HANGS)

    def start(self, *args: object) -> "subprocess.Popen[str]":
        """Start a command in a process of its own, with a pipe to each of its streams."""
        pipe = subprocess.PIPE
        command = [*PROGRAM, ENTRY, *map(str, args)]
        return subprocess.Popen(command, cwd=self.folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
