"""Makes, checks and restores backups, whether or not a collector is running."""

import errno
import os
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from hubbub import __version__
from hubbub.service.backup.copy import (
    DATABASE,
    REPORTS,
    BackupFile,
    BackupRefused,
    Manifest,
    copy_file,
    copy_postgres,
    copy_sqlite,
    fill_postgres,
    postgres_in_use,
    sqlite_files,
)
from hubbub.service.kept.archive import sha256_of
from hubbub.service.store import sqlite_path
from hubbub.service.store.base import StoreDamaged
from hubbub.service.store.checksums import check_sqlite
from hubbub.service.store.schema import VERSION
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
    other = sorted(named.keys() ^ copied.keys() | {name for name in named if named[name] != copied.get(name)})
    if other:
        raise BackupRefused(f"{folder / DATABASE}: does not belong to these files of reports: {_some(other)}")
    return manifest


def read_database(path: Path, shown: str = "") -> dict[str, str]:
    """Check the copy of a store: it is whole, and this version reads it. Returns the checksums of its files of reports.

    `shown` is what errors call the store, if not by the path of the copy.
    """
    shown = shown or str(path)
    try:
        # Immutable: SQLite then writes nothing next to the file, not even a lock.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            versions = database.execute("SELECT value FROM meta WHERE key = 'version'").fetchall()
            version = versions[0][0] if versions else "none"
            if version != str(VERSION):
                raise BackupRefused(f"{shown}: tables of version {version}; this version of hubbub reads {VERSION}")
            check_sqlite(database.execute)
            return dict(database.execute("SELECT name, sha256 FROM archives ORDER BY name").fetchall())
    except (StoreDamaged, *SQLITE_ERRORS) as error:
        raise BackupRefused(f"{shown}: {error}") from error


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} ..."


_ATTEMPTS = 3


def make_backup(store: str, reports: Path, target: Path) -> Manifest:
    """Copy a store and the files of reports that it names into a new folder, which appears once it is complete.

    The database is copied first, in one snapshot, then the files that it names. These files never change, and only
    retention deletes them. If it deleted one meanwhile, the backup is made again.

    `reports`: the folder of its single reports; it need not exist if the store names none.
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


def restore_backup(backup: Path, store: str, reports: Path) -> Manifest:
    """Check a backup, then make a new store and a new folder of reports from it. Nothing is overwritten.

    The files come first and the store last: if the store exists, the restoration is complete.

    `backup`: the folder of the backup; it stays as it is. `store`: the URL of the new store; it may be of another kind
    than the one that was backed up. `reports`: the folder for single reports: one that does not exist, or is empty.

    Example:
        >>> import tempfile
        >>> from hubbub.service.backup.backups import make_backup
        >>> from hubbub.service.store import open_store
        >>> folder = Path(tempfile.mkdtemp())
        >>> open_store(f"sqlite:///{folder / 'hubbub.db'}").close()
        >>> _ = make_backup(f"sqlite:///{folder / 'hubbub.db'}", folder / "hubbub.db.reports", folder / "backup")
        >>> _ = restore_backup(folder / "backup", f"sqlite:///{folder / 'again.db'}", folder / "again.db.reports")
        >>> open_store(f"sqlite:///{folder / 'again.db'}").collections()
        []
    """
    manifest = check_backup(backup)
    path = sqlite_path(store)
    _check_free(store, path, reports)
    _restore_reports(backup, manifest, reports)
    if path is None:
        fill_postgres(backup / DATABASE, store)
    else:
        _restore_database(backup, manifest, path)
    return manifest


def _check_free(store: str, path: Path | None, reports: Path) -> None:
    # SQLite would read the leftover log of another database as part of this one.
    for existing in sqlite_files(path) if path is not None else []:
        if os.path.lexists(existing):
            raise BackupRefused(f"{existing}: there already; a backup is restored where no store is")
    if path is None and postgres_in_use(store):
        raise BackupRefused("the database holds a store already; a backup is restored where none is")
    if os.path.lexists(reports) and not (reports.is_dir() and not any(reports.iterdir())):
        raise BackupRefused(f"{reports}: there already, and not empty")


def _restore_reports(backup: Path, manifest: Manifest, reports: Path) -> None:
    if not manifest.reports:
        return
    reports.absolute().parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{reports.name}.", suffix=".part", dir=reports.absolute().parent))
    try:
        for file in manifest.files[1:]:
            _copy_checked(backup, file, part / Path(file.name).name)
        os.rename(part, reports)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _copy_checked(backup: Path, file: BackupFile, target: Path) -> None:
    """Copy a file of a backup; `BackupRefused` if the copy is not what the manifest says."""
    if copy_file(backup / file.name, target).sha256 != file.sha256:
        raise BackupRefused(f"{backup}: damaged: 1 changed ({file.name})")


def _restore_database(backup: Path, manifest: Manifest, path: Path) -> None:
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.urandom(8).hex()}.part")
    try:
        _copy_checked(backup, manifest.files[0], part)
        try:
            os.link(part, path)  # unlike a rename, this never replaces a file
        except OSError as error:
            if error.errno == errno.EEXIST:
                raise BackupRefused(f"{path}: there already") from None
            os.rename(part, path)  # a file system without hard links
    finally:
        part.unlink(missing_ok=True)
