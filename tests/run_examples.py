"""Runs the examples of all modules that can be imported here; prints those that fail, but for a missing extra.

python run_examples.py [MODULE...]
"""

import doctest
import importlib
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import Any

import hubbub
from hubbub.core.errors import MissingDependency

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PROGRAMS = ("hubbub.cli", "hubbub.dashboard", "hubbub.service", "hubbub.shuffler")
"""Packages whose modules may be impossible to import: commands reach them, and say what is missing."""
LONG = ("hubbub_papers", "hubbub.demo")
SOURCE = str(Path(hubbub.__file__).parent)


class Examples(doctest.DocTestRunner):
    """Keeps the first failure of each example; a `MissingDependency` is none, and ends the example."""

    def __init__(self) -> None:
        super().__init__(optionflags=FLAGS)
        self.failure: str | None = None
        self.missing = False

    def report_start(self, out: Any, test: Any, example: Any) -> None:
        pass

    def report_success(self, out: Any, test: Any, example: Any, got: str) -> None:
        pass

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:
        if "MissingDependency" in got:
            self.missing = True
        elif not self.missing:
            self.failure = self.failure or f"{test.name}: {example.source.strip()} gave {got.strip()[-200:]}"

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        error, frames = exc_info[1], traceback.extract_tb(exc_info[2])
        ours = any(frame.filename.startswith(SOURCE) for frame in frames)
        if isinstance(error, MissingDependency) or (isinstance(error, ModuleNotFoundError) and not ours):
            self.missing = True  # of hubbub, or of an import of the example's own
        elif not self.missing:
            self.failure = self.failure or f"{test.name}: {type(error).__name__}: {error}"


def failures(name: str) -> list[str]:
    """The examples of a module that failed."""
    try:
        module = importlib.import_module(name)
    except MissingDependency:
        return []
    except ModuleNotFoundError as error:
        return [] if name.startswith(PROGRAMS) else [f"{name}: {error}"]
    found = []
    for test in doctest.DocTestFinder().find(module, name):
        runner = Examples()
        runner.run(test, out=lambda text: None)
        found += [] if runner.failure is None else [runner.failure]
    return found


def main(names: list[str]) -> None:
    """Exits with 1 if an example failed."""
    every = [module.name for module in pkgutil.walk_packages(hubbub.__path__, "hubbub.", onerror=lambda name: None)]
    found = [line for name in names or every if not name.startswith(LONG) for line in failures(name)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
