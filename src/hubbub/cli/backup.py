"""`hubbub backup`: a store and its kept reports, copied while the collector runs or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.options import ReportsFolder, StoreUrl


def backup(
    folder: Annotated[Path, typer.Argument(help="The new folder of the backup.", show_default=False)],
    store: StoreUrl = "sqlite:///hubbub.db",
    reports: ReportsFolder = None,
) -> None:
    """Copy a store and the single reports that it keeps, as they are at one moment. The collector may be running.

    The signing key and the token are not in it: keep a copy of their folder elsewhere.
    """
    from hubbub.cli.output import say
    from hubbub.service.archive import beside
    from hubbub.service.backup.make import make_backup

    contents = make_backup(store, reports or beside(store), folder)
    size = sum(file.bytes for file in contents.files)
    say(f"backed up to {folder}: the store and {len(contents.reports):,} files of reports, {size:,} bytes")
