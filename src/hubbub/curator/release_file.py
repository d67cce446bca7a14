"""The file that a release is resumed from: written before anything is published, by one process at a time."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import InvalidValue
from hubbub.core.migrations import Format
from hubbub.core.random import Random
from hubbub.curator.saved_state import state_from_bytes, state_to_bytes
from hubbub.curator.stream import ToPSStream
from hubbub.curator.tops import ToPS
from hubbub.privacy.counted_file import CountedFile, StateInUse

__all__ = ["Pending", "ReleaseFile", "StateInUse"]

FORMAT = Format("release_format", 1)
"""The version of a release's file."""

_TABLES = (
    "CREATE TABLE release (number INTEGER NOT NULL, state BLOB NOT NULL, pending BLOB NOT NULL,"
    " pending_from INTEGER NOT NULL, answered INTEGER NOT NULL, digest BLOB NOT NULL)",
)


class Pending(NamedTuple):
    """What was published last, or was about to be when the process stopped; `first` is the position of its first."""

    first: int
    published: NDArray[np.float64]


class ReleaseFile:
    """A stream and its state on disk. Whatever is interrupted, the same values are answered with the same noise.

    Values that come once, from a pipe, are answered through `push_many`: the state after them and the answers are on
    disk before the answers are returned, and those of the last call are in `pending` when the file is opened again.
    Values that can be read again, from a file, are answered through `replay`: what is on disk first is how many are
    answered, and a digest of them. If the process stops, the next one answers the same values with the same numbers,
    and refuses others.

    A state that is older than what was published is refused, by a counter in a second file beside the first (its name
    ends in `.count`). An older copy of both files is not found, nor is a copy of both that goes on elsewhere: two
    copies use the same noise, so that the difference of what they publish is the difference of the true values.

    Parameters
    ----------
    path
        The file; a new one can be read by its owner only. It holds sums of true values and the key of the noise.
    tops
        The settings; a file that was begun with others is refused.
    source
        What is released, such as a column's name; a file that was begun for another is refused.
    rng
        Where a new stream's key comes from; the operating system if left out.

    Example:
        >>> import tempfile
        >>> tops = ToPS(epsilon=1.0, bound=10.0, holdout=2, max_range=16)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with ReleaseFile(Path(folder) / "state", tops) as release:
        ...         first = release.push_many([1.0, 2.0, 3.0])
        ...     with ReleaseFile(Path(folder) / "state", tops) as release:
        ...         again = release.pending.published
        >>> np.array_equal(first, again, equal_nan=True)
        True
    """

    def __init__(
        self, path: str | os.PathLike[str], tops: ToPS, *, source: str = "", rng: Random | None = None
    ) -> None:
        self.path = Path(path)
        terms = {**tops.spec(), "source": source}
        self._file = CountedFile(path, terms, _TABLES, FORMAT, lambda file: self._load(file, tops, rng or Random()))

    def _load(self, file: CountedFile, tops: ToPS, rng: Random) -> None:
        rows = file.run("SELECT number, state, pending, pending_from, answered, digest FROM release")
        file.check(rows[0][0] if rows else 0)
        if not rows:
            stream = tops.start(rng)
            file.run("INSERT INTO release VALUES (0, ?, ?, 0, 0, ?)", state_to_bytes(stream.state), b"", b"")
            rows = file.run("SELECT number, state, pending, pending_from, answered, digest FROM release")
        (self._number, state, pending, first, self._answered, self._digest), *_ = rows
        self.stream = ToPSStream(tops, state=state_from_bytes(tops, state))
        self.pending = Pending(first, np.frombuffer(pending, dtype="<f8"))

    def push_many(
        self, values: NDArray[np.float64] | list[float], *, carry: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Answer values that come once. What is returned is on disk, as `pending`, until the next call.

        `carry` is what was published right before and is still needed: it stays in front of them.
        """
        if self._answered > self.stream.position:
            raise InvalidValue("values", "a pipe", "the file whose release was interrupted: it is finished first")
        first, before = self.stream.position, self.stream.state
        published = self.stream.push_many(values)
        try:
            self._store(published, first, b"", carry)
        except BaseException:
            self.stream = ToPSStream(self.stream.tops, state=before)
            raise
        return published

    def replay(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answer the values of a file that are not settled. Those that are must be at its beginning, unchanged.

        `settle` is called once what is returned has been written.
        """
        position = self.stream.position
        most = max(position, self._answered)
        if self._digest and (values.size < most or _digest(values[:most]) != self._digest):
            found = f"only {values.size:,} values" if values.size < most else f"other values among the first {most:,}"
            raise InvalidValue("values", found, f"the {most:,} values that were released, and after them new ones")
        if position and not self._digest:
            raise InvalidValue("values", "a file", "a pipe: this state was begun with one")
        self.stream.checked(values[position:])
        if values.size > most:
            digest = _digest(values)
            with self._file.transaction():
                self._change("answered = ?, digest = ?", values.size, digest)
            self._mark()
            self._answered, self._digest = values.size, digest
        return self.stream.push_many(values[position:])

    def settle(self, *, carry: NDArray[np.float64] | None = None) -> None:
        """What `replay` returned is written: the next release begins after it. `carry` as of `push_many`."""
        self._store(np.empty(0), self.stream.position, self._digest, carry)

    def _store(
        self, published: NDArray[np.float64], first: int, digest: bytes, carry: NDArray[np.float64] | None
    ) -> None:
        pending, answered = published, self.stream.position
        if carry is not None:
            pending, first = np.concatenate([carry, published]), first - carry.size
        state = state_to_bytes(self.stream.state)
        with self._file.transaction():
            self._change(
                "state = ?, pending = ?, pending_from = ?, answered = ?, digest = ?",
                state,
                pending.astype("<f8").tobytes(),
                first,
                answered,
                digest,
            )
        self._mark()
        self.pending, self._answered, self._digest = Pending(first, pending), answered, digest

    def _change(self, columns: str, *values: object) -> None:
        self._file.run(f"UPDATE release SET number = ?, {columns}", self._number + 1, *values)  # noqa: S608

    def _mark(self) -> None:
        """Raise the counter, after the state: a state is never older than it unless it was put back."""
        self._number += 1
        self._file.mark(self._number)

    def close(self) -> None:
        """Let other processes have the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _digest(values: NDArray[np.float64]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).digest()
