"""Files of single reports that the store does not name are set aside, and deleted when their retention is over.

An older copy of the database, restored beside newer files, does not name those files. They may be the only copy of
their reports, so nothing but retention deletes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import NamedTuple

from hubbub.service.store.base import Expiry

SET_ASIDE = "set-aside"
"""The name of the folder for such files, within the folder of reports."""

_REPORT_FILE = re.compile(
    r"(?P<question>[a-z0-9_-]+)-(?P<step>[0-9]+)-(?P<collection>[0-9a-f]{8})-[0-9a-f]{16}\.parquet(\.part)?(\.[0-9]+)?"
)


class Swept(NamedTuple):
    """The names of the files that were deleted, and of those that were set aside."""

    deleted: list[str]
    set_aside: list[str]


def sweep(folder: Path, named: Iterable[str], expired: Iterable[Expiry]) -> Swept:
    """Delete each file of reports that is not named and whose retention is over; set aside other files not named.

    Files set aside before are deleted when their retention is over. Files that are not of reports are left alone.
    """
    known = set(named)
    first_kept = {(expiry.collection[:8], expiry.question): expiry.below for expiry in expired}
    swept = Swept([], [])
    aside = folder / SET_ASIDE
    for path in sorted([*_files(folder), *_files(aside)]):
        match = _REPORT_FILE.fullmatch(path.name)
        if match is None or (path.parent == folder and path.name in known):
            continue
        if int(match["step"]) < first_kept.get((match["collection"], match["question"]), 0):
            path.unlink()
            swept.deleted.append(path.name)
        elif path.parent == folder:
            set_aside(path)
            swept.set_aside.append(path.name)
    if swept.deleted and aside.exists() and not any(aside.iterdir()):
        aside.rmdir()
    return swept


def set_aside(path: Path) -> Path:
    """Move a file into the folder `SET_ASIDE` beside it. Returns the new path."""
    aside = path.parent / SET_ASIDE
    aside.mkdir(mode=0o700, exist_ok=True)
    names = (path.name if number == 0 else f"{path.name}.{number}" for number in count())
    target = next(aside / name for name in names if not (aside / name).exists())
    os.rename(path, target)
    return target


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
