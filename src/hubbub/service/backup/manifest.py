"""The manifest of a backup: its files with their sizes and checksums."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from hubbub.core.errors import HubbubError

MANIFEST = "manifest.json"
DATABASE = "store.db"
REPORTS = "reports"
_FORMAT = 1
_CHUNK = 1 << 20
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_NAME = re.compile(rf"{re.escape(DATABASE)}|{REPORTS}/[a-z0-9_-]+\.parquet")


class BackupRefused(HubbubError):
    """A backup cannot be made, is damaged, or cannot be restored to the given place. Nothing was changed."""


@dataclass(frozen=True)
class BackupFile:
    """A file of a backup, with its size and checksum."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """When a backup was made, by which version and from which kind of store, and its files, the database first."""

    made: float
    hubbub: str
    store: str
    files: tuple[BackupFile, ...]

    @property
    def reports(self) -> list[str]:
        """The names of the files of single reports."""
        return [Path(file.name).name for file in self.files if file.name != DATABASE]

    def write(self, folder: Path) -> None:
        """Write the manifest durably. It is written last: a folder without it is no backup."""
        document = {
            "format": _FORMAT,
            "made": self.made,
            "hubbub": self.hubbub,
            "store": self.store,
            "files": [vars(file) for file in self.files],
        }
        descriptor = os.open(folder / MANIFEST, _NEW_FILE, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a folder; `BackupRefused` if there is none, or it is invalid."""
        try:
            document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            if document["format"] != _FORMAT:
                raise BackupRefused(f"{folder}: of format {document['format']}; this version reads {_FORMAT}")
            files = tuple(
                BackupFile(str(entry["name"]), int(entry["bytes"]), entry["sha256"]) for entry in document["files"]
            )
            manifest = cls(float(document["made"]), str(document["hubbub"]), str(document["store"]), files)
        except FileNotFoundError:
            raise BackupRefused(f"{folder}: not a backup, or one that was not finished: no {MANIFEST}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise BackupRefused(f"{folder}: {MANIFEST} cannot be read: {error}") from error
        # The names become paths: none may lead out of the folder.
        names = [file.name for file in files]
        if names[:1] != [DATABASE] or len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
            raise BackupRefused(f"{folder}: {MANIFEST} names files that no backup has")
        return manifest


def copy_file(source: Path, target: Path) -> BackupFile:
    """Copy a file durably to a new file that only its owner can read. Returns the name, size and checksum of the copy.

    Must not be used on a database that this process has open: closing the source would drop SQLite's locks.
    """
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as original, open(os.open(target, _NEW_FILE, 0o600), "wb") as file:
        while chunk := original.read(_CHUNK):
            digest.update(chunk)
            size += file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return BackupFile(target.name, size, digest.hexdigest())
