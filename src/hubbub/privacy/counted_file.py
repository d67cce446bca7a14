"""A state file that one process uses at a time, and that is never continued from an older copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.migrations import Format
from hubbub.core.private_file import replace_private_file
from hubbub.core.spec import Json
from hubbub.privacy.ledger_file import LedgerFile, LedgerUnavailable

_KINDS = {
    "release_format": "the state of a curator's release (without --local)",
    "local_release_format": "the state of a release by devices (with --local)",
    "sums_format": "the state of a curator's running sums",
}
"""What the files are called in errors, by the names of their formats."""


class StateInUse(HubbubError):
    """Another process has the state file open: two would spend on the same values."""


class CountedFile:
    """A `LedgerFile` that one process has open at a time, with a counter beside it by which an older copy is detected.

    The owner stores the number of changes in its tables, calls `check` with it on opening, and `mark` after each
    change. The counter is in a second file, whose name ends in `.count`. Restoring older copies of both files is not
    detected.

    Parameters
    ----------
    path, terms, tables, format
        As of `LedgerFile`.
    load
        Called within the opening transaction; if it raises, the file is closed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        terms: Mapping[str, Json],
        tables: tuple[str, ...],
        format: Format,
        load: Callable[[CountedFile], None],
    ) -> None:
        self.path = Path(path)
        self._counter = self.path.with_name(self.path.name + ".count")
        words = ("release's state file", "release")
        try:
            self._file = LedgerFile(path, terms, tables, format, patience=0.0, words=words, kinds=_KINDS)
        except LedgerUnavailable as error:
            raise self._explained(error) from error
        self.run, self.transaction, self.close = self._file.run, self._file.transaction, self._file.close
        try:
            self.run("PRAGMA locking_mode = EXCLUSIVE")
            with self.transaction():
                damage = self.run("PRAGMA integrity_check")
                if damage != [("ok",)]:
                    raise LedgerUnavailable(f"{self.path}: damaged: {damage[0][0]}")
                load(self)
        except LedgerUnavailable as error:
            self.close()
            raise self._explained(error) from error
        except BaseException:
            self.close()
            raise

    def _explained(self, error: LedgerUnavailable) -> HubbubError:
        if "locked" in str(error):
            return StateInUse(f"{self.path}: another process is releasing with this state file")
        return error

    def check(self, number: int) -> None:
        """Refuse a state after `number` changes if the counter is higher; 0 means that the state is new."""
        counted = self._count()
        if counted is None and number == 0:
            self.mark(0)  # before the first change, so that a process that stops right after it leaves both files
        if counted is None and number:
            allowed = f"the file {self._counter.name} beside it, without which an older copy cannot be detected"
            raise InvalidValue("state", str(self.path), allowed)
        if counted is not None and counted > number:
            age = f"older (after {number})" if number else "new"
            raise InvalidValue("state", str(self.path), f"the state after {counted} changes: this one is {age}")

    def mark(self, number: int) -> None:
        """Raise the counter, after the state was written: a state behind the counter was restored from a copy."""
        replace_private_file(self._counter, str(number).encode())

    def _count(self) -> int | None:
        try:
            return int(self._counter.read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except ValueError:
            raise InvalidValue("state", str(self._counter), "a number: the file is cut short or another's") from None
