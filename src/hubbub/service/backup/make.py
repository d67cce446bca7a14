"""Makes a backup, whether or not a collector is running."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from hubbub import __version__
from hubbub.service.archive import sha256_of
from hubbub.service.backup.check import read_database
from hubbub.service.backup.copy_postgres import copy_postgres
from hubbub.service.backup.copy_sqlite import copy_sqlite
from hubbub.service.backup.manifest import DATABASE, REPORTS, BackupFile, BackupRefused, Manifest, copy_file
from hubbub.service.store import sqlite_path

_ATTEMPTS = 3


def make_backup(store: str, reports: Path, target: Path) -> Manifest:
    """Copy a store and the files of reports that it names into a new folder, which appears once it is complete.

    The database is copied first, in one snapshot, then the files that it names. These files never change, and only
    retention deletes them. If it deleted one meanwhile, the backup is made again.

    Parameters
    ----------
    store
        The URL of the store.
    reports
        The folder of its single reports; it need not exist if the store names none.
    target
        The new folder.
    """
    if os.path.lexists(target):
        raise BackupRefused(f"{target}: there already; a backup is a new folder")
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    for _ in range(_ATTEMPTS):
        part = Path(tempfile.mkdtemp(prefix=f"{target.name}.", suffix=".part", dir=target.absolute().parent))
        try:
            manifest, missing = _copy(store, reports, part)
            if not missing:
                _sync(part / REPORTS, part)
                os.rename(part, target)
                _sync(target.absolute().parent)
                return manifest
        finally:
            shutil.rmtree(part, ignore_errors=True)
    raise BackupRefused(f"{reports}: {len(missing):,} files are missing that the store names, such as {missing[0]}")


def _copy(store: str, reports: Path, part: Path) -> tuple[Manifest, list[str]]:
    (part / REPORTS).mkdir(mode=0o700)
    began, path, database = time.time(), sqlite_path(store), part / DATABASE
    missing: list[str] = []
    if path is None:
        copy_postgres(store, database)
    else:
        copy_sqlite(path, database)
    files = [BackupFile(DATABASE, database.stat().st_size, sha256_of(database))]
    for name, sha256 in read_database(database, "PostgreSQL" if path is None else str(path)).items():
        try:
            copied = copy_file(reports / name, part / REPORTS / name)
        except FileNotFoundError:
            missing.append(name)
            continue
        if sha256 not in (None, copied.sha256):
            raise BackupRefused(f"{reports / name}: damaged: it is not the file that the store wrote")
        files.append(replace(copied, name=f"{REPORTS}/{name}"))
    manifest = Manifest(began, __version__, "postgresql" if path is None else "sqlite", tuple(files))
    manifest.write(part)
    return manifest, missing


def _sync(*folders: Path) -> None:
    for folder in folders:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
