"""What pyproject.toml declares is what the package imports: nothing is missing, nothing is carried along."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

ROOT = Path(__file__).parents[1]
_only = run_path(str(ROOT / "tests" / "only_extra.py"))
PROJECT = _only["PROJECT"]
LOADED_BY_UVICORN = {"httptools", "uvloop"}
THERE_IN_TESTS = {"pytest", "sklearn"}  # a figure with classifiers says what to install


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_-]", requirement)[0]


def _imported() -> set[str]:
    """The third-party packages that a statement anywhere in the package imports."""
    packages = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                packages |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                packages.add(node.module.partition(".")[0])
    return packages - set(sys.stdlib_module_names) - {"hubbub"}


def _declared() -> set[str]:
    extras = PROJECT["optional-dependencies"]
    every = [*PROJECT["dependencies"], *(each for name in extras for each in extras[name])]
    return {_name(each) for each in every} - {"hubbub"}


def test_nothing_is_declared_that_nothing_imports():
    assert _declared() - LOADED_BY_UVICORN == _imported() - THERE_IN_TESTS


def test_all_is_every_other_extra():
    extras = PROJECT["optional-dependencies"]
    every = {_name(each) for each in (*extras["analytics"], *extras["server"], *extras["shuffle"], *extras["sql"])}
    assert extras["all"] == ["hubbub[analytics,server,shuffle,sql]"]
    assert every | {_name(each) for each in PROJECT["dependencies"]} == _declared()


@pytest.mark.parametrize("extra", ["server", "analytics", "demo", "sql"])
def test_each_extra_brings_the_command_line(extra: str):
    done = _run(extra, "--version")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_extra_that_is_not_there_is_named(tmp_path: Path):
    done = _run("analytics", "serve", str(ROOT / "examples" / "emoji.toml"), cwd=tmp_path)
    assert done.returncode == 2
    assert "hubbub[server]" in done.stderr


def _run(extra: str, *command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "tests" / "only_extra.py"), extra, *command]
    return subprocess.run(program, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
