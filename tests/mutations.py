"""Mutates each security decision once, in a copy of the tree, and demands that a test fails for each.

The table is `mutations.toml`. A decision is found by its text, wherever it is under `src` or `clients/js/src`, and a
test by its name. `python tests/mutations.py WORD ...` tries the mutations whose name has one of the words; without
words, all of them.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
_NOT_COPIED = ".git", ".venv", "node_modules", "build", "__pycache__", ".*_cache", ".hypothesis"
_OPTIONS = "-x", "-q", "-m", "", "-p", "no:cacheprovider"
_FAILED, _NO_END = 1, 100  # pytest's exit code for tests that failed; others are for tests that cannot be run
_PATIENCE = 1800


class Mutation(NamedTuple):
    """A decision of the source, another text for it, and the tests of which at least one must fail then."""

    name: str
    source: str
    replacement: str
    tests: list[str]


def mutations() -> list[Mutation]:
    """The table."""
    table = tomllib.loads(Path(__file__).with_name("mutations.toml").read_text(encoding="utf-8"))
    return [Mutation(name, **{"replacement": never(row["source"]), **row}) for name, row in table.items()]


def never(source: str) -> str:
    """The text of an `if` with a condition that never holds: the mutation where no other text is given."""
    return re.sub(r"\A( *(?:el)?if) .*:$", r"\1 False:", source, count=1, flags=re.MULTILINE)


def sources(root: Path) -> dict[Path, str]:
    """The texts of all files in which decisions are made."""
    paths = [*(root / "src").rglob("*.py"), *(root / "clients" / "js" / "src").glob("*.ts")]
    return {path: path.read_text(encoding="utf-8") for path in paths}


def places(source: str, texts: dict[Path, str]) -> list[Path]:
    """The files that have a text, each as often as it occurs there."""
    return [path for path, text in texts.items() for _ in range(text.count(source))]


def node_ids(tests: Iterable[str], root: Path = ROOT) -> dict[str, list[str]]:
    """Where pytest finds the tests of these names. `client/test_x` is the `test_x` in a folder `client`."""
    defined: dict[str, list[Path]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        for name in re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            defined.setdefault(name, []).append(path.relative_to(root))
    found: dict[str, list[str]] = {}
    for test in tests:
        *folders, name = test.split("/")
        found[test] = [f"{path}::{name}" for path in defined.get(name, []) if set(folders) <= set(path.parts)]
    return found


class Copy:
    """A copy of the tree in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "hubbub"
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        (self.root / "clients" / "js" / "node_modules").symlink_to(ROOT / "clients" / "js" / "node_modules")
        self._texts = sources(self.root)
        self._nodes = node_ids({test for mutation in mutations() for test in mutation.tests}, self.root)
        self._time = time.time()

    def test(self, names: Iterable[str]) -> subprocess.CompletedProcess[str]:
        """Run tests until one of them fails."""
        nodes = [node for name in names for node in self._nodes[name]]
        command = [sys.executable, "-m", "pytest", *_OPTIONS, *dict.fromkeys(nodes)]
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src")}
        given: dict[str, Any] = {"cwd": self.root, "env": environment, "capture_output": True, "text": True}
        try:
            return subprocess.run(command, **given, check=False, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, _NO_END, f"no end in {_PATIENCE} seconds\n", "")

    def try_mutation(self, mutation: Mutation) -> subprocess.CompletedProcess[str]:
        """Run the tests of a mutation with the mutation in place."""
        (path,) = places(mutation.source, self._texts)
        try:
            self._write(path, self._texts[path].replace(mutation.source, mutation.replacement))
            return self.test(mutation.tests)
        finally:
            self._write(path, self._texts[path])

    def _write(self, path: Path, text: str) -> None:
        """Write a source with a time of its own, by which what was compiled from an earlier text is told to be old."""
        path.write_text(text, encoding="utf-8")
        self._time = max(time.time(), self._time + 2)
        os.utime(path, (self._time, self._time))


def main(words: list[str]) -> int:
    """Try the mutations that are named; the number of those that no test notices, or whose tests cannot be run."""
    chosen = [mutation for mutation in mutations() if not words or any(word in mutation.name for word in words)]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        before = copy.test(test for mutation in chosen for test in mutation.tests)
        if before.returncode:
            print(before.stdout + before.stderr, "\nwithout a mutation these tests do not pass", sep="\n")
            return 1
        for mutation in chosen:
            tried = copy.try_mutation(mutation)
            noticed = tried.returncode == _FAILED
            unnoticed += not noticed
            print(f"{'noticed' if noticed else 'NOT NOTICED':12}{mutation.name}", flush=True)
            if tried.returncode > _FAILED:
                print(tried.stdout + tried.stderr)
    print(f"{len(chosen) - unnoticed} of {len(chosen)} mutations are noticed")
    return min(unnoticed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
