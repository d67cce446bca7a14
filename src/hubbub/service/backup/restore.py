"""Restores a backup to a place where there is no store yet."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

from hubbub.service.backup.check import check_backup
from hubbub.service.backup.copy_postgres import fill_postgres, postgres_in_use
from hubbub.service.backup.copy_sqlite import sqlite_files
from hubbub.service.backup.manifest import DATABASE, BackupFile, BackupRefused, Manifest, copy_file
from hubbub.service.store import sqlite_path


def restore_backup(backup: Path, store: str, reports: Path) -> Manifest:
    """Check a backup, then make a new store and a new folder of reports from it. Nothing is overwritten.

    The files come first and the store last: if the store exists, the restoration is complete.

    Parameters
    ----------
    backup
        The folder of the backup; it stays as it is.
    store
        The URL of the new store; it may be of another kind than the one that was backed up.
    reports
        The folder for single reports: one that does not exist, or is empty.

    Example:
        >>> import tempfile
        >>> from hubbub.service.backup.make import make_backup
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
