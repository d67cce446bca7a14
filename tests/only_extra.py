"""`hubbub` as in an environment with one extra alone: what the extra does not bring cannot be imported.

python only_extra.py EXTRA COMMAND...
python only_extra.py EXTRA SCRIPT.py ARGUMENT...
"""

import sys
import tomllib
from collections.abc import Iterable
from importlib.abc import MetaPathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from runpy import run_path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
NAME = PROJECT["name"]
BASE = "base"


def declared(extra: str) -> list[str]:
    """What `pip install hubbub-ldp[extra]` asks for, with the extras that it names in turn; "base" is no extra."""
    wanted = [] if extra == BASE else PROJECT["optional-dependencies"][extra]
    inner = [other for text in wanted if Requirement(text).name == NAME for other in Requirement(text).extras]
    named = [text for text in wanted if Requirement(text).name != NAME]
    return [*PROJECT["dependencies"], *named, *(text for other in inner for text in declared(other))]


def closure(requirements: Iterable[str]) -> set[str]:
    """The distributions that an installer brings for some requirements."""
    brought: set[str] = set()
    todo = [(Requirement(text), "") for text in requirements]
    while todo:
        wanted, extra = todo.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(wanted.name)
        if name in brought and not wanted.extras:
            continue
        brought.add(name)
        try:
            inner = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue
        todo += [(each, more) for each in inner for more in ("", *wanted.extras)]
    return brought


class Absent(MetaPathFinder):
    """Finds none of the modules of the distributions that were not brought."""

    def __init__(self, brought: set[str]) -> None:
        owners = packages_distributions()
        self._absent = {
            module for module, names in owners.items() if not {*map(canonicalize_name, names)} & {NAME, *brought}
        }

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self._absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    extra, *command = sys.argv[1:]
    sys.meta_path.insert(0, Absent(closure(declared(extra))))
    if command[0].endswith(".py"):
        sys.argv = command
        run_path(command[0], run_name="__main__")
        return
    sys.argv = ["hubbub", *command]
    from hubbub.cli import main

    main()


if __name__ == "__main__":
    main()
