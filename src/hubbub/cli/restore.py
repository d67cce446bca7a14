"""`hubbub restore`: a backup, checked and put back where no store is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.options import ReportsFolder, StoreUrl


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

    from hubbub.cli.output import say
    from hubbub.service.archive import beside
    from hubbub.service.backup.check import check_backup
    from hubbub.service.backup.restore import restore_backup

    backup = check_backup(folder) if check else restore_backup(folder, store, reports or beside(store))
    when = datetime.fromtimestamp(backup.made, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    contents = f"the store and {len(backup.reports):,} files of reports, as of {when}"
    say(f"{folder} is whole: {contents}" if check else f"restored {contents}")
