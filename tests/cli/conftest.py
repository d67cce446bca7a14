"""How the commands are called in these tests: in this process, or as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
from typer.testing import CliRunner, Result

from hubbub.cli.app import app

# The runner would build all commands, a thirtieth of a second, for each call of one of them.
typer.testing._get_command = cache(typer.testing._get_command)  # type: ignore[attr-defined]

ENTRY = "from hubbub.cli import main; main()"


@pytest.fixture
def hubbub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, list(map(str, args)))


@pytest.fixture
def answer(hubbub: Callable[..., Result]) -> Callable[..., Any]:
    """What a command answers as JSON: all of stdout, and no colour."""

    def run(*args: object, code: int = 0) -> Any:
        result = hubbub(*args, "--json")
        assert result.exit_code == code, result.output
        assert "\x1b" not in result.stdout
        assert result.stdout.isascii()
        return json.loads(result.stdout)

    return run


@pytest.fixture
def refused(hubbub: Callable[..., Result]) -> Callable[..., str]:
    """The one line in which a command says what is wrong."""

    def run(*args: object) -> str:
        result = hubbub(*args)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("hubbub: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return run


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in a process of its own."""

    def run(*args: object, before: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-c", before + ENTRY, *map(str, args)],
            cwd=tmp_path,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
