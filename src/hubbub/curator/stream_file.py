"""The state file of a curator's stream. It is written before anything is published, by one process at a time."""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from hubbub.core.errors import InvalidValue, SpecMismatch
from hubbub.core.migrations import Format
from hubbub.core.reports import Floats, Ints
from hubbub.core.spec import Json
from hubbub.ledger.file import CountedFile
from hubbub.random.source import Random

TABLES = (
    "CREATE TABLE release (number INTEGER NOT NULL, state BLOB NOT NULL, pending BLOB NOT NULL,"
    " pending_from INTEGER NOT NULL, answered INTEGER NOT NULL, digest BLOB NOT NULL, every INTEGER)",
    "CREATE TABLE unsettled (until INTEGER PRIMARY KEY, key BLOB NOT NULL)",
    "CREATE TABLE published (first INTEGER PRIMARY KEY, numbers BLOB NOT NULL)",
)
PART = 1 << 18  # values between two moves of the progress bar


class StoredStream(Protocol):
    """The interface of a stream that can be kept in a file."""

    @property
    def position(self) -> int: ...
    def checked(self, values: ArrayLike) -> Floats: ...
    def push_many(self, values: ArrayLike) -> Floats: ...


S = TypeVar("S", bound=StoredStream)


class Pending(NamedTuple):
    """The values that were published last, or were about to be when the process stopped, and the first's position."""

    first: int
    published: Floats


class StreamFile(ABC, Generic[S]):
    """A stream and its state on disk. After a crash, and in a copy of the file, no noise is used for two values.

    Values that come once, from a pipe, are answered through `push_many`: the state after them and the answers are on
    disk before the answers are returned, and those of the last call are in `pending` when the file is opened again.
    The noise is in memory only: every process that opens the file goes on with noise of its own.
    What was published stays in the file, so that it can be asked about later: see `published`.
    Values that can be read again, from a file, are answered through `replay`: first, the number of values, their
    digest, and the key of their noise are stored. If the process stops, the next one answers the same values with the
    same numbers, and refuses other values. `settle` deletes the key.

    A state that is older than what was published is refused: a second file, whose name ends in `.count`, holds a
    counter. An older copy of both files is not detected. A stream that goes on from it releases once more, with fresh
    noise, the values that were not yet part of a noisy sum.

    Parameters
    ----------
    path
        The file; a new one can be read by its owner only. It holds sums of true values.
    terms
        The settings; a file that was begun with others is refused.
    format
        The version of the file.
    every
        The number of values in a step, if answers are shown in steps. It cannot change in a file.
    rng
        Draws the keys; by default from the operating system.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        terms: Mapping[str, Json],
        format: Format,
        *,
        every: int | None = None,
        rng: Random | None = None,
    ) -> None:
        self.path = Path(path)
        self._rng = rng or Random()
        self._replayed: list[Pending] = []
        self._file = CountedFile(path, terms, TABLES, format, lambda file: self._load(file, every))

    @abstractmethod
    def _begin(self, rng: Random, state: bytes | None) -> S:
        """A new stream, or one that goes on from a state with fresh noise."""

    @abstractmethod
    def _state_of(self, stream: S) -> bytes:
        """The state of a stream, without its future noise."""

    def _load(self, file: CountedFile, every: int | None) -> None:
        columns = "number, state, pending, pending_from, answered, digest, every"
        rows = file.run(f"SELECT {columns} FROM release")  # noqa: S608
        file.check(rows[0][0] if rows else 0)
        self.stream = self._begin(self._rng, rows[0][1] if rows else None)
        if not rows:
            rows = [(0, self._state_of(self.stream), b"", 0, 0, b"", every)]
            file.run(f"INSERT INTO release ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", *rows[0])  # noqa: S608
        ((self._number, _, pending, first, self._answered, self._digest, steps),) = rows
        if every is not None and steps is None:
            file.run("UPDATE release SET every = ?", every)
        elif every is not None and every != steps:
            allowed = f"{steps}, as this release's state file has it; a change is a new release, with a new file"
            raise SpecMismatch("every", every, allowed)
        self._unsettled: list[tuple[int, bytes]] = file.run("SELECT until, key FROM unsettled ORDER BY until")
        self.pending = Pending(first, np.frombuffer(pending, dtype="<f8"))

    @property
    def published(self) -> Floats:
        """All that was published, from position 0 on, but for what a release that was interrupted has still to tell."""
        rows = self._file.run("SELECT numbers FROM published ORDER BY first")
        return np.concatenate([np.empty(0), *(np.frombuffer(numbers, dtype="<f8") for (numbers,) in rows)])

    def push_many(self, values: ArrayLike, *, carry: Floats | None = None) -> Floats:
        """Answer values that come once. The answers stay on disk, as `pending`, until the next call.

        `carry` holds values that were published just before and are still needed: they are stored in front.
        """
        if self._unsettled:
            raise InvalidValue("values", "a pipe", "the file whose release was interrupted: it is finished first")
        first, before = self.stream.position, self._state_of(self.stream)
        published = self.stream.push_many(values)
        try:
            self._store(published, first, b"", carry, [Pending(first, published)])
        except BaseException:
            self.stream = self._begin(self._rng, before)  # the state may be on disk nonetheless: other noise
            raise
        return published

    def replay(
        self, values: Floats, *, people: Ints | None = None, follow: Callable[[int, int], None] | None = None
    ) -> Floats:
        """Answer the values of a file that are not settled. The file must begin with the settled ones, unchanged.

        Call `settle` once the answers have been written. `people`, where given, has a number for the person of each
        value, which must not change either. `follow` is called with the numbers of values done and in all.
        """
        position = self.stream.position
        most = max(position, self._answered)
        if self._digest and (values.size < most or _digest(values, people, most) != self._digest):
            changed = "other values" if people is None else "other values or people"
            fault = f"only {values.size:,} values" if values.size < most else f"{changed} among the first {most:,}"
            raise InvalidValue("values", fault, f"the {most:,} values that were released, and after them new ones")
        if position and not self._digest:
            raise InvalidValue("values", "a file", "a pipe: this state was begun with one")
        self.stream.checked(values[position:])
        if values.size > most:
            self._promise(values, people)
        stream, parts = self.stream, [np.empty(0)]
        for until, key in self._unsettled:  # values under one key stay together: none can be exchanged
            if stream.position < until:
                stream = self._begin(Random(seed=key), self._state_of(stream))
            while stream.position < until:
                if follow is not None:
                    follow(stream.position - position, values.size - position)
                parts.append(stream.push_many(values[stream.position : min(stream.position + PART, until)]))
        self.stream = stream
        published = np.concatenate(parts)
        self._replayed.append(Pending(position, published))
        return published

    def settle(self, *, carry: Floats | None = None) -> None:
        """Note that the answers of `replay` are written. The next release begins after them.

        `carry` is as for `push_many`.
        """
        if self._answered > self.stream.position:
            raise InvalidValue("values", "none", "those whose release was interrupted: they are replayed first")
        replayed = bool(self._unsettled)
        self._store(np.empty(0), self.stream.position, self._digest, carry, self._replayed)
        self._replayed = []
        if replayed:  # a copy has the key of this stream's noise: go on with another
            self.stream = self._begin(self._rng, self._state_of(self.stream))

    def _promise(self, values: Floats, people: Ints | None) -> None:
        """Store which values are answered with which noise, before any of them is answered."""
        key, digest = self._rng.bytes(32), _digest(values, people, values.size)
        with self._file.transaction():
            self._file.run("INSERT INTO unsettled VALUES (?, ?)", values.size, key)
            self._change("answered = ?, digest = ?", values.size, digest)
        self._mark()
        self._unsettled.append((values.size, key))
        self._answered, self._digest = values.size, digest

    def _store(
        self, published: Floats, first: int, digest: bytes, carry: Floats | None, fresh: Sequence[Pending]
    ) -> None:
        """Store the state and what is pending; and `fresh`, what was published since the state was stored last."""
        pending, answered = published, self.stream.position
        if carry is not None:
            pending, first = np.concatenate([carry, published]), first - carry.size
        state = self._state_of(self.stream)
        with self._file.transaction():
            self._file.run("DELETE FROM unsettled")
            for part in fresh:
                if part.published.size:
                    numbers = part.published.astype("<f8").tobytes()
                    self._file.run("INSERT OR REPLACE INTO published VALUES (?, ?)", part.first, numbers)
            self._change(
                "state = ?, pending = ?, pending_from = ?, answered = ?, digest = ?",
                state,
                pending.astype("<f8").tobytes(),
                first,
                answered,
                digest,
            )
        self._mark()
        self._unsettled = []
        self.pending, self._answered, self._digest = Pending(first, pending), answered, digest

    def _change(self, columns: str, *values: object) -> None:
        self._file.run(f"UPDATE release SET number = ?, {columns}", self._number + 1, *values)  # noqa: S608

    def _mark(self) -> None:
        """Raise the counter, after the state is stored: an older state is one that was put back from a copy."""
        self._number += 1
        self._file.mark(self._number)

    def close(self) -> None:
        """Close the file, so that another process can open it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _digest(values: Floats, people: Ints | None, most: int) -> bytes:
    """Of the first values, and of whose they are."""
    digest = hashlib.sha256(np.ascontiguousarray(values[:most], dtype="<f8").tobytes())
    if people is not None:
        digest.update(np.ascontiguousarray(people[:most], dtype="<i8").tobytes())
    return digest.digest()
