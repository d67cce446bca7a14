"""A stream of values from a file or a pipe, reported as by devices: each value is of one device and reported once."""

import os
from typing import Any, Self

import msgspec

from hubbub.core.migrations import Format
from hubbub.core.reports import Floats
from hubbub.curator.ranges import Step
from hubbub.curator.stream import checked_values
from hubbub.ledger.file import CountedFile
from hubbub.protocols.topl.server import ToPL, ToPLServer
from hubbub.random.source import Random


def report_values(server: ToPLServer, values: Floats, rng: Random) -> list[Step]:
    """Report these values to the server, one after another, and return the steps that they complete.

    If a value is not allowed, all are refused and nothing is reported.
    """
    rest = checked_values(values, server.settings.bound, server.position)
    steps = []
    while rest.size:
        mechanism: Any = server.ask.mechanism
        part, rest = rest[: server.room], rest[server.room :]
        reports = mechanism.randomize(server.ask.view(part), rng)
        mean = server.add(mechanism.accumulate(reports))
        if mean is not None:
            (low,), (high,) = mean.interval()
            first = server.position - server.settings.every
            steps.append(Step(server.steps - 1, first, float(mean.value[0]), float(low), float(high)))
    return steps


FORMAT = Format("local_release_format", 1)
"""The version of a local release's file."""

_TABLES = (
    "CREATE TABLE server (number INTEGER NOT NULL, state BLOB NOT NULL)",
    "CREATE TABLE steps (step INTEGER PRIMARY KEY, first INTEGER NOT NULL, value REAL NOT NULL, low REAL NOT NULL,"
    " high REAL NOT NULL)",
)


class LocalReleaseFile:
    """A server of ToPL with its state on disk: every device reports once, even if the process is interrupted.

    Reports are stored, as sums, before the steps that they complete are returned; if the process stops before that,
    they were never sent. All steps stay in the file, so that showing them again costs nothing. New values must be
    appended to the source: the file cannot tell whether rows that have reported were changed, as it holds nothing of
    their values.

    Parameters
    ----------
    path
        The file; a new file can be read by its owner only.
    settings
        The settings of ToPL; a file that was begun with other settings is refused.
    source
        The name of the source, such as a column; a file that was begun for another source is refused.
    """

    def __init__(self, path: str | os.PathLike[str], settings: ToPL, *, source: str = "") -> None:
        terms = {**settings.spec(), "source": source, "trust": "local"}
        self._settings = settings
        self._file = CountedFile(path, terms, _TABLES, FORMAT, self._load)

    def _load(self, file: CountedFile) -> None:
        rows = file.run("SELECT number, state FROM server")
        self._number: int = rows[0][0] if rows else 0
        file.check(self._number)
        self.server = ToPLServer(self._settings, msgspec.msgpack.decode(rows[0][1]) if rows else None)
        self.steps = [Step(*row) for row in file.run("SELECT step, first, value, low, high FROM steps ORDER BY step")]
        if not rows:
            file.run("INSERT INTO server VALUES (0, ?)", msgspec.msgpack.encode(self.server.state))

    def report(self, values: Floats, rng: Random) -> list[Step]:
        """Report the next values; return the steps that they complete, which are then on disk."""
        before = self.server.state
        try:
            steps = report_values(self.server, values, rng)
            with self._file.transaction():
                state = msgspec.msgpack.encode(self.server.state)
                self._file.run("UPDATE server SET number = ?, state = ?", self._number + 1, state)
                for step in steps:
                    self._file.run("INSERT INTO steps VALUES (?, ?, ?, ?, ?)", *step)
        except BaseException:
            self.server = ToPLServer(self._settings, before)
            raise
        self._number += 1
        self._file.mark(self._number)
        self.steps += steps
        return steps

    def close(self) -> None:
        """Close the file, so that other processes can open it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
