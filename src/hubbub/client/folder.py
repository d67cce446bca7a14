"""A client's folder: which collection it serves, and whether its database is still there.

A lost ledger is never replaced by an empty one without a deliberate act (`recover`).
"""

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import make_private_file, name_private_file, replace_private_file
from hubbub.ledger.file import LedgerUnavailable

FILE = "client.sqlite"
MARKER = "client.json"
"""A file that shows, after the database was lost, that there was one."""

_ADVICE = "nothing is answered; `hubbub client recover` makes a new one, in which everything counts as spent"


def claim(folder: Path) -> None:
    """Make the folder if it does not exist; refuse a folder whose database was lost."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The marker is made after the database, perhaps by another process just now: it is looked for first.
    file, marked = folder / FILE, (folder / MARKER).exists()
    if file.exists():
        if file.stat().st_size == 0:
            raise LedgerUnavailable(f"{file} is empty, and a ledger was there before: {_ADVICE}")
    elif marked:
        raise LedgerUnavailable(f"{file} is missing, and was there before: {_ADVICE}")


def older_copy(folder: Path, answers: int, counted: int) -> LedgerUnavailable:
    """The error of a database after `answers` answers, where `counted` are known from outside of the folder."""
    state = f"is an older copy, after {answers:,} of {counted:,} answers"
    return LedgerUnavailable(f"{folder / FILE} {state}: {_ADVICE}")


def mark(folder: Path, collection: str, format: int) -> None:
    """Write the marker file, unless it exists."""
    if (folder / MARKER).exists():
        return
    fresh = folder / f"{MARKER}.{os.urandom(8).hex()}.new"
    make_private_file(fresh)
    fresh.write_text(json.dumps({"collection": collection, "format": format}) + "\n")
    name_private_file(str(fresh), folder / MARKER)


class AnswerCount:
    """The highest number of answers that was seen of a device, in one file in each of some folders.

    The name of the file is a random number that is in the device's database: the folder may be moved, and its copies
    are recognised. A file that cannot be read or written recognises nothing.
    """

    def __init__(self, folders: Iterable[Path], name: str) -> None:
        self._files = [folder / name for folder in folders]

    def read(self) -> int:
        """The highest number in any of the files; 0 if there is none."""
        return max(map(_number, self._files), default=0)

    def raise_to(self, number: int) -> None:
        """Write the number to each file that has a lower one, durably."""
        for file in self._files:
            if _number(file) < number:
                with suppress(OSError):
                    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    replace_private_file(file, str(number).encode())


def state_folders() -> list[Path]:
    """Where numbers of answers are kept: in the user's state folder, and in the folder of the running session.

    The second is in memory on most systems: no backup holds it, and it is gone after a restart.
    """
    state = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.local/state")
    places = (state, os.environ.get("XDG_RUNTIME_DIR", ""))
    return [Path(place) / "hubbub" for place in places if os.path.isabs(place)]


def collection_in(folder: Path) -> str | None:
    """The name of the collection that a folder serves; None if it is not a client's folder."""
    return _in_database(folder / FILE) or _in_marker(folder / MARKER)


def set_aside(folder: Path) -> None:
    """Rename the files of a database that cannot be used to names that end in `.lost-N`.

    Example:
        >>> set_aside(Path("no such folder"))
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: folder: got 'no such folder'; allowed: the folder of a client
    """
    files = [folder / FILE, folder / f"{FILE}-journal"]
    remains = [path for path in files if path.exists()]
    if not remains and not (folder / MARKER).exists():
        raise InvalidValue("folder", str(folder), "the folder of a client")
    number = 1
    while any(folder.glob(f"*.lost-{number}")):
        number += 1
    for path in remains:
        path.rename(path.with_name(f"{path.name}.lost-{number}"))


def _in_database(file: Path) -> str | None:
    if not file.is_file():
        return None
    try:
        database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        try:
            ((terms,),) = database.execute("SELECT terms FROM terms")
        finally:
            database.close()
        return str(json.loads(terms)["collection"])
    except (sqlite3.Error, ValueError, KeyError, TypeError):
        return None


def _in_marker(file: Path) -> str | None:
    try:
        return str(json.loads(file.read_text())["collection"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _number(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
