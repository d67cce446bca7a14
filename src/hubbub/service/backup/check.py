"""Checks a backup: all files exist unchanged, and this version can read the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from hubbub.service.archive import sha256_of
from hubbub.service.backup.manifest import DATABASE, BackupRefused, Manifest
from hubbub.service.store.checksums import sqlite_damage
from hubbub.service.store.migrations import VERSION
from hubbub.service.store.sqlite import SQLITE_ERRORS

_MOST_NAMED = 3


def check_backup(folder: Path) -> Manifest:
    """Check a backup without changing anything. Returns its manifest; `BackupRefused` if anything is wrong."""
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
    named = read_database(folder / DATABASE)
    copied = {Path(file.name).name: file.sha256 for file in manifest.files[1:]}
    other = sorted(
        named.keys() ^ copied.keys() | {name for name in named if named[name] not in (None, copied.get(name))}
    )
    if other:
        raise BackupRefused(f"{folder / DATABASE}: does not belong to these files of reports: {_some(other)}")
    return manifest


def read_database(path: Path, shown: str = "") -> dict[str, str | None]:
    """Check the copy of a store: it is whole, and this version reads it. Returns the checksums of its files of reports.

    A file that an older version wrote has none. `shown` is what errors call the store, if not by the path of the copy.
    """
    shown = shown or str(path)
    try:
        # Immutable: SQLite then writes nothing beside the file, not even a lock.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            versions = database.execute("SELECT value FROM meta WHERE key = 'version'").fetchall()
            version = versions[0][0] if versions else "none"
            if version != str(VERSION):
                raise BackupRefused(f"{shown}: tables of version {version}; this version of hubbub reads {VERSION}")
            damage = sqlite_damage(database.execute)
            if damage:
                raise BackupRefused(f"{shown}: damaged: {damage}")
            return dict(database.execute("SELECT name, sha256 FROM archives ORDER BY name").fetchall())
    except SQLITE_ERRORS as error:
        raise BackupRefused(f"{shown}: {error}") from error


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} ..."
