"""Checks a backup: all files exist unchanged, and this version can read the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from hubbub.service.backup.manifest import DATABASE, BackupRefused, Manifest, sha256_of
from hubbub.service.store.migrations import VERSION

_MOST_NAMED = 3


def check_backup(folder: Path) -> Manifest:
    """Check a backup without changing anything. Returns its manifest; `BackupRefused` if anything is wrong.

    Example:
        >>> check_backup(Path("no such folder"))
        Traceback (most recent call last):
            ...
        hubbub.service.backup.manifest.BackupRefused: no such folder: not a backup, or one that was not finished: ...
    """
    manifest = Manifest.read(folder)
    faulty = {
        "missing": [file.name for file in manifest.files if not (folder / file.name).is_file()],
        "of another size": [],
        "changed": [],
    }
    for file in manifest.files:
        path = folder / file.name
        if file.name in faulty["missing"]:
            continue
        if path.stat().st_size != file.bytes:
            faulty["of another size"].append(file.name)
        elif sha256_of(path) != file.sha256:
            faulty["changed"].append(file.name)
    faults = [f"{len(names):,} {fault} ({_some(names)})" for fault, names in faulty.items() if names]
    if faults:
        raise BackupRefused(f"{folder}: damaged: {'; '.join(faults)}")
    _check_database(folder / DATABASE, manifest)
    return manifest


def _check_database(path: Path, manifest: Manifest) -> None:
    try:
        # Immutable: SQLite then writes nothing beside the file, not even a lock.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            ((result,), *_) = database.execute("PRAGMA integrity_check").fetchall()
            if result != "ok":
                raise BackupRefused(f"{path}: damaged: {result}")
            versions = database.execute("SELECT value FROM meta WHERE key = 'version'").fetchall()
            names = {name for (name,) in database.execute("SELECT name FROM archives")}
    except sqlite3.Error as error:
        raise BackupRefused(f"{path}: {error}") from error
    version = versions[0][0] if versions else "none"
    if not version.isdecimal() or not 1 <= int(version) <= VERSION:
        raise BackupRefused(f"{path}: tables of version {version}; this version of hubbub reads up to {VERSION}")
    if names != set(manifest.reports):
        other = sorted(names.symmetric_difference(manifest.reports))
        raise BackupRefused(f"{path}: does not belong to these files of reports: {_some(other)}")


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} ..."
