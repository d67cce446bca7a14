"""Commands of other packages: listed by name without being imported, and a broken one stops nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Process = Callable[..., "subprocess.CompletedProcess[str]"]
MODULE = """
print("imported")

def greet(name: str = "nobody", fail: bool = False) -> None:
    '''Greet somebody.'''
    from hubbub.core.errors import InvalidValue

    if fail:
        raise InvalidValue("name", name, "somebody")
    print(f"hello {name}")
"""
ENTRY_POINTS = """
[hubbub.commands]
greet = greeting:greet
gone = greeting_that_is_gone:greet
wrong = greeting:no_such_function
plan = greeting:greet
"""


@pytest.fixture
def with_package(process: Process, tmp_path: Path) -> Process:
    """Run `hubbub` where a package is installed that has four commands: two are broken, one has a name of ours."""
    metadata = tmp_path / "greeting-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "greeting.py").write_text(MODULE)
    path = [str(tmp_path), *filter(None, sys.path)]
    return lambda *args: process(*args, before=f"import sys; sys.path[:] = {path!r}; ")


def test_they_are_listed_without_being_imported(with_package: Process) -> None:
    done = with_package("--help")
    assert done.returncode == 0, done.stderr
    assert "imported" not in done.stdout
    listed = [line.split()[1] for line in done.stdout.splitlines() if "Of greeting." in line]
    assert listed == ["gone", "greet", "wrong"]  # `plan` is ours


def test_they_take_their_options_and_have_their_own_help(with_package: Process) -> None:
    assert with_package("greet", "--name", "Ada").stdout == "imported\nhello Ada\n"
    assert "Greet somebody." in with_package("greet", "--help").stdout


def test_their_errors_are_one_line(with_package: Process) -> None:
    for option, message in (("--fail", "hubbub: name: "), ("--unknown", "hubbub: No such option")):
        done = with_package("greet", option)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(message)


def test_a_broken_one_is_named_and_stops_no_other(with_package: Process) -> None:
    for name in ("gone", "wrong"):
        done = with_package(name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(f"hubbub: {name}, of greeting")
    assert with_package("plan", "--help").stdout.count("imported") == 0
    assert with_package("--version").returncode == 0
