"""`hubbub backup` and `hubbub restore`: a store and its kept reports, copied and put back."""

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.options import ReportsFolder, StoreUrl
from hubbub.cli.output import say


def backup(
    folder: Annotated[Path, typer.Argument(help="The new folder of the backup.", show_default=False)],
    store: StoreUrl = "sqlite:///hubbub.db",
    reports: ReportsFolder = None,
) -> None:
    """Copy a store and the single reports that it keeps, as they are at one moment. The collector may be running.

    The signing key and the token are not in it: keep a copy of their folder elsewhere.
    """
    from hubbub.service.backup.backups import make_backup
    from hubbub.service.kept.archive import reports_folder

    contents = make_backup(store, reports or reports_folder(store), folder)
    size = sum(file.bytes for file in contents.files)
    say(f"backed up to {folder}: the store and {len(contents.reports):,} files of reports, {size:,} bytes")


def restore(
    folder: Annotated[Path, typer.Argument(help="The folder of the backup.", show_default=False)],
    store: StoreUrl = "sqlite:///hubbub.db",
    reports: ReportsFolder = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the backup, and restore nothing.")] = False,
) -> None:
    """Check a backup, and make a store of it where there is none. Nothing is written over.

    A backup of either kind of store can be restored to either.
    """
    from datetime import UTC, datetime

    from hubbub.service.backup.backups import check_backup, restore_backup
    from hubbub.service.kept.archive import reports_folder

    backup = check_backup(folder) if check else restore_backup(folder, store, reports or reports_folder(store))
    when = datetime.fromtimestamp(backup.made, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    contents = f"the store and {len(backup.reports):,} files of reports, as of {when}"
    say(f"{folder} is whole: {contents}" if check else f"restored {contents}")
